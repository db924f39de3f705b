"""`gemtui show --redact`, in every format."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from gemtui.export_formats import Format
from tests.cli.conftest import Gemtui
from tests.conftest import DATA
from tests.redact.secrets import ENV, KEY_LINES, PEM, SECRETS, TEXTS, TOKENS
from tests.sessions import stores

ID = "5ec2e700-0000-4000-8000-000000000000"


def session(store: Path) -> str:
    """A session with every secret in prompt, title, thought, call, diff, screen and file name."""
    every = "\n".join([*SECRETS[: -len(TEXTS)], *(text for text, _ in TEXTS), PEM])
    env = "\n".join(f"{name}={value}" for name, value in ENV.items())
    texts = {
        "every": every,
        "env": env,
        "token": TOKENS["github-token"][0],
        "added": "\n".join(f"+{line}" for line in every.split("\n")),
        "nested": json.dumps({"nested": every}),
    }
    halves = [
        (line[: len(line) // 2], line[len(line) // 2 :]) for line in [*env.split("\n"), *SECRETS]
    ]
    screen = [[{"text": half} for half in line] for line in halves]
    records = (
        (DATA / "cli/secrets.jsonl").read_text("utf-8").replace('"«screen»"', json.dumps(screen))
    )
    for name, text in texts.items():
        records = records.replace(f"«{name}»", json.dumps(text)[1:-1])
    path = stores.session(store, ID, key="secrets")
    path.write_text(records)
    stores.marker(store, "secrets", "/home/adalove/src")
    return ID


@pytest.mark.parametrize("format", Format)
def test_no_part_of_a_secret_remains_in_an_export(
    store: Path, gemtui: Gemtui, format: Format
) -> None:
    id = session(store)
    dropped = () if format is Format.UNIFIED else ("--dropped",)
    open = gemtui("show", id, "--format", format, *dropped).out
    answer = gemtui.ok("show", id, "--format", format, *dropped, "--redact")
    assert "replaced " in answer.err
    assert "[redacted:" in answer.out.replace("\\", "")
    before, after = plain(open, format), plain(answer.out, format)
    for secret in (each.replace("\\", "") for each in [*SECRETS, *KEY_LINES, *ENV.values()]):
        assert secret in before
        for part in (secret[:12], secret[len(secret) // 2 :]):
            assert part not in after or len(part) < 4, part


def plain(export: str, format: Format) -> str:
    """The text of an export, whatever its form does to it."""
    if format in (Format.HTML, Format.REPLAY):
        export = unescape(re.sub(r"<[^>]*>", "", export))
    return export.replace("\\", "")
