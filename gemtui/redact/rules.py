"""The forms of secrets, each with the source that documents it.

Prefixes and lengths are those that vendors publish, or that gitleaks (MIT) lists in its default
configuration. High entropy alone is not a rule, because in sessions such a rule finds hashes and
ids rather than secrets.
"""

from __future__ import annotations

import re
from math import log2
from typing import NamedTuple


class SecretForm(NamedTuple):
    """One form of secret.

    * `kind`: the word used in placeholders. `what`: a description for users.
    * `hints`: lower-case strings; `pattern` is tried only if at least one of them occurs.
    * `pattern`: if it has a group `secret`, that group is replaced; otherwise the whole match is.
    * `before`: must match directly before the match, and is part of the secret.
    * `plausible`: whether the secret must look like a random value.
    * `anywhere`: whether the same string is also replaced in other contexts.
    * `source`: where the form is documented.
    """

    kind: str
    what: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    source: str
    before: re.Pattern[str] | None = None
    plausible: bool = False
    anywhere: bool = False


_GITLEAKS = "https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml"
_QUOTE = r"""["'`\\]{0,8}"""
_VALUE = r"""[^\s"'`\\,;<>(){}\[\]]"""


def _word(prefix: str, rest: str) -> str:
    """Return a pattern for a token that starts with `prefix`, followed by `rest`.

    The prefix must not be in the middle of a word, unless it directly follows an escape, such as
    one for a line feed or `%0A`. For speed, the pattern checks this after it has matched the
    prefix.
    """
    escaped = "".join(rf"|(?<={end}{prefix})" for end in (r"\\[nrt]", "%[0-9A-F]{2}"))
    return f"{prefix}(?:(?<![0-9A-Za-z_]{prefix}){escaped}){rest}"


def _token(kind: str, what: str, hints: str, pattern: str, source: str = _GITLEAKS) -> SecretForm:
    return SecretForm(kind, what, tuple(hints.split()), re.compile(pattern), source)


_USER = r"[^\s/\\\"'`:;,<>|)(\]}\[{*?$&%…]{1,64}"


def _home(hints: tuple[str, ...], pattern: str, drive: str) -> SecretForm:
    return SecretForm(
        "home",
        "Home folders; the rest of each path is kept",
        hints,
        re.compile(pattern),
        "Filesystem Hierarchy Standard",
        before=re.compile(rf"(?:(?<![\w.~}})\]-])|(?<=\\[nrt])){drive}\Z"),
        anywhere=True,
    )


