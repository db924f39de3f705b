"""Random histories of a project: undo leads to where each prompt began, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.store import Call, Reason, folder_of
from gemtui.checkpoints.take import Taker
from gemtui.checkpoints.undo import Project, UndoTarget, open_project

NAMES = [b"a", b"b.txt", b"d/x", b"d/e/y", b"d", b"\xff\n", b"l"]
LINES = [b"one\n", b"two\r\n", b"three\n", b"\xfe\n", b"last"]
CONTENTS = st.lists(st.sampled_from(LINES), max_size=6).map(b"".join)

Tree = dict[bytes, tuple[str, int, bytes]]


def tree_of(root: Path) -> Tree:
    """All files and links below a folder: kind, mode, content."""
    found: Tree = {}
    top = os.fsencode(root)
    for place, folders, files in os.walk(top):
        for name in [*files, *folders]:
            path = os.path.join(place, name)
            inside = os.path.relpath(path, top)
            if os.path.islink(path):
                found[inside] = "link", 0, os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    found[inside] = "file", os.stat(path).st_mode & 0o777, file.read()
    return found


def put(root: Path, name: bytes, content: bytes) -> None:
    """Write a file, whatever is in its place or in that of its folders."""
    top = os.fsencode(root)
    parts = name.split(b"/")
    for end in range(1, len(parts)):
        above = os.path.join(top, *parts[:end])
        if os.path.lexists(above) and (os.path.islink(above) or not os.path.isdir(above)):
            os.unlink(above)
        os.makedirs(above, exist_ok=True)
    drop(root, name)
    with open(os.path.join(top, name), "wb") as file:
        file.write(content)


def drop(root: Path, name: bytes) -> None:
    """Remove whatever has this name."""
    path = os.path.join(os.fsencode(root), name)
    with suppress(NotADirectoryError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)


def act(root: Path, step: tuple[str, bytes, bytes, bytes]) -> None:
    """One step of whoever it is."""
    what, name, other, content = step
    path = os.path.join(os.fsencode(root), name)
    if what == "write":
        put(root, name, content)
    elif what == "drop":
        drop(root, name)
    elif what == "move" and os.path.isfile(path) and not other.startswith(name + b"/"):
        with open(path, "rb") as file:
            data = file.read()
        drop(root, name)
        put(root, other, data)
    elif what == "mode" and os.path.isfile(path) and not os.path.islink(path):
        os.chmod(path, 0o755 if len(content) % 2 else 0o600)
    elif what == "link":
        put(root, name, b"")
        os.unlink(path)
        os.symlink(content.replace(b"\0", b"") or b"nowhere", path)
    elif what == "append" and os.path.isfile(path) and not os.path.islink(path):
        with open(path, "ab") as file:
            file.write(content)


STEP = st.tuples(
    st.sampled_from(["write", "drop", "move", "mode", "link", "append"]),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    CONTENTS,
)
TURN = st.lists(st.tuples(st.sampled_from(["call", "call", "person"]), STEP), max_size=4)


class Session:
    """A session whose calls and prompts have times of their own."""

    def __init__(self, place: Path) -> None:
        self.root, self.data = place / "project", place / "data"
        self.root.mkdir()
        self.count = 0
        self.prompts: list[float] = []
        self.trees: list[Tree] = []

    @contextmanager
    def opened(self) -> Iterator[Project]:
        with open_project(folder_of(self.data, self.root), self.root) as project:
            yield project

    def prompt(self) -> None:
        with self.opened() as project:
            taker_of_(project).take(Reason.PROMPT, run="r", session="s")
        self.count += 1
        self.prompts.append(float(self.count))
        self.trees.append(tree_of(self.root))

    def call(self, step: tuple[str, bytes, bytes, bytes]) -> None:
        """A call whose changes are its own, whatever the clock says."""
        before = tree_of(self.root)
        act(self.root, step)
        after = tree_of(self.root)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        self.count += 1
        with self.opened() as project:
            call = Call(
                run="r", session="s", use=str(self.count), tool="t", began=float(self.count)
            )
            with project.store.transaction():
                id = project.store.save_call(call)
            taker_of_(project).take(
                Reason.CALL, run="r", session="s", owned=dict.fromkeys(changed, id)
            )

    def person(self, step: tuple[str, bytes, bytes, bytes]) -> None:
        act(self.root, step)
        with self.opened() as project:
            taker_of_(project).take(Reason.MANUAL)

    def target(self, number: int) -> UndoTarget:
        return UndoTarget(session="s", prompt=number, since=self.prompts[number - 1])


def taker_of_(project: Project) -> Taker:
    return project._taker


@pytest.fixture(params=["git", "no git"])
def git(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no git":
        monkeypatch.setenv("PATH", "/nowhere")


@settings(max_examples=60)
@given(turns=st.lists(TURN, min_size=1, max_size=4), to=st.integers(1, 4), data=st.data())
def test_undo_leads_to_the_prompt_and_redo_back(
    turns: list[list[tuple[str, tuple[str, bytes, bytes, bytes]]]], to: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as place:
        session = Session(Path(place))
        session.prompt()
        for turn in turns:
            for _, step in turn:
                session.call(step)
            session.prompt()
        for number in (min(to, len(turns)), data.draw(st.integers(1, len(turns)))):
            before = tree_of(session.root)
            with session.opened() as project:
                done = project.undo(session.target(number))
            assert not done.paths(Action.KEEP)
            assert tree_of(session.root) == session.trees[number - 1]
            with session.opened() as project:
                project.redo()
            assert tree_of(session.root) == before
            with session.opened() as project:
                project.undo(session.target(number))
