"""A program that links and forgets extensions as Gemini CLI does, or does as it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.test_detect import script
from tests.fake_cli import HELP

LINKS = """
link) /bin/mkdir -p "$place"; printf '{"type": "link", "source": "%s"}' "$3" > "$place/$file";;
uninstall) /bin/rm -r "$place";;
"""


def stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cases: str = LINKS, *, version: str = "0.61.0"
) -> Path:
    """Make it the CLI that is found; `cases`: of a shell, what its commands about extensions do.

    The words that it was given stand in the file `words` beside it.
    """
    (tmp_path / "help").write_text(HELP)
    body = (
        f'case "$1" in --version) echo {version}; exit;;\n'
        f"--help) /bin/cat {tmp_path}/help; exit;; esac\n"
        f'echo "$@" >> {tmp_path}/words; file=.gemini-extension-install.json\n'
        f'place=$GEMINI_CLI_HOME/.gemini/extensions/gemtui; case "$2" in {cases} esac'
    )
    program = script(tmp_path / "gemini", body)
    monkeypatch.setenv("GEMINI_CLI_PATH", str(program))
    return program