RULES: tuple[SecretForm, ...] = (
    SecretForm(
        "private-key",
        "Private keys in PEM and OpenPGP armour, including incomplete ones",
        ("private key",),
        re.compile(
            r"-----BEGIN (?P<name>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
            r"(?:[^-]|-(?!----)){0,20000}(?:-----END (?P=name)-----)?"
        ),
        "RFC 7468, RFC 9580",
    ),
    SecretForm(
        "private-key",
        "PuTTY private keys",
        ("private-lines:",),
        re.compile(
            r"Private-Lines: \d{1,3}(?:\\[nr]|\s){1,4}"
            r"(?P<secret>(?:[0-9A-Za-z+/=]|\\[nr]|\s){20,8000})"
        ),
        "https://tartarus.org/~simon/putty-snapshots/htmldoc/AppendixC.html",
    ),
    SecretForm(
        "private-key",
        "Private keys in PEM armour, base64-encoded again, as in Kubernetes secrets",
        ("ls0tls1crudjti",),
        re.compile(r"LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[0-9A-Za-z+/]{20,40000}={0,2}"),
        "https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/",
    ),
    _token("age-key", "age identities", "age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _token(
        "github-token",
        "GitHub tokens",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"gh[pousr]_[0-9A-Za-z]{36,255}|github_pat_[0-9A-Za-z_]{22,255}",
        "https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/"
        "about-authentication-to-github#githubs-token-formats",
    ),
    _token(
        "gitlab-token",
        "GitLab tokens",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[0-9A-Za-z_-]{20,300}"
        r"(?:\.[0-9a-z]{2}\.[0-9a-z]{7,12})?",
        "https://docs.gitlab.com/security/tokens/#token-prefixes",
    ),
    _token(
        "aws-key",
        "AWS access key ids; a secret key next to one is found by its name",
        "akia asia abia acca",
        r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}",
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html",
    ),
    SecretForm(
        "aws-key",
        "AWS secret access keys",
        ("secret",),
        re.compile(
            rf"(?i:secret_?-?access_?-?key){_QUOTE}(?:\s{{0,3}}[:=]\s{{0,3}}|\s){_QUOTE}"
            r"(?P<secret>[0-9A-Za-z/+]{40})(?![0-9A-Za-z/+])"
        ),
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html",
        anywhere=True,
    ),
    _token(
        "google-key",
        "Google API keys, including those for Gemini",
        "aiza aq.ab",
        r"AIza[0-9A-Za-z_-]{35}|AQ\.Ab[0-9A-Za-z_-]{30,100}",
    ),
    _token(
        "google-token",
        "Google OAuth tokens and client secrets",
        "ya29. 1//0 gocspx-",
        r"ya29\.[0-9A-Za-z_-]{20,2000}|1//0[0-9A-Za-z_-]{30,500}|GOCSPX-[0-9A-Za-z_-]{20,60}",
        "https://developers.google.com/identity/protocols/oauth2",
    ),
    _token("anthropic-key", "Anthropic keys", "sk-ant-", r"sk-ant-[0-9A-Za-z_-]{20,300}"),
    _token(
        "openai-key",
        "OpenAI keys, and keys of services that use the same format",
        "sk-",
        _word("sk-", "(?:(?:proj|svcacct|admin|or-v1)-[0-9A-Za-z_-]{20,300}|[0-9A-Za-z]{32,300})"),
    ),
    _token(
        "slack-token",
        "Slack tokens and webhooks",
        "xox xapp- hooks.slack.com",
        r"xox[abeoprs](?:\.xox[bp])?-[0-9A-Za-z-]{10,300}|xapp-\d-[0-9A-Za-z-]{10,300}"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/[0-9A-Za-z/_-]{20,200}",
        "https://docs.slack.dev/authentication/tokens",
    ),
    _token(
        "discord-token",
        "Discord webhooks",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/\d{5,30}/[0-9A-Za-z_-]{30,200}",
    ),
    _token(
        "stripe-key",
        "Stripe keys",
        "_live_ _test_ whsec_",
        r"(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{10,200}|whsec_[0-9A-Za-z]{32,100}",
        "https://docs.stripe.com/keys",
    ),
    _token("twilio-key", "Twilio keys", "sk", _word("SK", "[0-9a-f]{32}(?![0-9A-Za-z])")),
    _token("sendgrid-key", "SendGrid keys", "sg.", r"SG\.[0-9A-Za-z_-]{16,64}\.[0-9A-Za-z_-]{16,64}"),
    _token(
        "package-token",
        "npm, PyPI, RubyGems, crates.io and Docker tokens",
        "npm_ pypi-age rubygems_ cio dckr_",
        r"npm_[0-9A-Za-z]{36}|pypi-AgE[0-9A-Za-z_-]{50,1000}|rubygems_[0-9a-f]{48}"
        r"|dckr_(?:pat|oat)_[0-9A-Za-z_-]{20,100}|" + _word("cio", "[0-9A-Za-z]{32}(?![0-9A-Za-z])"),
    ),
    _token(
        "model-key",
        "Hugging Face, Replicate, Groq, xAI and Perplexity keys",
        "hf_ r8_ gsk_ xai- pplx-",
        "|".join(
            _word(prefix, f"[0-9A-Za-z]{{{length},120}}")
            for prefix, length in (("hf_", 30), ("r8_", 30), ("gsk_", 40), ("xai-", 60), ("pplx-", 40))
        ),
    ),
    _token(
        "service-token",
        "DigitalOcean, Linear, Notion, Shopify, Telegram, Vault, Databricks, Grafana, Atlassian, "
        "Supabase, Figma, Postman and Azure storage keys",
        "_v1_ lin_api_ ntn_ shp :aa hvs. dapi glsa_ glc_ atatt3 sbp_ sb_secret_ figd_ pmak- accountkey=",
        r"do[opr]_v1_[0-9a-f]{64}|lin_api_[0-9A-Za-z]{40}|ntn_[0-9A-Za-z]{40,60}"
        r"|shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}|\d{8,10}:AA[0-9A-Za-z_-]{33}"
        r"|hvs\.[0-9A-Za-z_-]{24,300}|dapi[0-9a-f]{32}|glsa_[0-9A-Za-z]{32}_[0-9A-Fa-f]{8}"
        r"|glc_[0-9A-Za-z+/=]{32,400}|ATATT3[0-9A-Za-z_=-]{100,400}|sbp_[0-9a-f]{40}"
        r"|sb_secret_[0-9A-Za-z_-]{20,100}|figd_[0-9A-Za-z_-]{38,60}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}"
        r"|AccountKey=[0-9A-Za-z+/]{60,120}={0,2}",
    ),
    _token(
        "jwt",
        "JSON web tokens",
        "eyj",
        r"eyJ[0-9A-Za-z_-]{10,4000}\.eyJ[0-9A-Za-z_-]{4,8000}(?:\.[0-9A-Za-z_-]{0,2000})?",
        "RFC 7519",
    ),
    SecretForm(
        "auth-header",
        "Credentials in authorization, key and cookie headers",
        ("authorization", "bearer", "-key", "-token", "cookie"),
        re.compile(
            rf"(?i:authorization{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}{_QUOTE}"
            r"(?:(?:bearer|basic|token|digest|apikey)\s{1,3})?"
            r"|bearer\s{1,3}(?=[^\s\d]{0,200}\d)(?=[\w.~+/=-]{16})"
            rf"|(?:x-(?:goog-)?api-key|x-auth-token|private-token|x-gitlab-token|"
            rf"x-amz-security-token){_QUOTE}\s{{0,3}}:\s{{0,3}}{_QUOTE}"
            rf"|(?:set-)?cookie{_QUOTE}\s{{0,3}}:\s{{0,3}}{_QUOTE}[\w.-]{{1,60}}=)"
            rf"(?P<secret>{_VALUE}{{8,4000}})"
        ),
        "RFC 6750, RFC 7617, RFC 6265",
        anywhere=True,
    ),
    SecretForm(
        "url-password",
        "Passwords in URLs",
        ("://",),
        re.compile(
            r"://[^\s/:@\"'<>]{0,256}:"
            r"(?P<secret>[^\s/\"'<>]{1,256}|(?!\d{1,5}/)[^\s:@\"'<>\[\]]{1,256})@"
        ),
        "RFC 3986, 3.2.1",
        anywhere=True,
    ),
    SecretForm(
        "auth-header",
        "Several cookies in one header",
        ("cookie",),
        re.compile(
            rf"(?i:(?<!set-)cookie){_QUOTE}\s{{0,3}}:\s{{0,3}}{_QUOTE}"
            r"(?P<secret>[\w.-]{1,60}=[^\r\n\"'`\\;]{0,4000};[^\r\n\"'`\\]{8,4000})"
        ),
        "RFC 6265",
    ),
    SecretForm(
        "login",
        "Passwords given to `curl -u`, `sshpass`, `mysql`, `docker login`, or in `.netrc`",
        ("curl", "sshpass", "mysql", "login"),
        re.compile(
            r"(?:\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[= ]?[\"'\\]{0,2}[^\s:\"'\\]{1,100}:"
            r"|(?:\bsshpass\b[^\n]{0,40}?\s-p\s?|\bmysql(?:dump|admin)?\b[^\n]{0,400}?\s-p(?=\S)"
            r"|\bdocker\s{1,3}login\b[^\n]{0,400}?\s-p[= ]?"
            r"|\b(?:machine\s{1,9}\S{1,100}|default)\s{1,9}login\s{1,9}\S{1,100}\s{1,9}password\s{1,9})[\"'\\]{0,2})"
            rf"(?P<secret>{_VALUE}{{3,200}})"
        ),
        _GITLEAKS,
        anywhere=True,
    ),
    SecretForm(
        "url-key",
        "Keys and signatures in URL queries",
        ("?", "&"),
        re.compile(
            r"[?&](?i:access_token|refresh_token|id_token|token|api_?key|key|sig|signature|"
            r"client_secret|secret|password|x-amz-signature|x-amz-credential|"
            r"x-amz-security-token|x-goog-signature)"
            r"=(?P<secret>[^\s&#\"'`\\<>]{8,4000})"
        ),
        "RFC 6750, 2.3",
        plausible=True,
        anywhere=True,
    ),
    SecretForm(
        "secret",
        "Values assigned to names such as `API_KEY`, `password` or `client_secret`",
        ("key", "secret", "token", "passw", "pwd", "credential", "_auth"),
        re.compile(
            r"(?i:_auth(?=\s{0,3}=)|api_?-?key|access_?-?key(?:_?-?id)?|account_?-?key|private_?-?key|secret(?:_?-?key)?|"
            r"auth_?-?token|token|passw(?:or)?d|passphrase|pwd|credentials?)"
            rf"[\w-]{{0,20}}{_QUOTE}\s{{0,3}}(?::=|=>|=|:)\s{{0,3}}{_QUOTE}"
            rf"(?P<secret>{_VALUE}{{8,400}})"
        ),
        _GITLEAKS,
        plausible=True,
        anywhere=True,
    ),
    SecretForm(
        "email",
        "E-mail addresses",
        ("@", "%40"),
        re.compile(r"(?:@|%40)(?!\dx\.)(?:[0-9A-Za-z](?:[0-9A-Za-z-]{0,62})\.){1,8}[A-Za-z]{2,24}\b"),
        "RFC 5321",
        before=re.compile(r"(?<![\w.+-])(?!(?:git|this|super|return)\Z)[\w.+-]{1,80}\Z"),
    ),
    _home(("home",), rf"(?:/|\\/|%2F)home(?:/|\\/|%2F){_USER}", ""),
    _home(("users",), rf"/Users/(?!Shared\b){_USER}", r"(?:(?:/mnt)?/[A-Za-z])?"),
    _home(("users",), rf":(?:\\{{1,4}}|/)Users(?:\\{{1,4}}|/)(?!Public\b){_USER}", "[A-Za-z]"),
)

