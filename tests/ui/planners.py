"""A person in the policy pane, with policies of their own in a place of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.worker import Worker

from gemtui.config import Config
from gemtui.policy.file.policy_files import policies_dir
from gemtui.ui.policy.editor import CommandPreview
from gemtui.ui.policy.screen import PolicyScreen
from gemtui.ui.rules.draft import Draft
from gemtui.ui.rules.form import RuleForm
from tests.ui.people import WIDE, Person, person

WORK = """\
# what I do all day
[[rule]]
toolName = "run_shell_command"
commandRegex = "git push"
decision = "deny"
priority = 300

[[rule]]
toolName = "run_shell_command"
commandPrefix = ["pytest", "ruff"]
decision = "allow"
priority = 200

[[rule]]
toolName = ["write_file", "replace"]
argsPattern = "\\"file_path\\":\\"src/"
decision = "allow"
priority = 150

[[rule]]
toolName = ["read_file", "glob", "grep_search"]
decision = "allow"
priority = 100
"""


class Planner(Person):
    """Somebody in the policy pane."""

    @property
    def pane(self) -> PolicyScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, PolicyScreen)
        return screen

    @property
    def draft(self) -> Draft:
        return self.pane.draft

    @property
    def tools(self) -> list[str]:
        """The first tool of each rule, in the order of the table."""
        entries = (row.entry.rule for row in self.pane.main.rules.items)
        return [(rule.tools or ("any",))[0] for rule in entries if rule is not None]

    async def settled(self) -> None:
        """Wait until all that was asked for has been decided and drawn."""
        await self.pilot.pause()
        await self.until(lambda: all(each.is_finished for each in self._deciding()))
        await self.pilot.pause()

    def _deciding(self) -> list[Worker[Any]]:
        """What the pane still works on, but for the watch over its file and open dialogs."""
        mine = (each for each in self.app.workers if self.pane in each.node.ancestors_with_self)
        return [each for each in mine if each.group not in ("watch", "dialog")]

    async def form(self) -> RuleForm:
        """The form of a rule, once it is there."""
        await self.until(lambda: isinstance(self.app.screen, RuleForm) and self.app.screen.focused)
        screen = self.app.screen
        assert isinstance(screen, RuleForm)
        return screen

    async def fill(self, **values: str) -> None:
        """Put texts into fields of the form; the keyboard is for those that matter."""
        form = await self.form()
        for name, value in values.items():
            form.query_one(f"#{name}").focus()
            await self.press("end", "shift+home", "delete")
            await self.type(value)


def policy(name: str, text: str = WORK) -> Path:
    """A policy of ours."""
    folder = policies_dir()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


@asynccontextmanager
async def planner(
    home: Path,
    size: tuple[int, int] = WIDE,
    config: Config | None = None,
    *,
    project: Path | None = None,
) -> AsyncIterator[Planner]:
    """Somebody in the policy pane, once it has opened the first policy there is."""
    project = project or home / "project"
    project.mkdir(exist_ok=True)
    async with person(home / ".gemini", size, config, project=project) as me:
        somebody = Planner(me.app, me.pilot)
        await somebody.press("3")
        await somebody.on(PolicyScreen)
        await somebody.until(lambda: somebody.pane.takes_keys)
        await somebody.until(lambda: somebody.pane.editor.begun.is_set())
        await somebody.until(lambda: somebody.pane.preview != CommandPreview())
        yield somebody
