"""The forms of secrets, read from the table `rules.toml`, and what a secret looks like."""

from __future__ import annotations

import binascii
import re
import tomllib
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

_GITLEAKS: Final = "https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml"
_PARTS: Final = {
    "quote": r"""(?:["'`\\]{1,8}|\\{1,3}u0022|%2[27]|&(?:quot|#3[49]);)?""",
    "is": r"\s{0,3}(?::=|=>|=|:|%3D|%3A)\s{0,3}",
    "value": r"""[^\s"'`\\,;<>(){}\[\]]""",
    "password": (
        r"(?:(?i:passw(?:or)?d|passwort|passphrase|passwd|passcode|senha|contrase[ñn]a|mot_de_passe"
        r"|kennwort|wachtwoord|has[lł]o|heslo|l[öo]senord|salasana|пароль|密[码碼]|パスワード|비밀번호"
        r"|(?<=[_.-])pass|(?<=db)pass|sshpass(?==)|pwd|(?<![a-z])(?:root|bind|user|admin|db|my)?pw\d?(?![a-z])"
        r"|(?<![a-z])psk(?![a-z]))|(?<=[a-z])P(?:ass|[wW])(?![a-z]))"
    ),
    "user": r"[^\s/\\\"'`:;,<>|)(\]}\[{*?$&%…]{1,64}",
}
"""Maps the names in patterns to the patterns that they stand for."""


class SecretForm(NamedTuple):
    """One form of secret.

    * `kind`: the word used in placeholders. `what`: a description for users, or "".
    * `hints`: lower-case strings; `pattern` is tried only if at least one of them occurs.
    * `pattern`: if it has a group `secret`, that group is replaced; otherwise the whole match is.
    * `before`: must match directly before the match, and is part of the secret.
    * `name`: must match directly before the match, and isn't part of the secret.
    * `lines`: whether the pattern is tried only on lines with a hint, each with the line after it.
    * `token`: whether the secret is one long run of letters, digits and some signs.
    * `check`: returns whether a text can be such a secret.
    * `anywhere`: whether the same string is also replaced in other contexts.
    * `source`: where the form is documented.
    """

    kind: str
    what: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    source: str
    check: Callable[[str], bool]
    before: re.Pattern[str] | None = None
    name: re.Pattern[str] | None = None
    lines: bool = False
    token: bool = False
    anywhere: bool = False


class _RuleRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule in `rules.toml`, whose head describes the fields."""

    kind: str
    hints: Sequence[str]
    what: str = ""
    tokens: Sequence[str] = ()
    words: Mapping[str, str] = {}
    pattern: str = ""
    before: str = ""
    name: str = ""
    lines: bool = False
    check: Literal["", "any", "random", "password", "word", "login"] = ""
    anywhere: bool = False
    source: str = ""


class _RulesFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table. `placeholders`: lower-case texts that stand where a password would."""

    rules: Sequence[_RuleRow]
    placeholders: frozenset[str]


def _form(row: _RuleRow) -> SecretForm:
    patterns = [*row.tokens, *(_word(prefix, rest) for prefix, rest in row.words.items())]
    if row.pattern:
        patterns.append(_whole(row.pattern))
    return SecretForm(
        kind=row.kind,
        what=row.what,
        hints=tuple(row.hints),
        pattern=re.compile("|".join(patterns)),
        source=row.source or _GITLEAKS,
        before=re.compile(row.before) if row.before else None,
        name=re.compile(_whole(row.name)) if row.name else None,
        lines=row.lines,
        token=not row.pattern,
        check=_CHECKS[row.check],
        anywhere=row.anywhere,
    )


def _whole(pattern: str) -> str:
    """Return a pattern with the meanings of the names in it."""
    for name, meaning in _PARTS.items():
        pattern = pattern.replace(f"<{name}>", meaning)
    return pattern


def _word(prefix: str, rest: str) -> str:
    """Return a pattern for a token that starts with `prefix`, followed by `rest`.

    The prefix must not be in the middle of a word, unless it directly follows an escape, such as
    one for a line feed or `%0A`. For speed, the pattern checks this after it has matched the
    prefix.
    """
    escaped = "".join(rf"|(?<={end}{prefix})" for end in (r"\\[nrt]", "%[0-9A-F]{2}"))
    return f"{prefix}(?:(?<![0-9A-Za-z_]{prefix}){escaped}){rest}"


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
    return (
        letters
        and digits > 1
        and not is_variable(value)
        and _bits(value) >= 2.75
        and "::" not in value
    )


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


_CODE: Final = re.compile(
    r"(?:self|this|args|options|opts|config|settings|process|os|env|user|data|params|request|req)[.?].*"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z]+://.*|/.*|\.{1,2}/.*|[A-Z][A-Z_]+|\d{1,5}|.*(?i:password|passwd).*|\w+[*+]"
    r"|[-=*_#.~!?/:+|]+.*"
)
"""Matches what code and documents have where a password would stand: names, paths and rulers."""
_SIGN: Final = re.compile(r"[0-9!@#%^*+?~$]")


def is_password(value: str) -> bool:
    """Return whether a value may be a password: it has a digit or a sign, and is no code."""
    return _SIGN.search(value) is not None and is_word(value)


def is_word(value: str) -> bool:
    """Return whether a value may be a password, even one that is only a word."""
    if is_variable(value) or value.lower().strip(".!?*") in _FILE.placeholders:
        return False
    return _CODE.fullmatch(value) is None and len(set(value)) > 3


def is_login(value: str) -> bool:
    """Return whether a value is a name and a password in base64, as in Docker's `config.json`."""
    try:
        text = b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    name, colon, password = text.partition(":")
    return bool(colon and name and password) and text.isprintable()


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "": lambda value: not is_variable(value),
    "any": lambda _: True,
    "random": is_plausible,
    "password": is_password,
    "word": is_word,
    "login": is_login,
}
_FILE: Final = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8")),
    _RulesFile,
)
RULES: Final = tuple(map(_form, _FILE.rules))