ENV_LINE = re.compile(
    r"(?:^|(?<=\\n)|(?<=\n))[ \t]*(?:[^\s:=]{0,200}\.env[\w.]{0,20}:)?(?:\d{1,6}[:|\t][ \t]?)?"
    r"(?:[+-][ \t]?)?(?:export[ \t]+)?"
    r"(?P<name>[A-Za-z_][A-Za-z0-9_.]{0,100})[ \t]*=[ \t]*"
    r"(?:\\?\"(?P<double>[^\"\\]{1,4000})|'(?P<single>[^'\\]{1,4000})"
    r"|(?P<bare>(?:(?!\\n|\\r)[^\s#\"'])(?:(?!\\n|\\r|[ \t]+#)[^\r\n\"]){0,4000}))",
    re.MULTILINE,
)
"""Matches a line of an environment file, even in a diff or in grep's output."""

ENV_FILE = re.compile(
    r"(?<![\w.])\.env(?!\.(?:example|sample|template|dist)\b)(?:rc|(?:\.[\w-]{1,40}){0,3})(?![\w/])"
    r"|(?<![\w.])(?!process|meta)[\w-]{1,60}\.env(?![\w.\[(/])"
)
"""Matches the name of an environment file in a path or a command."""

SECRET_NAME = re.compile(
    r"(?i)(?:.*[_-])?(?:passwords?|passwd|passphrase|secret|api[_-]?key|access[_-]?token|"
    r"auth[_-]?token|refresh[_-]?token|client[_-]?secret|private[_-]?key|secret[_-]?key|"
    r"authorization|credentials?)"
)
"""Matches the name of a field whose whole value is a secret."""

_NO_VALUE = re.compile(r"\$|\{\{|<|\*{3}|%\w+%|[xX]{4}|\.{3}|\[redacted:|process\.env|os\.environ")


def is_variable(value: str) -> bool:
    """Return whether a value is a variable or a placeholder rather than a secret."""
    return _NO_VALUE.match(value) is not None


def is_plausible(value: str) -> bool:
    """Return whether a value of 8 or more characters looks random, as keys do.

    Names in program code, for example, don't.
    """
    letters = any(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    return letters and digits > 1 and _bits(value) >= 2.75 and "::" not in value


def is_distinct(value: str) -> bool:
    """Return whether a value is distinctive enough to be replaced everywhere.

    If it were not, parts of ordinary text would be replaced as well.
    """
    if len(value) < 8 or is_variable(value):
        return False
    plain = value.isalpha() and (value.islower() or value.isupper() or value.istitle())
    return not plain and not value.isdigit()


def _bits(value: str) -> float:
    """Return the entropy of a string in bits per character."""
    shares = [value.count(char) / len(value) for char in set(value)]
    return -sum(share * log2(share) for share in shares)
