"""Review: each line has an owner, and reverting what one owner did leaves all else."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.checkpoints.review import (
    FileReview,
    OwnerKind,
    Part,
    ReviewedFile,
    chosen_hunks,
    owned_changes,
    revert_steps,
)
from gemtui.checkpoints.states import GONE
from gemtui.checkpoints.undo import REVIEW
from tests.checkpoints.projects import Session, drop, path_of, put, tree_of

BASE = [b"line %d\n" % number for number in range(12)]


@pytest.fixture(autouse=True)
def no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walking is quicker than git in a folder of a few files."""
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def look(session: Session) -> dict[bytes, ReviewedFile]:
    """The review of the session, after what the person did was noticed."""
    session.person(lambda _: None)
    with session.opened() as project:
        store = project.store
        found = owned_changes(store, lambda call: call.session == "s", (), store)
        tree = store.tree()
        told = [
            FileReview(path, each, tree[path][0] if path in tree else GONE, store).told()
            for path, each in found.items()
        ]
    return {each.path: each for each in told if each is not None}


def revert(session: Session, *ids: str) -> None:
    with session.opened() as project:
        store = project.store

        def planned():  # type: ignore[no-untyped-def]
            found = owned_changes(store, lambda call: call.session == "s", (), store)
            return revert_steps(found, project.taker.tree, store, ids)[0]

        project.change(REVIEW, "s", planned)


def ids_of(files: dict[bytes, ReviewedFile]) -> dict[str, tuple[bytes, ...]]:
    return {hunk.id: hunk.added for file in files.values() for hunk in file.hunks}


def edit(root: Path, old: bytes, new: bytes, name: bytes = b"f") -> None:
    put(root, name, path_of(root, name).read_bytes().replace(old, new))


EDIT = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["replace", "delete", "insert"]),
    st.sampled_from([b"new\n", b"line 1\n", b"\xff\r\n", b"a\nb\n"]),
)


@settings(max_examples=30)
@given(edits=st.lists(EDIT, min_size=1, max_size=6), reverted=st.sets(st.integers(0, 3)))
def test_reverting_all_hunks_of_an_owner_leaves_what_the_others_changed(
    edits: list[tuple[int, str, bytes]], reverted: set[int]
) -> None:
    """Each edit is in a place of its own; owner 0 is the person, the others are calls."""

    def text(wanted: frozenset[int]) -> bytes:
        lines = []
        for at in range(len(edits)):
            owner, how, new = edits[at]
            line = b"place %d\n" % at
            changed = {"replace": new, "delete": b"", "insert": line + new}[how]
            lines += [b"before %d\n" % at, changed if owner in wanted else line, b"\n"]
        return b"".join(lines)

    with tempfile.TemporaryDirectory() as place:
        session = Session(Path(place))
        put(session.root, b"f", text(frozenset()))
        session.prompt()
        done = frozenset[int]()
        owners = sorted({owner for owner, _, _ in edits}, reverse=True)
        for owner in owners:
            done |= {owner}
            act = partial(put, name=b"f", content=text(done))
            (session.call if owner else session.person)(act)
        files = look(session)
        if owners == [0]:
            assert files == {}
            return
        calls = dict[int, str]()
        for hunk in files[b"f"].hunks:
            calls[int(float(hunk.owner.use or 0))] = hunk.owner.id
        by_order = [calls[each] for each in sorted(calls) if each]
        names = dict(zip([each for each in owners if each], by_order, strict=True))
        gone = frozenset(reverted - {0}) & names.keys()
        revert(session, *(names[each] for each in gone))
        assert path_of(session.root, b"f").read_bytes() == text(done - gone)
        after = look(session)
        left = {id for id, hunk in _hunks(files).items() if hunk.owner.id not in map(names.get, gone)}
        assert left == _hunks(after).keys()
        with session.opened() as project:
            project.redo()
        assert path_of(session.root, b"f").read_bytes() == text(done)
        assert _hunks(look(session)).keys() == _hunks(files).keys()


def _hunks(files):  # type: ignore[no-untyped-def]
    return {hunk.id: hunk for file in files.values() for hunk in file.hunks}
