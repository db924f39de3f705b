"""Undo, redo and fork by keys, in the sessions pane and in the run pane."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

import psutil
import pytest

from gemtui.agent.run_folder import Owner, Request, RunFolder
from gemtui.checkpoints.plan import Step
from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.store import Reason, WritingCall, only_one
from gemtui.checkpoints.undo import open_project
from gemtui.paths import gemini_home, runs_dir
from gemtui.runs.undo.checkpointing import project_of
from gemtui.runs.undo.undo import (
    StepTexts,
    Undone,
    interrupted_change,
    redo_project,
    step_texts,
    undo_session,
)
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from gemtui.ui.run.prompt import PromptArea
from gemtui.ui.undo import undo_screen
from tests.patience import PATIENCE
from tests.sessions.stores import uuid
from tests.ui.people import BOTH, NARROW, WIDE, Person, person
from tests.ui.undo.conftest import HOSTILE, to_second_prompt


async def test_undo_shows_first_then_acts_and_leads_on_and_redo_leads_back(project: Path) -> None:
    async with person(gemini_home(), BOTH, project=project) as me:
        await to_second_prompt(me)
        await me.does("U", "Undo to before prompt 2 of 3: Draw the moon.", "files and chat")
        await me.sees("! leave alone notes.md", "restore sea.py", "remove moon.py")
        await me.sees("2 to remove", "rm -rf build", "with 1 earlier prompt")
        assert "\x1b]0" not in me.text
        assert "owned" in me.text
        assert (project / "moon.py").exists()
        await me.does("y", "done", "1 left alone, 1 restored, 2 removed")
        assert not (project / "moon.py").exists()
        assert not (project / HOSTILE).exists()
        assert (project / "sea.py").read_text() == "calm\n"
        assert (project / "notes.md").read_text() == "a\nB, mine\nc\n"
        await me.does("R", "Redo: reverse the undo to before prompt 2", "restore moon.py")
        assert not (project / "moon.py").exists()
        await me.does("y", "done", "restored")
        assert (project / "moon.py").read_text() == "full\n"
        assert (project / "sea.py").read_text() == "storm\n"
        await me.press("escape")
        await me.until(lambda: me.view.has_focus)
        await me.does("U", "nothing has changed yet")
        await me.does("y", "left alone")
        await me.does("c", "continues session", "Look around.")
        assert prompt(me) == "Draw the moon."
        assert "Cleaned." not in me.text


async def test_in_the_run_pane_undo_leads_further_back(project: Path) -> None:
    async with person(gemini_home(), NARROW, project=project) as me:
        await to_second_prompt(me)
        await me.does("c", "continues session", "Cleaned.")
        await me.does("escape U", "Undo to before prompt 3 of 3: Now clean up.")
        await me.does("s s", "chat only", "files are not changed", "nothing has changed yet")
        await me.does("y", "✓ done")
        await me.press("c")
        await me.until(lambda: prompt(me) == "Now clean up.")
        await me.does("escape home U", "Undo to before prompt 1 of 2: Look around.")
        await me.does("s s", "chat only", "files are not changed", "nothing has changed yet")
        await me.does("y", "✓ new chat", "empty, because this is the first prompt", "done")
        await me.lacks("Nothing would be left")
        await me.press("c")
        await me.until(lambda: prompt(me) == "Look around.")
        assert "continues session" not in me.text


def prompt(me: Person) -> str:
    areas = me.app.screen.query(PromptArea)
    return areas.first().text if areas else ""


async def test_checkpoints_are_marked_at_prompts_and_in_the_facts(project: Path) -> None:
    take(project, Reason.PROMPT)
    async with person(gemini_home(), WIDE, project=project) as me:
        await to_second_prompt(me)
        await me.does("right_curly_bracket", "↶ checkpoint")
        assert me.text.count("↶ checkpoint") == 1
        await me.does("i", "files and chat; 1 checkpoint, the newest")
        await me.does("escape c", "continues session", "↶ checkpoint")
        assert me.text.count("↶ checkpoint") == 1


async def test_calls_whose_changes_are_in_a_checkpoint_are_marked(project: Path) -> None:
    take(project, Reason.PROMPT)
    began = time.time()
    (project / "moon.py").write_text("half\n")
    call = WritingCall(
        run="r", session=uuid(1), use="c20", tool="write_file", path=b"moon.py", began=began
    )
    take(project, Reason.CALL, call)
    async with person(gemini_home(), WIDE, project=project) as me:
        await to_second_prompt(me)
        await me.sees("↶ checkpoint")
        (marked,) = [line for line in me.text.splitlines() if "│ ↶ checkpoint" in line]
        above = me.text[: me.text.index(marked)]
        assert above.rindex("moon.py") > above.rindex("Draw the moon.")
        assert "sea.py" not in above


async def test_a_folder_whose_mode_a_call_changed_is_a_row_of_its_own(project: Path) -> None:
    (project / "keys").mkdir(mode=0o700)
    (project / "keys/public").write_text("one\n")
    take(project, Reason.PROMPT)
    began = time.time()
    (project / "keys").chmod(0o777)
    call = WritingCall(run="r", session=uuid(1), use="c9", tool="t", began=began)
    take(project, Reason.CALL, call)
    async with person(gemini_home(), WIDE, project=project) as me:
        await to_second_prompt(me)
        await me.does("U", "restore keys/")
        await me.does("down down", "permissions change from 777 to 700")
        await me.does("enter tab", "a folder with permissions 700")
        await me.does("escape y", "done")
    assert (project / "keys").stat().st_mode & 0o777 == 0o700


def take(project: Path, reason: Reason, *calls: WritingCall) -> None:
    with open_project(*project_of(project)) as checkpoints:
        checkpoints.taker.take(reason, run="r", session=uuid(1), calls=lambda: calls)


async def test_of_a_file_left_alone_the_three_texts_can_be_read(project: Path) -> None:
    async with person(gemini_home(), NARROW, project=project) as me:
        await to_second_prompt(me)
        await me.does("U", "leave alone")
        await me.does("down", "Changed since the session:", "+ B, mine")
        await me.does("enter", "notes.md before the prompt", "1 of 5")
        assert "mine" not in me.text
        await me.does("tab", "as the session left it")
        await me.does("tab", "now", "B, mine")
        await me.does("escape down d", "sea.py the change", "storm", "calm")


async def test_a_key_for_a_file_that_is_slow_to_open_undoes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Event()

    def slowly(folder: Path, step: Step, contents: Mapping[str, bytes]) -> StepTexts:
        read.wait(PATIENCE)
        return step_texts(folder, step, contents)

    monkeypatch.setattr(undo_screen, "step_texts", slowly)
    async with person(gemini_home(), WIDE, project=project) as me:
        await to_second_prompt(me)
        await me.does("U", "remove moon.py")
        await me.press("down")
        await me.press("enter", "y")
        read.set()
        await me.hears("Copied", 1)
        await me.sees("notes.md before the prompt")
        await me.does("escape", "nothing has changed yet", "y confirm")
    assert (project / "moon.py").exists()


async def test_the_lines_of_a_file_that_is_removed_or_created_again_are_shown(
    project: Path,
) -> None:
    async with person(gemini_home(), WIDE, project=project) as me:
        await to_second_prompt(me)
        await me.does("U", "remove moon.py")
        await me.does("down down down down", "full")
        await me.lacks("does not exist")
        await me.does("y", "2 removed")
        await me.does("R", "restore moon.py")
        await me.does("down", "full")


async def test_files_or_the_chat_alone_are_undone_on_demand(project: Path) -> None:
    async with person(gemini_home(), NARROW, project=project) as me:
        await me.sees("Look around.")
        await me.does("U", "before prompt 3 of 3")
        await me.does("s", "files only", "nothing has changed yet")
        await me.lacks("new chat")
        await me.does("s", "chat only", "files are not changed")
        await me.does("y", "new chat", "with 2 earlier prompts", "✓ done")
        assert (project / HOSTILE).exists()


def working_run(folder: Path) -> None:
    """A run that goes on in a folder, by what its own folder says."""
    run = RunFolder.create(runs_dir(), "working")
    run.write_request(Request(id="working", argv=("gemini",), cwd=str(folder), environ={}))
    run.write_owner(Owner(pid=os.getpid(), began=psutil.Process().create_time()))


async def test_while_a_run_works_undo_is_refused_with_the_reason(project: Path) -> None:
    working_run(project)
    async with person(gemini_home(), WIDE, project=project) as me:
        await me.sees("Look around.")
        await me.does("U", "A run is working in")
        await me.press("y", "d")
        assert (project / HOSTILE).exists()


def interrupted(monkeypatch: pytest.MonkeyPatch, act: Callable[[Summary], object]) -> None:
    """Act on the session in a process that ends just before it writes its first file."""
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(ProjectFiles, "write", lambda *_: os._exit(0))
        try:
            act(Index(gemini_home(), cache=None).find(uuid(1)))
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.fixture
def undo_interrupted(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    interrupted(monkeypatch, lambda session: undo_session(session, 2))
    assert not (project / "moon.py").exists()
    assert (project / "sea.py").read_text() == "storm\n"
    return project


async def test_a_signal_that_ends_the_app_stops_an_undo_between_two_files_and_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with person(gemini_home(), WIDE, project=project) as me:
        stop, remove = me.app.stop, ProjectFiles.remove

        def signalled(files: ProjectFiles, name: bytes) -> None:
            remove(files, name)
            for _ in range(2):
                stop.receive(signal.SIGTERM)

        monkeypatch.setattr(ProjectFiles, "remove", signalled)
        await to_second_prompt(me)
        await me.does("U", "nothing has changed yet")
        await me.does("y", "Interrupted after 1 of 3 files")
        assert (project / "sea.py").read_text() == "storm\n"
        words = f"interrupted after 1 of 3 files; to finish, run: gemtui undo {uuid(1)} --to 2"
        assert stop.report == words


def interrupted_words(project: Path) -> str | None:
    found = interrupted_change(project)
    return None if found is None else found.words


async def test_at_the_start_an_interrupted_undo_is_announced_and_reversed_by_its_key(
    undo_interrupted: Path,
) -> None:
    project = undo_interrupted
    async with person(gemini_home(), NARROW, project=project) as me:
        words = (
            f"An undo in {project} was interrupted after 2 of 3 files. On a session of this "
            "folder, press U to"
        )
        await me.until(lambda: any(each.startswith(words) for each in me.said))
        await me.does(
            "R", "an interrupted undo in this folder will be completed", "restore moon.py"
        )
        assert (project / "sea.py").read_text() == "storm\n"
        assert not (project / "moon.py").exists()
        await me.does("y", "done", "restored")
        assert (project / "moon.py").read_text() == "full\n"
        assert (project / "sea.py").read_text() == "storm\n"
    assert interrupted_words(project) is None


async def test_an_interrupted_undo_is_finished_by_another_undo(undo_interrupted: Path) -> None:
    project = undo_interrupted
    async with person(gemini_home(), NARROW, project=project) as me:
        await to_second_prompt(me)
        await me.does("U", "will be completed", "restore sea.py")
        assert (project / "sea.py").read_text() == "storm\n"
        await me.does("y", "done", "restored")
        assert (project / "sea.py").read_text() == "calm\n"


async def test_an_interrupted_redo_is_announced_and_finished_by_another(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo_session(Index(gemini_home(), cache=None).find(uuid(1)), 2)
    interrupted(monkeypatch, lambda _: redo_project(project))
    async with person(gemini_home(), WIDE, project=project) as me:
        words = f"A redo in {project} was interrupted"
        await me.until(lambda: any(each.startswith(words) for each in me.said))
        await me.does("R", "First, an interrupted redo", "restore moon.py")
        assert not (project / "moon.py").exists()
        await me.does("y", "done", "restored")
        assert (project / "moon.py").read_text() == "full\n"
    assert interrupted_words(project) is None


def test_an_undo_that_another_process_is_carrying_out_is_not_called_interrupted(
    undo_interrupted: Path,
) -> None:
    assert interrupted_words(undo_interrupted) is not None
    with only_one(project_of(undo_interrupted)[0]):
        assert interrupted_words(undo_interrupted) is None


async def test_a_fork_goes_on_before_a_prompt_and_leaves_files_alone(project: Path) -> None:
    async with person(gemini_home(), NARROW, project=project) as me:
        await to_second_prompt(me)
        await me.does("B", "New chat from prompt 2 of 3", "Before this prompt")
        await me.does("enter", "continues session", "A small project.")
        assert prompt(me) == "Draw the moon."
        assert (project / "moon.py").exists()


@pytest.mark.parametrize(("prompt", "title"), [(2, "undo to before prompt 2"), (0, "last change")])
def test_the_title_of_a_redo_names_what_it_reverses(prompt: int, title: str) -> None:
    undone = Undone(session="s", to=prompt, files=None)
    assert title in undo_screen.undo_title(undone, (), redo=True)
