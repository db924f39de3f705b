"""What a run asks, at the keys: every answer, and what is no answer."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from textual.widgets import TextArea

from gemtui.agent.approval import Approval, ApprovalRequest, Difference, GateFolder, Settled
from gemtui.agent.run_folder import About, Exit, Owner, Request, RunFolder
from gemtui.calls.effect import digest
from gemtui.paths import runs_dir
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import path_of
from gemtui.runs.gate.similar_calls import ALWAYS
from gemtui.transcript.model import Consent
from gemtui.ui.kit.text_area import ChangeScreen
from gemtui.ui.run.live_run import LiveRun
from gemtui.ui.run.question_pane import TYPING, QuestionPane
from tests.fake_cli import INIT, FakeCli, uses
from tests.patience import turns_until, until
from tests.ui.people import BOTH, NARROW, NOW, WIDE, person, type_at
from tests.ui.run.test_screen import Runner, runner

ESCAPE = "\x1b[27u"
"""The key as terminals send it that tell it from the start of another: text may follow at once."""
SHELL = "run_shell_command"
LONG_COMMAND = "\n".join(f"echo step {number}" for number in range(60)) + "\nrm -rf /\n"


class Asked(Runner):
    """A person whose run asks."""

    @property
    def gate(self) -> GateFolder:
        assert self.pane.run_shown is not None
        return GateFolder.of(self.pane.run_shown.run.folder)

    @property
    def question(self) -> QuestionPane:
        return self.pane.question

    async def asked(self, number: int, tool: str = SHELL, **more: Any) -> None:
        """The run asks."""
        args = more.pop("arguments", {"command": "git push --force"})
        self.gate.create()
        self.gate.ask(ApprovalRequest(tool_name=tool, arguments=args, number=number, **more))

    async def asks(self, number: int, tool: str = SHELL, **more: Any) -> None:
        """The run asks, and its question takes the keys."""
        await self.asked(number, tool, **more)
        await self.ready(number)

    @property
    def shown(self) -> int | None:
        """The number of the question that is drawn."""
        return None if self.question.shown is None else self.question.shown.question.number

    async def ready(self, number: int) -> None:
        """Wait until the question is drawn, has the keys, and takes one."""
        view = self.question.view
        await self.until(lambda: self.shown == number and view.has_focus and view.accepts_keys)

    async def answered(self, number: int) -> Approval:
        """The answer, without the mark of the effect that was shown."""
        await self.until(lambda: self.gate.answer_to(number))
        found = self.gate.answer_to(number)
        assert found is not None
        return replace(found, shown="")


@asynccontextmanager
async def somebody(
    home: Path, project: Path, fake_cli: FakeCli, size: tuple[int, int] = WIDE, *steps: str
) -> AsyncIterator[Asked]:
    """Somebody who follows a run that goes on, of which there is no more than its folder."""
    fake_cli(f"print:{INIT}", "wait")
    folder = going_on(project, INIT, *(step.removeprefix("print:") for step in steps))
    async with person(home / ".gemini", size, project=project) as found:
        me = Asked(found.app, found.pilot)
        await me.sees("2 Run ●")
        await me.does("2", "^c stop")
        me.pane.prompt.focus()
        yield me
        end(folder)


def end(folder: RunFolder) -> None:
    """End a run that goes on."""
    folder.finish(Exit(code=0, started=NOW, ended=NOW))


def going_on(project: Path, *output: str) -> RunFolder:
    """Return the folder of a run that has said this so far; its supervisor is this process."""
    folder = RunFolder.create(runs_dir(), "going-on")
    about: About = {"prompt": "go"}
    request = Request(id="going-on", argv=("gemini",), cwd=str(project), environ={}, about=about)
    folder.write_request(request)
    folder.prompt.write_text("go")
    folder.stdout.write_text("".join(f"{line}\n" for line in output))
    folder.write_owner(Owner(pid=os.getpid(), began=psutil.Process().create_time()))
    return folder


async def test_a_question_takes_the_keys_and_yes_lets_it_run(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli, BOTH) as me:
        await me.asked(1, because="a rule asks")
        await me.sees("? Gemini asks", SHELL, "$ git push --force", "Why: a rule asks")
        await me.sees("! git push --force: it can discard", "2 Run ?", "? ask")
        await me.ready(1)
        await me.press("y")
        assert await me.answered(1) == Approval.allow()
        await me.until(lambda: not me.question.asks)
        assert me.app.focused is me.pane.prompt


@pytest.mark.parametrize("answer", ["y", "n", "rbecause\r"])
async def test_what_is_typed_after_the_last_answer_is_in_the_prompt(
    home: Path, project: Path, fake_cli: FakeCli, answer: str
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asked(1)
        await me.ready(1)
        first, rest = answer[0], answer[1:]
        await me.burst(first)
        for key in rest:
            await me.burst(key)
        type_at(me.app, "not y")
        await me.until(lambda: me.pane.prompt.text == "not y")
        assert await me.answered(1)


async def test_no_counts_at_once_and_takes_a_reason_and_a_command_can_be_changed(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli, NARROW) as me:
        for number, key, expected in ((1, "n", Approval.deny()), (2, "x", Approval.stop())):
            await me.asks(number, arguments={"command": LONG_COMMAND})
            await me.press(key)
            assert await me.answered(number) == expected

        await me.asks(3)
        await me.does("r", "the model reads it")
        await me.does("enter", "Enter a reason")
        await me.type("use a branch")
        await me.press("enter")
        assert await me.answered(3) == Approval.deny("use a branch")

        await me.asks(4, arguments={"command": "git push --force", "description": "d"})
        await me.press("e")
        await me.on(ChangeScreen)
        area = me.app.screen.query_one(TextArea)
        assert area.text == "git push --force"
        await me.press(*["backspace"] * len(" --force"), "ctrl+j", "l", "s", "enter")
        assert await me.answered(4) == Approval.allow(
            {"command": "git push\nls", "description": "d"}
        )


async def test_a_word_is_offered_as_long_as_the_run_hears_it(
    home: Path, project: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with somebody(home, project, fake_cli) as me:
        assert "send now" not in me.text
        run = SimpleNamespace(
            hears=False
        )  # the pane asks it each time it shows the next run's options
        monkeypatch.setattr(LiveRun, "accepts_messages", property(lambda _: run.hears))
        run.hears = True
        me.pane.show_options()
        await me.sees("send now")
        run.hears = False
        me.pane.show_options()
        await me.lacks("send now")


async def test_similar_calls_are_allowed_in_this_run_or_always_where_a_narrow_rule_can_be_made(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asks(1, arguments={"command": "git add a.txt"})
        await me.sees("a/A allow git add … (")
        await me.press("a")
        found = await me.answered(1)
        assert found.consent is Consent.ALLOWED
        assert Policy.parse(found.rules).rules[0].command_prefixes == ("git add",)
        assert not path_of(ALWAYS).exists()

        await me.asks(2, arguments={"command": "echo x > a.txt"})
        await me.sees("a/A not available: it writes a file")
        for key in "aA":
            await me.press(key)
            await me.is_told("No rule for similar")
            assert me.gate.answer_to(2) is None
        await me.press("n")

        await me.asks(3, "write_file", arguments={"file_path": "a.txt", "content": "x"})
        await me.sees("a/A allow writes and edits of the file a.txt")
        await me.press("A")
        assert (await me.answered(3)).rules
        await me.until(path_of(ALWAYS).exists)
        await me.is_told("policy always")
        assert len(Policy.load(path_of(ALWAYS)).rules) == 1

        for number, key in ((4, "y"), (5, "a")):
            file = project / f"{key}.txt"
            file.write_text("one\n")
            args = {"file_path": file.name, "content": f"two {key}\n"}
            await me.asked(number, "write_file", arguments=args)
            await me.sees("1 − one", f"1 + two {key}")
            await me.ready(number)
            file.write_text(f"by somebody else {key}\n")
            await me.press(key)
            await me.hears("changed since this call was shown", number - 3)
            await me.sees(f"1 − by somebody else {key}")
            assert me.gate.answer_to(number) is None
            await me.ready(number)
            await me.press(key)
            assert (await me.answered(number)).consent is Consent.ALLOWED


@pytest.mark.parametrize(("key", "said"), [("a", "in this run"), ("A", "from now on")])
async def test_allowing_similar_calls_is_revoked_by_a_key(
    home: Path, project: Path, fake_cli: FakeCli, key: str, said: str
) -> None:
    async with somebody(home, project, fake_cli, NARROW, uses("one", "read_file", "a.txt")) as me:
        await me.asks(1, "read_file", arguments={"file_path": "a.txt"}, tool_use_id="one")
        await me.press(key)
        await me.answered(1)
        await me.is_told("To revoke this, press esc, then u")
        me.gate.settle(1, Settled(consent=Consent.ALLOWED))
        await me.sees(f"allowed by you, and similar calls {said}")
        assert path_of(ALWAYS).exists() is (key == "A")
        await me.does("escape u", "allowed by you; similar calls need approval again")
        await me.until(
            lambda: any("No longer allowed in" in said and "read_file" in said for said in me.said)
        )
        assert me.gate.is_revoked(1)
        assert not (key == "A" and Policy.load(path_of(ALWAYS)).rules)
        assert not me.pane.can("take_back")


async def test_without_an_editor_a_call_is_changed_in_a_field_and_shown_before_it_runs(
    home: Path, project: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.txt").write_text("one\ntwo\n")
    async with somebody(home, project, fake_cli) as me:
        await me.asked(
            1, "replace", arguments={"file_path": "a.txt", "old_string": "two", "new_string": "2"}
        )
        await me.sees("2 − two", "2 + 2")
        await me.ready(1)
        await me.does("e", "New contents of the file")
        await me.press("ctrl+end", "Z", "ctrl+s")
        await me.sees(
            "changed by you", "3 + Z", "Gemini asked for: replace with different arguments"
        )
        assert me.gate.answer_to(1) is None
        await me.ready(1)
        await me.press("y")
        assert await me.answered(1) == Approval.allow(
            {"file_path": "a.txt", "old_string": "one\ntwo\n", "new_string": "one\n2\nZ"}
        )

        await me.asks(2, "mcp_docs_find", arguments={"q": 1})
        await me.sees('"q": 1')
        await me.does("e", "Arguments of the call")
        await me.does("x ctrl+s", "not valid JSON")
        await me.does("backspace left left 2 ctrl+s", "changed by you", '"q": 12')
        await me.ready(2)
        await me.press("y")
        assert await me.answered(2) == Approval.allow({"q": 12})


async def test_somebody_is_there_while_an_editor_has_the_terminal(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asked(1)
        await me.until(me.gate.last_presence)
        (me.gate.path / "here").unlink()
        until(me.gate.last_presence)  # the event loop waits here, as it does for an editor


# --- keys that are no answer ---------------------------------------------------------------------


async def test_who_types_goes_on_typing(home: Path, project: Path, fake_cli: FakeCli) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.type("say ")
        await me.asked(1)
        await me.sees("? Gemini asks", "Press esc to answer", "$ git push")
        await me.type("yaAnx")
        assert me.pane.prompt.text == "say yaAnx"
        assert me.gate.answer_to(1) is None
        await me.press("escape")
        assert me.question.view.has_focus
        await me.ready(1)
        await me.press("n")
        assert await me.answered(1) == Approval.deny()
        assert me.pane.prompt.text == "say yaAnx"


async def test_a_burst_behind_the_key_that_led_there_answers_nothing(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.type("x")
        await me.asked(1)
        await me.until(lambda: me.question.shown is not None)
        await me.burst(f"{ESCAPE}yyyAx")
        assert me.question.view.has_focus
        await me.is_told("Press the key again")
        assert me.gate.answer_to(1) is None


@pytest.mark.parametrize("key", ["r", "e"])
async def test_what_is_typed_behind_a_key_that_came_too_soon_is_no_answer(
    home: Path, project: Path, fake_cli: FakeCli, key: str
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.type("x")
        await me.asked(1)
        await me.until(lambda: me.question.shown is not None)
        began = time.monotonic()
        await me.burst(ESCAPE + key)
        await me.is_told("Press the key again")
        await me.until(lambda: me.question.view.accepts_keys)
        assert time.monotonic() - began > TYPING
        assert me.app.screen is me.pane
        await me.press("n")
        assert await me.answered(1) == Approval.deny()


async def test_keys_elsewhere_answer_nothing_and_a_key_held_down_answers_one_question(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asks(1)
        for opens, *keys in (["r", "escape"], ["e", "escape"], ["question_mark", *"yn", "escape"]):
            await me.press(opens)
            await me.until(lambda: me.app.screen is not me.pane)
            await me.press(*keys)
            await me.until(lambda: me.app.screen is me.pane)
            await me.ready(1)
        await me.does("question_mark", "Allow this call, once", "Deny this call and stop the run")
        await me.press("escape")
        await me.until(lambda: me.app.screen is me.pane)
        await me.press("escape")
        assert me.pane.view.has_focus
        await me.press("escape")
        assert me.question.view.has_focus
        await me.press("tab")
        assert me.pane.prompt.has_focus
        assert me.gate.answer_to(1) is None

        await me.press("escape")
        await me.asked(2, arguments={"command": "rm -rf /"})
        await me.ready(1)
        await me.burst("y" * 40)
        assert await me.answered(1) == Approval.allow()
        await me.until(lambda: me.shown == 2)
        assert me.gate.answer_to(2) is None


async def test_the_key_of_an_answer_pressed_once_too_often_keeps_no_question_waiting(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asks(1)
        await me.press("y")
        await me.until(lambda: not me.question.asks)
        await me.press("y", "y")
        await me.asks(2)
        assert me.pane.prompt.text == ""
        await me.press("n")
        await me.until(lambda: not me.question.asks)
        await me.press("n", "o")
        await me.asked(3)
        await me.sees("Press esc to answer", "$ git push")
        assert me.pane.prompt.text == "no"


async def test_a_key_is_no_answer_to_what_is_drawn_before_it_acts(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asks(1)
        await me.asked(2, arguments={"command": "rm -rf /"})
        await me.until(lambda: len(me.question.waiting) == 2)
        held, go_on = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            held.set()
            await go_on.wait()

        me.question.call_next(hold)
        await held.wait()
        type_at(me.app, "y")
        await turns_until(lambda: me.question.message_queue_size > 0)
        me.gate.settle(1, Settled(consent=Consent.ABANDONED))
        await turns_until(lambda: me.shown == 2)
        go_on.set()
        await me.is_told("Press the key again")
        assert not any(map(me.gate.is_answered, (1, 2)))


# --- several, elsewhere, hostile -----------------------------------------------------------------


async def test_several_stand_in_a_list(home: Path, project: Path, fake_cli: FakeCli) -> None:
    async with somebody(home, project, fake_cli, NARROW) as me:
        for number, command in enumerate(("git push", "make", "npm test"), 1):
            await me.asked(number, arguments={"command": command}, subagent=number == 2)
        await me.sees("1 of 3", "$ git push", f"2 {SHELL} make")
        await me.ready(1)
        await me.does("l", "2 of 3", "$ make", "A subagent asks")
        await me.ready(2)
        await me.press("y")
        assert await me.answered(2) == Approval.allow()
        await me.sees("2 of 2", "$ npm test")
        await me.does("l", "1 of 2", "$ git push")


async def test_they_stand_in_the_order_of_their_calls(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    calls = [uses(f"t{n}", "write_file", f"{n}.txt") for n in range(3)]
    async with somebody(home, project, fake_cli, NARROW, *calls) as me:
        await me.sees("2.txt")
        for number, at in enumerate((2, 0, 1), 1):
            args = {"file_path": f"{at}.txt", "content": "x"}
            await me.asked(number, "write_file", arguments=args, tool_use_id=f"t{at}")
        await me.sees("1 write_file 0.txt", "2 write_file 1.txt", "3 write_file 2.txt")
        await me.until(lambda: len(me.question.waiting) == 3)
        await me.until(lambda: me.question.view.has_focus and me.question.view.accepts_keys)
        while me.shown != 2:
            await me.press("h")
            await me.until(lambda: me.shown)
        await me.ready(2)
        await me.press("y")
        await me.ready(3)
        await me.sees("1 of 2", "1 write_file 1.txt")


async def test_a_hundred_questions(home: Path, project: Path, fake_cli: FakeCli) -> None:
    async with somebody(home, project, fake_cli, NARROW) as me:
        for number in range(1, 101):
            await me.asked(number, arguments={"command": f"make part{number}"})
        await me.sees("1 of 100", "make part1")
        await me.ready(1)
        await me.does("h", "100 of 100", "make part100")


async def test_what_was_answered_or_settled_elsewhere_goes(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asks(1)
        await me.press("r")
        await me.type("no")
        me.gate.answer(1, Approval.allow())
        await me.press("enter")
        await me.is_told("Already answered in another gemtui")
        assert me.gate.answer_to(1) == Approval.allow()

        await me.asks(2)
        me.gate.settle(2, Settled(consent=Consent.ABANDONED))
        await me.until(lambda: not me.question.asks)
        assert "? ask" not in me.text


HIDDEN = set("\x1b\x07\0\u202e\u200b")
HOSTILE = "ls \x1b]0;own\x07 \x1b[2J \u202e txt\u200b \0 \ud800"
HOSTILE_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    (SHELL, {"command": HOSTILE, HOSTILE: HOSTILE}),
    ("write_file", {"file_path": HOSTILE.replace("\ud800", ""), "content": HOSTILE}),
    ("replace", {"file_path": "a.txt", "old_string": "", "new_string": HOSTILE}),
    (f"mcp_{HOSTILE}", {HOSTILE: [HOSTILE, {HOSTILE: None}]}),
)


async def test_hostile_arguments_are_drawn_and_pass_unchanged(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli, BOTH) as me:
        for number, (tool, arguments) in enumerate(HOSTILE_CALLS, 1):
            await me.asks(number, tool, arguments=arguments, because=HOSTILE)
            assert not set(me.text) & HIDDEN
            await me.does("enter", "what will run if")
            assert not set(me.text) & HIDDEN
            await me.press("escape")
            await me.ready(number)
            await me.press("y")
            assert await me.answered(number) == Approval.allow()


async def test_megabytes_are_drawn_in_part_and_opened_whole(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    huge = "echo 0123456789\n" * 80_000
    async with somebody(home, project, fake_cli) as me:
        for number, tool in enumerate((SHELL, "write_file", "mcp_docs_find"), 1):
            key = "command" if tool == SHELL else "content"
            await me.asks(number, tool, arguments={"file_path": "a.txt", key: huge})
            await me.does("end", "press enter to see everything")
            await me.does("enter", "what will run if you allow it")
            await me.press("escape")
            await me.ready(number)
            await me.press("n")
            assert await me.answered(number) == Approval.deny()


async def test_the_card_tells_what_was_answered(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    calls = [uses("t1", "write_file", "a.txt"), uses("t2", "write_file", "b.txt")]
    async with somebody(home, project, fake_cli, WIDE, *calls) as me:
        await me.asked(1, "write_file", arguments={"file_path": "a.txt"})
        await me.asked(2, "write_file", arguments={"file_path": "b.txt"})
        await me.sees("? write_file a.txt waiting", "? write_file b.txt waiting")
        me.gate.settle(1, Settled(consent=Consent.ALLOWED))
        me.gate.settle(2, Settled(consent=Consent.DENIED, reason="another name"))
        await me.sees("allowed by you", "denied by you: another name")


async def test_a_sub_agents_card_stands_once_when_the_run_has_ended(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asked(1, subagent=True, asked=5)
        await me.sees("a subagent's call, waiting for your answer")
        me.gate.settle(1, Settled(consent=Consent.DENIED, reason="no"))
        await me.sees("a subagent's call, denied by you: no")
        assert me.pane.run_shown is not None
        end(me.pane.run_shown.run.folder)
        await me.ended()
        ids = [line.id for line in me.pane.run_shown.own_transcript.outlines]
        assert ids.count("question-1") == 1


async def test_another_gemtui_shows_the_question(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asks(1)
        async with person(home / ".gemini", WIDE, project=project) as other:
            await other.until(lambda: other.app.runs.alive)
            await other.sees("2 Run ?")
            await other.is_told("A run needs your approval")
            assert not any("still active" in said for said in other.said)
            await other.does("2", "? Gemini asks", "$ git push --force")
            await other.does("ctrl+l", "asks", "go")
            await other.press("escape")


async def test_the_first_question_of_another_run_is_another_question(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asked(1)
        first = me.gate
        await me.ready(1)
        await me.press("escape", "tab", "ctrl+n")
        await me.ask("second")
        await me.until(lambda: len(me.app.runs.alive) == 2 and me.gate != first)
        await me.asked(1, arguments={"command": "rm -rf sub"})
        await me.sees("$ rm -rf sub")
        await me.ready(1)
        me.pane.show_run(next(run for run in me.app.runs.alive if run.prompt == "go"))
        await me.until(lambda: me.gate == first)
        await me.sees("$ git push --force")
        assert me.question.shown is not None
        assert me.question.shown.question in me.question.waiting


async def test_leaving_says_that_the_question_waits(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(f"print:{INIT}", "wait")
    async with runner(home, project) as found:
        me = Asked(found.app, found.pilot)
        await me.ask("go")
        await me.sees("^c stop")
        await me.asks(1)
        await me.does(
            "ctrl+q", "A run is still active and needs an answer", "its question will keep waiting"
        )
        await me.press("escape")


# --- nothing dangerous below the fold ------------------------------------------------------------


async def test_a_yes_scrolls_to_the_end_of_a_long_call_and_counts_when_that_has_been_seen(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    content = "".join(f"line {number}\n" for number in range(60))
    async with somebody(home, project, fake_cli, NARROW) as me:
        for number, key in enumerate("yaA", 1):
            await me.asks(
                number, "write_file", arguments={"file_path": f"{key}.txt", "content": content}
            )
            await me.sees("more lines below (y scrolls down)")
            pressed = 0
            while me.question.view.below:
                offset = me.question.view.scroll_offset.y
                await me.press(key)
                assert me.question.view.scroll_offset.y > offset
                assert me.gate.answer_to(number) is None
                await me.ready(number)
                pressed += 1
            assert pressed > 1
            await me.is_told("Not answered")
            await me.sees("line 59", "End (62 lines)")
            await me.press("up")
            await me.press(key)
            assert (await me.answered(number)).consent is Consent.ALLOWED

        await me.asks(4, arguments={"command": LONG_COMMAND})
        await me.sees("! rm -rf /: it can delete", "$ echo step 0", "more lines below")
        assert "echo step 59" not in me.text
        await me.press("end")
        await me.until(lambda: me.question.view.reached_end)
        await me.press("y")
        await me.is_told("only just appeared")
        assert me.gate.answer_to(4) is None
        await me.ready(4)
        await me.press("y")
        assert await me.answered(4) == Approval.allow()


async def test_y_held_down_does_not_page_through_a_call_and_warnings_that_do_not_fit_are_counted(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli, NARROW) as me:
        await me.asks(1, arguments={"command": LONG_COMMAND})
        await me.burst("y" * 40)
        assert me.gate.answer_to(1) is None
        assert me.question.view.below
        await me.ready(1)
        await me.press("n")
        await me.answered(1)

        await me.asks(
            2, arguments={"command": "\n".join(f"rm file{number}" for number in range(30))}
        )
        await me.sees("30 warnings", "! rm file0: it can delete", "more lines below")
        await me.press("y")
        await me.is_told("Not answered")
        assert me.gate.answer_to(2) is None


async def test_what_is_too_long_to_draw_is_read_in_the_whole_view_before_a_yes_counts(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with somebody(home, project, fake_cli) as me:
        await me.asks(1, "mcp_docs_find", arguments={"text": "x" * 30_000})
        await me.does("end", "more characters; press enter to see everything")
        await me.ready(1)
        await me.press("y")
        await me.is_told("to see everything")
        assert me.gate.answer_to(1) is None
        await me.does("enter", "what will run if you allow it")
        await me.press("end", "escape")
        await me.ready(1)
        await me.press("y")
        assert await me.answered(1) == Approval.allow()


# --- what a call does ----------------------------------------------------------------------------


async def test_what_really_happens_and_who_would_do_it_are_shown(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    (project / "a.txt").write_bytes(b"one\r\n")
    (project / "sub").mkdir()
    async with somebody(home, project, fake_cli, BOTH) as me:
        args = {"file_path": "a%2etxt", "content": "two"}
        await me.asked(1, "write_file", arguments=args, again=4, because="The file has changed.")
        await me.sees(f"reads this path as {project}/a.txt", "a.txt +1 −1", "1 − one", "1 + two")
        await me.sees("the newline at the end is removed", "Asked again: The file has changed.")
        await me.ready(1)
        while me.question.view.below:
            await me.press("y")
            await me.ready(1)
        await me.press("y")
        await me.answered(1)
        shown, found = me.question.shown, me.gate.answer_to(1)
        assert found is not None
        assert found.shown
        assert shown is None or found.shown == shown.proposal.effect.mark

        await me.asked(2, arguments={"command": "bash -c 'rm -rf x'", "dir_path": "sub"})
        await me.sees("removes the outer shell", f"in {project}/sub", "$ rm -rf x")
        await me.asked(
            3, "mcp_docs_find", arguments={"q": 1}, server="docs", origin="npx docs-server"
        )
        await me.asked(
            4, "write_file", arguments={"file_path": "p\u0430ckage.json", "content": "x"}
        )
        await me.asked(5, arguments={"command": "ls\u00a0x/e.sh"})
        await me.sees("1 of 4")
        for number, *texts in (
            (3, "tool of the MCP server docs (npx docs-server)", "If gemtui's hook is killed"),
            (4, "! `p\u0430ckage` mixes Latin and Cyrillic letters"),
            (5, "! it contains control characters", "$ ls⟨U+00A0⟩x/e.sh"),
        ):
            await me.ready(number - 1)
            await me.press("l")
            await me.ready(number)
            await me.sees(*texts)


async def test_a_file_that_differs_from_what_was_approved_is_shown_and_put_back_by_a_key(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    path = project / "a.txt"
    path.write_text("another text\n")
    async with somebody(home, project, fake_cli, NARROW) as me:
        await me.asked(1, "write_file", arguments={"file_path": "a.txt", "content": "new\n"})
        me.gate.settle(1, Settled(consent=Consent.ALLOWED))
        me.gate.keep_former(1, b"former\n")
        me.gate.differs(
            Difference(
                number=1,
                path=str(path),
                approved="new\n",
                found="another text\n",
                former="former\n",
                was=digest(b"former\n"),
                is_now=digest(b"another text\n"),
            )
        )
        await me.until(lambda: not me.question.asks)
        await me.press("escape")
        assert me.pane.run_shown is not None
        end(me.pane.run_shown.run.folder)
        await me.ended()
        await me.until(lambda: me.pane.can("differing"))
        await me.press("D")
        await me.sees(
            "Files that differ from what you approved",
            "View",
            "Restore the text from before the call",
        )
        await me.does("enter", "1 − new", "1 + another text")
        await me.does("escape", "Restore the text from before the call")
        await me.press("down", "enter")
        await me.is_told("Restored as it was before")
        assert path.read_text() == "former\n"
