"""How many realistic secrets are replaced, and how often ordinary lines are taken for one."""

from __future__ import annotations

import asyncio
import http
import json
from pathlib import Path
from types import ModuleType

import pytest

from gemtui.redact.redactor import Redactor
from tests.redact.fakes import FAKES
from tests.rows import each_row

PROJECT = Path(__file__).parents[2]
ON_PURPOSE = ("[redacted:email-", "[redacted:home-")


def redacted(text: str) -> str:
    redactor = Redactor()
    redactor.learn(text)
    return redactor.apply(text)  # type: ignore[no-any-return]


@each_row(("text", "secret"), FAKES)
def test_a_realistic_secret_is_replaced(text: str, secret: str) -> None:
    assert secret not in redacted(text)


def test_there_are_at_least_350_realistic_secrets() -> None:
    assert len(FAKES) >= 350


def sources(module: ModuleType) -> list[Path]:
    return sorted(Path(str(module.__file__)).parent.glob("*.py"))


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([*sources(json), *sources(asyncio), *sources(http)], id="code"),
        pytest.param(sorted((PROJECT / "assets").glob("*.md")), id="text"),
    ],
)
def test_fewer_than_one_in_1000_ordinary_lines_is_taken_for_a_secret(files: list[Path]) -> None:
    lines = alarms = 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        before, after = text.split("\n"), redacted(text).split("\n")
        lines += len(before)
        for old, new in zip(before, after, strict=True):
            for placeholder in ON_PURPOSE:
                new = new.replace(placeholder, "")
            alarms += old != new and "[redacted:" in new
    assert lines > 5000
    assert alarms < lines / 1000, f"{alarms} of {lines}"


LEFT_ALONE = """\
password = request.form["password"]
password: string;
  password: {type: "string"},
"command": "pwd", "dir_path": "sub"
tool login --password-stdin
use --token to pass a token, or --password PASSWORD
def login(self, user, password=None, passwd=""):
PWD=/work/project OLDPWD=/work
self.password = self._read_password(user)
passes: 12, passed=14, pass_count = 3
token_count=37245 key_length: 2048
"forgotPassword": "password",
<password>${env.PASSWORD}</password>
export DB_PASSWORD="$(cat secret.txt)"
password: <your password>
mkdir -p src/a zip -r a.zip src
heroku: https://devcenter.heroku.com/articles/git
sentry-sdk==1.45.0 discord.py>=2.3.2
total: $6 or $15 a month
a.example.org:443:x:y
authorization = self.headers.get("authorization")
authorization = authorization[1].encode("ascii")
self.pwm_pass = 3; bypass = "enabled"; compass: 'north'
pw.use("x"); kpw_width: 12; psk_length = 2048
server.login(user, password)
smtp.login("user", "password")
net user add /help
mysql -u root -p shop
key-string is a word
set password for the user
exit_code=12345 status_code: 404 country_code = "DE49"
spin = 4711, pins: 8, opinion: 12345, barcode=12345
kind: Secret
Authorization: see the chapter on logins
| password | string | yes |
name: password, value: string
passphrase: str = ""
"""


@each_row("line", LEFT_ALONE.splitlines())
def test_a_line_about_secrets_without_one_is_left_alone(line: str) -> None:
    assert redacted(line) == line
