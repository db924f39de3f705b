"""Review: each line has an owner, and reverting what one owner did leaves all else."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.checkpoints.plan import Step
from gemtui.checkpoints.review import (
    FileReview,
    HunkPart,
    OwnerKind,
    ReviewedFile,
    ReviewHunk,
    chosen_hunks,
    git_lines,
    owned_changes,
    revert_steps,
)
from gemtui.checkpoints.store import GONE
from gemtui.checkpoints.undo import REVIEW
from gemtui.checkpoints.weave import Weave
from tests.checkpoints.projects import Session, path_of, put, tree_of
from tests.deep import some_of

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
            FileReview(path, each, tree[path][0] if path in tree else GONE, store).result()
            for path, each in found.items()
        ]
    return {each.path: each for each in told if each is not None}


def revert(session: Session, *ids: str) -> None:
    with session.opened() as project:
        store = project.store

        def planned() -> list[Step]:
            found = owned_changes(store, lambda call: call.session == "s", (), store)
            return revert_steps(found, store.tree(), store, ids)[0]

        project.change(REVIEW, "s", planned)


def edit(root: Path, old: bytes, new: bytes, name: bytes = b"f") -> None:
    put(root, name, path_of(root, name).read_bytes().replace(old, new))


VERSION = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"", b"d\r\n"]), max_size=8)


@given(base=VERSION, versions=st.lists(st.tuples(st.integers(1, 3), VERSION), max_size=5))
def test_a_weave_without_all_its_pieces_is_its_first_text(
    base: list[bytes], versions: list[tuple[int, list[bytes]]]
) -> None:
    texts = [b"".join(base), *(b"".join(lines) for _, lines in versions)]
    weave = Weave[int](git_lines(texts[0]))
    for (owner, _), text in zip(versions, texts[1:], strict=True):
        weave.add(owner, git_lines(text))
    pieces = weave.pieces()
    assert b"".join(weave.now) == weave.without(()) == texts[-1]
    assert weave.without(pieces) == texts[0]
    assert {piece.owner for piece in pieces} <= {owner for owner, _ in versions}


def write(root: Path) -> None:
    (root / "new").write_bytes(b"one\ntwo\n")
    (root / "bytes").write_bytes(b"\0new")
    (root / "latin").write_bytes(b"caf\xe9\nx\n")
    (root / "gone").unlink()
    (root / "run.sh").chmod(0o755)
    (root / "link").unlink()
    (root / "link").symlink_to("elsewhere")
    (root / "empty").write_bytes(b"")
    (root / "\x1b[31m\n").write_bytes(b"\x1b]0;x\x07\n")


def test_every_kind_of_change_is_a_hunk_that_can_be_reverted(session: Session) -> None:
    for name, data in (
        (b"bytes", b"\0old"),
        (b"latin", b"caf\xe9\ny\n"),
        (b"gone", b"a\nb\n"),
        (b"run.sh", b"exit\n"),
        (b"link", b""),
        (b"other", b"same\n"),
    ):
        put(session.root, name, data)
    path_of(session.root, b"run.sh").chmod(0o644)
    (session.root / "link").unlink()
    (session.root / "link").symlink_to("here")
    session.prompt()
    session.call(write)
    files = look(session)
    assert {path: [each.part for each in file.hunks] for path, file in files.items()} == {
        b"new": [HunkPart.LINES],
        b"bytes": [HunkPart.WHOLE],
        b"latin": [HunkPart.LINES],
        b"gone": [HunkPart.WHOLE],
        b"run.sh": [HunkPart.MODE],
        b"link": [HunkPart.WHOLE],
        b"empty": [HunkPart.WHOLE],
        b"\x1b[31m\n": [HunkPart.LINES],
    }
    changes = {path: file.change for path, file in files.items()}
    assert (changes[b"new"], changes[b"gone"], changes[b"link"]) == ("added", "deleted", "modified")
    after = tree_of(session.root)
    for file in files.values():
        revert(session, file.id)
    assert tree_of(session.root) == session.trees[0]
    for _ in files:
        with session.opened() as project:
            project.redo()
    assert tree_of(session.root) == after
    (hunk,) = files[b"latin"].hunks
    revert(session, hunk.owner.id)
    assert tree_of(session.root) == session.trees[0]


def test_what_another_call_built_on_is_said_and_what_was_changed_back_is_no_hunk(
    session: Session,
) -> None:
    put(session.root, b"f", b"".join(BASE))
    session.prompt()
    session.call(lambda root: edit(root, b"line 3\n", b"one\ntwo\n"))
    session.call(lambda root: edit(root, b"two\n", b"three\n"))
    session.call(lambda root: edit(root, b"line 9\n", b"x\n"))
    session.person(lambda root: edit(root, b"x\n", b"line 9\n"))
    session.person(lambda root: edit(root, b"line 6\n", b"mine\n"))
    first, second, mine = look(session)[b"f"].hunks
    assert (first.removed, first.added) == ((b"line 3\n",), (b"one\n",))
    assert (second.removed, second.added) == ((b"two\n",), (b"three\n",))
    assert second.changed == (first.owner,)
    assert (mine.owner.kind, mine.added) == (OwnerKind.PERSON, (b"mine\n",))
    revert(session, second.id)
    expected = b"".join(BASE).replace(b"line 3\n", b"one\ntwo\n").replace(b"line 6", b"mine")
    assert path_of(session.root, b"f").read_bytes() == expected
    assert chosen_hunks(look(session).values(), [second.id]) == set()


EDIT = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["replace", "delete", "insert"]),
    st.sampled_from([b"new\n", b"line 1\n", b"\xff\r\n", b"a\nb\n"]),
)


@settings(max_examples=some_of(30))
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
        left = {
            id for id, hunk in _hunks(files).items() if hunk.owner.id not in map(names.get, gone)
        }
        assert left == _hunks(after).keys()
        if gone:
            with session.opened() as project:
                project.redo()
        assert path_of(session.root, b"f").read_bytes() == text(done)
        assert _hunks(look(session)).keys() == _hunks(files).keys()


def _hunks(files: dict[bytes, ReviewedFile]) -> dict[str, ReviewHunk]:
    return {hunk.id: hunk for file in files.values() for hunk in file.hunks}
