"""A home, a project and policy files as a case names them, in a folder of their own.

The cases speak of the home `/home/dev` and of the project `/home/dev/proj`; here both are elsewhere
and stand beside each other, as they did where the cases were recorded.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.real_cli import SETTINGS, GeminiCli
from tests.tools.observation.cases import Case

_HOME, _PROJECT = "/home/dev", "/home/dev/proj"
_MODEL = "gemini-3-pro-preview"
_HERE = Path(__file__).parent

PROGRAMS = ("bash", "sh", "node")
"""All that a shell command finds on PATH beside Python: what is allowed is really run, and must do
no harm and wait for nothing.
"""

PROJECT = {
    "hello.py": "print('hello')\n",
    "b.txt": "x\n",
    "docs/index.md": "# docs\n",
    "src/app.py": "print('app')\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one run of the CLI takes place."""

    cli: GeminiCli
    case: Case

    @property
    def policies(self) -> Path:
        """The folder of the case's policy files."""
        return self.cli.folder / "policies"

    @classmethod
    def set_up(cls, program: Path, folder: Path, case: Case) -> Self:
        """Write everything that the case's situation consists of below `folder`."""
        folder.mkdir(parents=True)
        place = cls(cli=GeminiCli.set_up(program, folder, project="proj"), case=case)
        place._write_settings()
        for name, text in {**PROJECT, **case.project_files}.items():
            place._write(place.cli.project / name, place.here(text))
        if "mcpServers" in case.settings:
            shutil.copy(_HERE / "mcp.py", place.cli.project / "mcp.py")
        users = {name for each in case.given if each.kind == "user" for name in each.names}
        for name, text in case.files.items():
            above = place.cli.store / "policies" if name in users else place.policies
            place._write(above / name, place.here(text))
        return place

    def _write_settings(self) -> None:
        settings = json.loads(self.here(json.dumps(self.case.settings)))
        (self.cli.store / "settings.json").write_text(json.dumps(_merged(SETTINGS, settings)))

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        else:
            path.write_bytes(text.encode())

    def here(self, text: str) -> str:
        """The text of a case with the places of this run."""
        project, home = str(self.cli.project), str(self.cli.home)
        return text.replace(_PROJECT, project).replace(_HOME, home)

    def args(self, case: Case) -> dict[str, Any]:
        """The arguments of a call with the places of this run."""
        found: dict[str, Any] = json.loads(self.here(json.dumps(case.args)))
        return found

    def words(self) -> list[str]:
        """The command but for what tells a headless run from ACP."""
        words = [str(self.cli.program), f"--model={_MODEL}", f"--approval-mode={self.case.mode}"]
        for given in self.case.given:
            match given.kind:
                case "policy":
                    words += [f"--policy={self.policies / name}" for name in given.names]
                case "policy_dir":
                    words.append(f"--policy={self.policies}")
                case "admin":
                    words += [f"--admin-policy={self.policies / name}" for name in given.names]
                case "policy_paths":
                    words += [f"--policy={self.here(value)}" for value in given.values]
        return [*words, *map(self.here, self.case.flags)]

    def environment(self, url: str) -> dict[str, str]:
        """The whole environment of the run, with a PATH of harmless programs."""
        return {**self.cli.environment(url), "PATH": str(self._programs())}

    def _programs(self) -> Path:
        folder = self.cli.folder / "bin"
        if not folder.exists():
            folder.mkdir()
            (folder / "python3").symlink_to(sys.executable)
            for name in PROGRAMS:
                if found := shutil.which(name, path=os.environ["PATH"]):
                    (folder / name).symlink_to(found)
        return folder


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for name, value in over.items():
        below = both.get(name)
        nested = isinstance(below, dict) and isinstance(value, dict)
        both[name] = _merged(below, value) if nested and below else value
    return both
