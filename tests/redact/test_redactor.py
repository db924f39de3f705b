"""What is replaced, in every form of export, and what is left alone."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.redact.redactor import Redactor
from tests.redact.secrets import ENV, KEY_LINES, PEM, SECRETS, TEXTS, TOKENS, URL
from tests.rows import each_row


def redacted(value: Any) -> Any:
    redactor = Redactor()
    redactor.learn(value)
    return redactor.apply(value)


@each_row(("kind", "secret"), [(kind, each) for kind, some in TOKENS.items() for each in some])
def test_a_token_is_replaced_wherever_it_stands(kind: str, secret: str) -> None:
    placeholder = f"[redacted:{kind}-1]"
    half = len(secret) // 2
    for before, after in (
        ("", ""),
        ("token is ", "."),
        ("+KEY=", "\n-"),
        ('{"a":"x\\n', '\\n"}'),
        ("a=1%3D", "&b"),
        ("(", ")"),
        ("~/backup-of-", ".txt"),
    ):
        assert redacted(before + secret + after) == before + placeholder + after, before
    assert redacted({secret: [secret]}) == {placeholder: [placeholder]}
    grep = f"\x1b[31m\x1b[K{secret[:half]}\x1b[m\x1b[K{secret[half:]}"
    assert secret[half:] not in redacted(grep)
    screen = [[{"text": secret[:half], "bold": True}, {"text": secret[half:] + " end"}]]
    assert redacted(screen) == [[{"text": placeholder, "bold": True}, {"text": " end"}]]


@each_row(("text", "secret"), TEXTS)
def test_a_secret_that_its_surroundings_give_away_is_replaced(text: str, secret: str) -> None:
    found = redacted(text)
    assert secret not in found
    assert found != text
    assert re.sub(r"\[redacted:[a-z-]+-\d+\]", "", found), "its surroundings remain"


def test_a_secret_known_from_one_place_is_replaced_in_others() -> None:
    redactor = Redactor()
    value = [f"psql: password {URL} refused", f"postgres://app:{URL}@db/app"]
    redactor.learn(value)
    one, other = redactor.apply(value)
    assert one == "psql: password [redacted:url-password-1] refused"
    assert other == "postgres://app:[redacted:url-password-1]@db/app"
    (found,) = redactor.replaced()
    assert (found.kind, found.times) == ("url-password", 2)
    assert found.shortened == f"{URL[:4]}… (14 characters)"


def test_lines_of_a_key_are_replaced_in_a_diff_that_shows_a_part_of_it() -> None:
    hunk = f"@@ -3,2 +3,2 @@\n {KEY_LINES[2]}\n-{KEY_LINES[3]}"
    for key in (PEM, PEM.replace("\n", "\n+"), PEM.replace("\n", "\\n")):
        _, part = redacted([key, hunk])
        assert part == "@@ -3,2 +3,2 @@\n [redacted:private-key-2]\n-[redacted:private-key-3]"
    assert redacted(PEM[:200]) == "[redacted:private-key-1]", "without an end"


def call(args: dict[str, Any], output: str) -> dict[str, Any]:
    return {"id": "c1", "name": "read_file", "args": args, "result": [{"text": output}]}


@each_row(
    "args",
    [
        {"file_path": "/w/.env"},
        {"file_path": "/w/prod.env"},
        {"absolute_path": ".env.local"},
        {"command": "cat app/.env | sort"},
    ],
)
@each_row("line", ["{}", "+{}", "export {}", "  12\t{}", ".env:3:{}"])
def test_values_of_environment_files_are_replaced(args: dict[str, Any], line: str) -> None:
    lines = (f"{name}={value}" for name, value in ENV.items())
    output = "# DB\n" + "\n".join(map(line.format, lines))
    made, later = redacted([call(args, output), f"host {ENV['DB_HOST_NAME']}, TINY=on-7 on-7"])
    for name in ENV:
        assert f"{name}=[redacted:env-value-" in made["result"][0]["text"]
    assert later == "host [redacted:env-value-1], TINY=[redacted:env-value-2] on-7"


@pytest.mark.parametrize("path", [".env.example", "src/process.env.ts", "README.md", "environment"])
def test_assignments_in_other_files_are_left_alone(path: str) -> None:
    value = call({"file_path": path}, "HOST=localhost\nPORT=8080")
    assert redacted(value) is value


LEFT_ALONE = [
    "const token = await getToken(config.user)",
    "password: string; apiKey?: string",
    "max_output_tokens=8192, total_tokens: 37245",
    "API_KEY=$GEMINI_API_KEY, password=${PASSWORD}, token: <your token here>",
    "git@github.com:gemtui/gemtui.git",
    "icon@2x.png textual@8.2.5 this@Main.finish @app.route('/')",
    "https://example.org/home/about src/home/page.tsx ./home/x ~/x",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "7024884b-dece-41db-8a1b-a37b16abdfd7 task-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "http://localhost:8080/x?key=value&token=abc",
    "/Users/Shared/x /home/ /Users/",
    "http://localhost:4873/@scope/package@1.2.3 http://[::1]:3000/a@b",
    "login with password authentication; mysql -h db -u root",
    "client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCakNDQWU2Z0F3SUJBZ0lC",
]


@each_row("text", LEFT_ALONE)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert redacted(text) == text


WORDS = st.text(st.characters(exclude_characters="@%", codec="utf-8")).filter(
    lambda text: (
        not re.search(r"(?i)home|users|key|secret|token|pass|pwd|cred|bearer|auth|://", text)
    )
)


@given(st.recursive(WORDS, lambda each: st.lists(each) | st.dictionaries(WORDS, each)))
def test_a_value_without_secrets_stays_the_same_object(value: Any) -> None:
    assert redacted(value) is value


@given(st.sampled_from(SECRETS), WORDS, WORDS)
def test_what_is_around_a_secret_stays(secret: str, before: str, after: str) -> None:
    redactor = Redactor()
    redactor.learn(f"https://u:{secret}@x/" if "/" not in secret and "@" not in secret else secret)
    found = redactor.apply(f"{before} {secret} {after}")
    assert redactor.apply(found) == found, "again changes nothing"
    assert found.startswith(f"{before} ") or before != before.strip()


def test_media_stay_as_they_are() -> None:
    value = {"mimeType": "image/png", "data": base64.b64encode(bytes(range(256)) * 40).decode()}
    assert redacted([value])[0] is value


def test_a_secret_that_is_cut_at_the_end_of_a_title_is_replaced() -> None:
    (token, *_) = TOKENS["github-token"]
    redactor = Redactor()
    redactor.learn(f"Use {token} for it")
    assert redactor.clipped(f"Use {token[:20]}") == "Use [redacted:github-token-1]"
