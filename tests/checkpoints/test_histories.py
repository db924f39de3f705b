"""Random histories of a project: undo leads to where each prompt began, and nothing is lost."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.checkpoints.plan import Action
from tests.checkpoints.projects import Session, drop, path_of, put, tree_of
from tests.deep import some_of

NAMES = [b"a", b"b.txt", b"d/x", b"d/e/y", b"d", b"\xff\n", b"l"]
LINES = [b"one\n", b"two\r\n", b"three\n", b"\xfe\n", b"last"]
CONTENTS = st.lists(st.sampled_from(LINES), max_size=6).map(b"".join)
STEP = st.tuples(
    st.sampled_from(["write", "drop", "move", "mode", "folder", "link", "append"]),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    CONTENTS,
)
Step = tuple[str, bytes, bytes, bytes]


@pytest.fixture(autouse=True)
def no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walking is quicker than git in a folder of seven files."""
    monkeypatch.setenv("PATH", "/nowhere")


def act(root: Path, step: Step) -> None:
    """Do one thing, whoever does it."""
    what, name, other, content = step
    path = path_of(root, name)
    is_file = path.is_file() and not path.is_symlink()
    if what == "write":
        put(root, name, content)
    elif what == "drop":
        drop(root, name)
    elif what == "link":
        put(root, name, b"")
        path.unlink()
        path.symlink_to(os.fsdecode(content) or "nowhere")
    elif what == "move" and is_file and not other.startswith(name + b"/"):
        data = path.read_bytes()
        drop(root, name)
        put(root, other, data)
    elif what == "mode" and is_file:
        path.chmod(0o755 if len(content) % 2 else 0o600)
    elif what == "folder" and path.parent.is_dir() and not path.parent.is_symlink():
        path.parent.chmod(0o755 if len(content) % 2 else 0o700)
    elif what == "append" and is_file:
        path.write_bytes(path.read_bytes() + content)


@settings(max_examples=some_of(15))
@given(
    turns=st.lists(st.lists(STEP, max_size=3), min_size=1, max_size=3),
    numbers=st.lists(st.integers(1, 3), min_size=1, max_size=3),
)
def test_undo_leads_to_any_prompt_and_redo_back(
    turns: list[list[Step]], numbers: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        session = Session(Path(place))
        for turn in turns:
            session.prompt()
            for step in turn:
                session.call(partial(act, step=step))
        for number in (min(number, len(turns)) for number in numbers):
            before = tree_of(session.root)
            with session.opened() as project:
                done = project.undo(session.target(number))
            assert not done.paths(Action.KEEP)
            assert tree_of(session.root) == session.trees[number - 1]
            if done.undo is not None:
                with session.opened() as project:
                    project.redo()
                assert tree_of(session.root) == before
            with session.opened() as project:
                project.undo(session.target(number))


PERSON = st.tuples(st.sampled_from(["write", "insert"]), st.sampled_from(NAMES), st.integers(0, 5))


@settings(max_examples=some_of(15))
@given(
    turns=st.lists(st.lists(st.one_of(STEP, PERSON), max_size=4), min_size=1, max_size=3),
    number=st.integers(1, 3),
)
def test_no_edit_of_the_person_is_lost(
    turns: list[list[Step | tuple[str, bytes, int]]], number: int
) -> None:
    with tempfile.TemporaryDirectory() as place:
        session, numbers = Session(Path(place)), count()
        for turn in turns:
            session.prompt()
            for step in turn:
                if len(step) == 4:
                    session.call(partial(act, step=step))
                    continue
                how, name, at = step
                path, line = path_of(session.root, name), b"mine %d\n" % next(numbers)
                if how == "insert" and path.is_file() and not path.is_symlink():
                    lines = path.read_bytes().splitlines(keepends=True)
                    text = b"".join([*lines[:at], line, *lines[at:]])
                    session.person(partial(put, name=name, content=text))
                else:
                    session.person(partial(put, name=name, content=line))
        before = tree_of(session.root)
        with session.opened() as project:
            done = project.undo(session.target(min(number, len(turns))))
        after = tree_of(session.root)
        left = b"\n".join(content for _, _, content in after.values())
        for _, _, content in before.values():  # which the agent may have moved
            assert all(line in left for line in content.splitlines() if b"mine" in line)
        if done.undo is not None:
            with session.opened() as project:
                project.redo()
        assert tree_of(session.root) == before
