"""A run that asks, by keys, on the real CLI: what is answered is what happens."""

from __future__ import annotations

import pytest
from textual.widgets import TextArea

from gemtui.paths import runs_dir
from gemtui.runs.listing import list_runs
from gemtui.ui.kit.text_area import ChangeScreen
from tests.gated import put_hooks, put_server
from tests.model_server import ModelServer, Request, Turn, answer, call, text
from tests.real_cli import GeminiCli
from tests.ui.people import NARROW
from tests.ui.run.test_questions import Asked
from tests.ui.run.test_screen import runner

pytestmark = pytest.mark.covers("gemtui/runs", "gemtui/extension")


async def ask_me(me: Asked) -> None:
    """Wait until it is known that a new run asks, as the extension is ready."""
    await me.sees("mode ask")


@pytest.mark.usefixtures("relaunching")
@pytest.mark.every_run
async def test_each_answer_is_what_happens(
    on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_hooks(on_loopback)
    project = on_loopback.project
    (project / "c.txt").write_text("one\ntwo\n")
    edit = {"file_path": "c.txt", "instruction": "x", "old_string": "two", "new_string": "2"}
    turns = [
        answer(call("write_file", file_path="a.txt", content="a\n")),
        answer(call("write_file", file_path="b.txt", content="b\n")),
        answer(call("run_shell_command", command="echo asked > ran.txt")),
        answer(call("replace", **edit)),
        answer(call("run_shell_command", command="git add a.txt")),
        answer(call("run_shell_command", command="git add c.txt")),
        answer(text("All done.")),
    ]
    with ModelServer(turns) as model:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
        async with runner(on_loopback.home, project, NARROW) as found:
            me = Asked(found.app, found.pilot)
            await ask_me(me)
            await me.ask("go")
            await me.sees("Gemini asks", "a.txt")
            await me.ready(1)
            await me.press("y")
            await me.sees("b.txt")
            await me.ready(2)
            await me.press("r")
            await me.type("b is taken")
            await me.press("enter")
            await me.sees("echo asked")
            await me.ready(3)
            await me.press("e")
            await me.until(lambda: isinstance(me.app.screen, ChangeScreen))
            me.app.screen.query_one(TextArea).text = "echo changed > ran.txt"
            await me.press("enter")
            await me.sees("− two")
            await me.ready(4)
            await me.press("e")
            await me.until(lambda: isinstance(me.app.screen, ChangeScreen))
            me.app.screen.query_one(TextArea).text = "one\nTWO\nthree\n"
            await me.press("ctrl+s")
            await me.sees("changed by you")
            await me.ready(4)
            await me.press("y")
            await me.sees("git add a.txt")
            await me.ready(5)
            await me.press("a")
            await me.sees("All done.")
            await me.ended()
            assert len(me.gate.question_numbers()) == 5, "the second git add was like the first"
            assert me.pane.run_shown is not None
            calls = me.pane.run_shown.own_transcript.calls()
            told = [each.answer.consent for each in calls if each.answer]
            assert told == ["allowed", "denied", "changed", "changed", "allowed"]
        said = str([each.body for each in model.requests])
    assert (project / "a.txt").read_text() == "a\n"
    assert not (project / "b.txt").exists()
    assert (project / "ran.txt").read_text() == "changed\n"
    assert (project / "c.txt").read_text() == "one\nTWO\nthree\n"
    assert "b is taken" in said
    (run,) = list_runs(runs_dir())
    assert run.asks == 0


async def test_sub_agents_and_servers_are_answered_as_well(
    on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_hooks(on_loopback)
    project = on_loopback.project
    put_server(on_loopback)
    made = [
        call("write_file", file_path="no.txt", content="n"),
        call("write_file", file_path="yes.txt", content="y"),
        call("run_shell_command", command="echo asked > ran.txt"),
    ]
    steps = iter([answer(*made), answer(call("complete_task", result={"response": "Written."}))])
    asked = [call("mcp_things_make", path=name) for name in ("never", "ever", "other")]
    agent = call("invoke_agent", agent_name="generalist", prompt="Write files.")
    main = iter([answer(agent), answer(*asked), answer(text("All done."))])

    def turn(request: Request) -> Turn:
        return next(steps if "complete_task" in request.tools else main)

    async def moved_on(me: Asked) -> None:
        before = me.shown
        await me.press("right")
        await me.until(lambda: me.shown != before)

    async def changed(me: Asked, to: str, key: str) -> None:
        await me.press("e")
        await me.until(lambda: isinstance(me.app.screen, ChangeScreen))
        me.app.screen.query_one(TextArea).text = to
        await me.press(key)

    with ModelServer(turn) as model:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
        async with runner(on_loopback.home, project, NARROW) as found:
            me = Asked(found.app, found.pilot)
            await ask_me(me)
            await me.ask("go")
            await me.sees("A subagent asks", "no.txt")
            await me.ready(1)
            await me.press("n")
            await me.sees("A subagent asks", "1 + y")
            await me.ready(2)
            await me.press("y")
            await me.sees("A subagent asks", "$ echo asked > ran.txt")
            await me.ready(3)
            await changed(me, "echo changed > ran.txt", "enter")
            await me.sees("1 of 3", "1 mcp_things_make never", "3 mcp_things_make other")
            await me.until(lambda: me.shown and me.question.view.has_focus)
            while "▌1 mcp_things_make" not in me.text:  # the hooks race for the first place
                await moved_on(me)
            for key, path in (("n", "never"), ("y", "ever")):
                await me.sees(f"▌1 mcp_things_make {path}" if path == "never" else "1 of 2")
                await me.ready(me.shown or 0)
                await me.press("down", "down", "down")
                await me.sees(f'"path": "{path}"')
                await me.ready(me.shown or 0)
                await me.press(key)
            await me.until(lambda: "of 2" not in me.text)
            await me.ready(me.shown or 0)
            await me.press("down", "down", "down")
            await me.sees('"path": "other"')
            await me.ready(me.shown or 0)
            await changed(me, '{"path": "another"}', "ctrl+s")
            await me.sees("changed by you", '"path": "another"')
            await me.ready(me.shown or 0)
            await me.press("y")
            await me.sees("All done.")
            await me.ended()
    names = {"yes.txt", "ran.txt", "ever", "another"}
    assert {each.name for each in project.iterdir()} == names
    assert (project / "ran.txt").read_text() == "changed\n"


async def test_a_word_reaches_the_agent_in_mid_run_and_prompts_follow(
    on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_hooks(on_loopback)
    turns = [
        answer(call("write_file", file_path="a.txt", content="a\n")),
        answer(text("First is done.")),
        answer(text("Third is done.")),
        answer(text("Second is done.")),
    ]
    with ModelServer(turns) as model:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
        async with runner(on_loopback.home, on_loopback.project, NARROW) as found:
            me = Asked(found.app, found.pilot)
            await ask_me(me)
            await me.ask("first")
            await me.ready(1)
            await me.press("i")
            await me.type("prefer the other library")
            await me.press("ctrl+s")
            await me.sees("1 message not read yet")
            for prompt in ("second", "thrd", "drop me"):
                await me.type(prompt)
                await me.press("enter")
                await me.until(lambda: me.pane.prompt.text == "")
            await me.sees("3 queued")
            await me.press("ctrl+r")
            await me.sees("Queue", "1 second", "3 drop me")
            await me.press("end", "d")
            await me.until(lambda: "drop me" not in me.text)
            await me.press("K")
            await me.sees("1 thrd", "2 second")
            await me.press("e")
            await me.until(lambda: isinstance(me.app.screen, ChangeScreen))
            me.app.screen.query_one(TextArea).text = "third"
            await me.press("ctrl+s")
            await me.sees("1 third")
            await me.press("escape")
            await me.until(lambda: me.app.screen is me.pane)
            await me.press("escape")
            await me.ready(1)
            await me.press("y")
            await me.sees("Second is done.")
            await me.ended()
            assert me.pane.run_shown is not None
            own = me.pane.run_shown.own_transcript
            ids = [line.id for line in own.outlines]
            assert len([id for id in ids if id.startswith("word-")]) == 1
            await me.press("home")
        said = [str(each.body) for each in model.requests]
    assert "prefer the other library" in said[1]
    assert "third" in said[2]
    assert "second" in said[3]
    assert not any("drop me" in each for each in said)


async def test_where_the_extension_is_missing_it_says_so_and_runs_as_it_would(
    on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [answer(call("write_file", file_path="a.txt", content="a\n")), answer(text("Refused."))]
    with ModelServer(turns) as model:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
        async with runner(on_loopback.home, on_loopback.project, NARROW) as found:
            me = Asked(found.app, found.pilot)
            await me.press("shift+tab")
            await ask_me(me)
            await me.ask("go")
            await me.sees("Install the extension?")
            await me.press("escape")
            await me.sees("This run can't ask for your approval")
            await me.press("escape")
            await me.until(lambda: me.app.screen is me.pane)
            assert me.pane.prompt.text == "go"
            await me.press("enter")
            await me.sees("Install the extension?")
            await me.press("n")
            await me.sees("Run without asking")
            await me.press("down", "enter")
            await me.sees("Refused.")
            await me.ended()
    assert not (on_loopback.project / "a.txt").exists()
