"""Secrets of every kind, made here so that nothing in the repository looks like a real one."""

from __future__ import annotations

import json
import random
import string
from base64 import b64encode
from itertools import chain

_RANDOM = random.Random(21)


def rand(length: int, chars: str = string.ascii_letters + string.digits) -> str:
    """A text with letters and digits in it."""
    return "".join(_RANDOM.choices(chars, k=length - 4)) + "q7X3"


def pem() -> str:
    lines = "\n".join(rand(64) for _ in range(6))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"


_HEX = "0123456789abcdef"


def _hex(length: int) -> str:
    return "".join(_RANDOM.choices(_HEX, k=length))


def _upper(length: int) -> str:
    return "".join(_RANDOM.choices(string.ascii_uppercase + "234567", k=length))


TOKENS = {
    "github-token": ["gh" + "p_" + rand(36), "github_" + "pat_" + rand(82)],
    "gitlab-token": ["gl" + "pat-" + rand(20)],
    "aws-key": ["AK" + "IA" + _upper(16)],
    "google-key": ["AI" + "za" + rand(35), "AQ" + ".Ab" + rand(50)],
    "google-token": ["ya" + "29." + rand(60), "GOC" + "SPX-" + rand(28)],
    "anthropic-key": ["sk-" + "ant-api03-" + rand(90)],
    "openai-key": ["sk-" + "proj-" + rand(60), "sk-" + rand(48)],
    "slack-token": ["xo" + "xb-123456789012-" + rand(24)],
    "stripe-key": ["sk_" + "live_" + rand(24)],
    "sendgrid-key": ["SG" + "." + rand(22) + "." + rand(43)],
    "package-token": ["np" + "m_" + rand(36), "pypi-" + "AgEIcHlwaS5vcmc" + rand(60)],
    "model-key": ["hf" + "_" + rand(34), "gs" + "k_" + rand(52)],
    "service-token": ["dop_" + "v1_" + _hex(64), "hvs" + "." + rand(24)],
    "jwt": ["ey" + "J" + rand(30) + ".ey" + "J" + rand(60) + "." + rand(40)],
}
"""Tokens that their form gives away, wherever they stand."""

AT, SLASH, MYSQL, NETRC, NPM, COOKIE, DEEP = (rand(n) for n in (9, 9, 12, 12, 24, 20, 12))
AWS, PUTTY = "/" + "aBcD" * 9 + "xyz", "Ab3" * 16
ARMOUR = b64encode(f"-----BEGIN EC {'PRIVATE'} KEY-----\n{rand(60)}".encode()).decode()
BEARER, BASIC, URL, LOGIN, ASSIGNED, QUERY, FIELD = (rand(n) for n in (32, 24, 14, 13, 26, 20, 12))
MARKED = {
    "auth-header": [
        (f"curl -H 'Authorization: Bearer {BEARER}' https://x.org", BEARER),
        (f"authorization: Basic {BASIC}==", BASIC),
        (f"Cookie: theme=dark; session={COOKIE}", f"theme=dark; session={COOKIE}"),
    ],
    "url-password": [
        (f"postgres://app:{URL}@db.internal:5432/app", URL),
        (f"postgres://app:a@{AT}@db.internal/app", f"a@{AT}"),
        (f"postgres://app:a/{SLASH}@db.internal/app", f"a/{SLASH}"),
    ],
    "aws-key": [(f"aws configure set aws_secret_access_key {AWS}", AWS)],
    "private-key": [
        (f"client-key-data: {ARMOUR}", ARMOUR),
        (f"Private-Lines: 1\n{PUTTY}\nPrivate-MAC: 12", PUTTY),
    ],
    "login": [
        (f"curl -s https://x.org -u 'ada:{LOGIN}' -d 1", LOGIN),
        (f"mysql -u ada -p{MYSQL} shop", MYSQL),
        (f"machine x.org login ada password {NETRC}", NETRC),
    ],
    "url-key": [(f"https://x.org/v1?alt=json&access_token={QUERY}&a=b", QUERY)],
    "secret": [
        (f'export SERVICE_API_KEY="{ASSIGNED}"', ASSIGNED),
        (f'{{\\"client_secret\\": \\"{FIELD}\\"}}', FIELD),
        (json.dumps(json.dumps(json.dumps({"password": DEEP}))), DEEP),
        (f"//registry.example/:_auth={NPM}==", NPM),
    ],
    "email": [("Author: Ada <ada.l+x@mail.lovelace.org>", "ada.l+x@mail.lovelace.org")],
    "home": [
        ("/home/adalove/src/x.py", "/home/adalove"),
        ("C:\\Users\\AdaLove\\x", "C:\\Users\\AdaLove"),
        ("/Users/adamac/x", "/Users/adamac"),
    ],
}
"""Texts with secrets that their surroundings give away, and the secret."""
PEM = pem()
ENV = {"DB_HOST_NAME": rand(13), "TINY": "on-7", "QUOTED": rand(17)}
TEXTS = [(text, secret) for pairs in MARKED.values() for text, secret in pairs]
SECRETS = [*chain.from_iterable(TOKENS.values()), *(secret for _, secret in TEXTS)]
KEY_LINES = PEM.splitlines()[1:-1]
