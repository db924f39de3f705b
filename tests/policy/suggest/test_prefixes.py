"""Which command prefixes are proposed, and which never are."""

from __future__ import annotations

from gemtui.policy.suggest.prefixes import NoPrefix, Prefix, prefix_of
from tests.rows import each_row, table

TABLES = table("policy/prefixes.json")

PROPOSED = TABLES["proposed"]

REFUSED = TABLES["refused"]


@each_row("command, prefix", PROPOSED.items())
def test_a_prefix_says_what_is_done(command: str, prefix: str) -> None:
    found = prefix_of(command)
    assert isinstance(found, Prefix)
    assert found.text == prefix
    assert found.opens.startswith("with any arguments")


@each_row("command", REFUSED)
def test_what_could_do_anything_gets_none(command: str) -> None:
    found = prefix_of(command)
    assert isinstance(found, NoPrefix)
    assert found.why
    assert len(found.what) <= 40 or " " in found.what


def test_installing_is_called_so() -> None:
    found = prefix_of("npm install left-pad")
    assert isinstance(found, Prefix)
    assert "any package" in found.opens
