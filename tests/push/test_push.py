"""`gemtui push`: what is in the folder, and what a second push, a kill and a stranger do to it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gemtui import load_session
from gemtui.push.folder import lines_in
from tests.cli.conftest import Gemtui, gemtui
from tests.cli.test_redact import session as secret_session
from tests.cli.test_sessions import FULL, add_session
from tests.patience import PATIENCE
from tests.redact.secrets import KEY_LINES, SECRETS

__all__ = ["gemtui"]
GUIDE = Path(__file__).parents[2] / "assets/push.md"


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("sessions/*/*/messages.ndjson.gz")):
        for line in lines_in(path):
            yield json.loads(line)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_rows_are_the_messages_of_all_sessions(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    answer = gemtui("push", tmp_path / "out", "--json")
    assert (answer.code, answer.err) == (0, "")
    report = answer.json
    assert report["sessions"] == report["changed"] == report["raw_written"] > 20
    found = list(rows(tmp_path / "out"))
    assert len({(row["session"], row["number"]) for row in found}) == len(found)
    assert len({frozenset(row) for row in found}) == 1, "every row has every column"
    mine = [row for row in found if row["session"] == FULL]
    session = load_session(FULL)
    assert [row["message"] for row in mine] == [each.id for each in session.messages]
    assert mine[0]["text"].startswith("Change the greeting from hello to bye")
    assert mine[0]["prompt"] is True
    calls = [call for row in mine for call in row["calls"]]
    assert len(calls) == session.session.tool_calls
    written = {Path(call["path"]).name for call in calls if call["wrote"]}
    assert written == {Path(name).name for name in session.session.files_written}
    assert {row["dropped"] for row in found} == {None, "rewound", "failed_prompt", "buried"} & {
        row["dropped"] for row in found
    }
    assert any(row["dropped"] for row in found)


def test_raw_files_are_the_session_files_by_their_hash(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    gemtui("push", tmp_path / "out")
    source = next(store.rglob("*7024884b.jsonl"))
    digest = sha256(source.read_bytes()).hexdigest()
    (row, *_) = (row for row in rows(tmp_path / "out") if row["session"] == FULL)
    assert row["raw"] == digest
    kept = tmp_path / "out/raw" / digest[:2] / f"{digest}.jsonl.gz"
    assert b"".join(lines_in(kept)) == source.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_second_push_writes_only_the_day_of_what_has_changed(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    out = tmp_path / "out"
    added = add_session(store, "mine", "11111111-aaaa", "Say hi")
    add_session(store, "mine", "22222222-aaaa", "Say ho")
    gemtui("push", out)
    before = content(out)
    assert gemtui("push", out, "--json").json["changed"] == 0
    assert content(out) == before
    with added.open("a") as stream:
        more = {"id": "m9", "type": "user", "content": [{"text": "More"}]}
        stream.write(json.dumps(more) + "\n")
    report = gemtui("push", out, "--json").json
    assert (report["changed"], report["raw_written"], len(report["files_written"])) == (1, 1, 1)
    after = content(out)
    changed = {name for name in after if after[name] != before.get(name)}
    assert {name.split("/")[1] for name in changed if name.startswith("sessions")} == {
        "project_key=mine"
    }
    assert gemtui("push", tmp_path / "fresh").code == 0
    fresh = content(tmp_path / "fresh")
    assert {name: after[name] for name in fresh} == fresh, "as if pushed at once"


def test_rows_of_sessions_that_are_gone_stay(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    gone = add_session(store, "mine", "11111111-aaaa", "Say hi")
    gemtui("push", tmp_path / "out")
    gone.unlink()
    add_session(store, "mine", "22222222-aaaa", "Say ho")
    assert gemtui("push", tmp_path / "out", "--json").json["changed"] == 1
    found = {row["session"] for row in rows(tmp_path / "out")}
    assert {"11111111-aaaa", "22222222-aaaa"} <= found


def test_since_pushes_only_what_was_used_since(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    add_session(store, "new", "11111111-aaaa", "Say hi", time="2027-01-02T03:04:05.000Z")
    report = gemtui("push", tmp_path / "out", "--since", "2027-01-01", "--json").json
    assert report["sessions"] == 1
    assert {row["session"] for row in rows(tmp_path / "out")} == {"11111111-aaaa"}


def process(*words: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gemtui", "push", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_after_a_kill_the_next_push_goes_on(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    """Killed as soon as each of its first files is there, which is in the midst of the next."""
    out = tmp_path / "out"
    for wanted in range(1, 4):
        with process(out) as push:
            while push.poll() is None and len(list(out.glob("sessions/*/*/*.gz"))) < wanted:
                time.sleep(0.0005)
            push.send_signal(signal.SIGKILL)
            push.communicate(timeout=PATIENCE)
    assert gemtui("push", out).code == 0
    assert gemtui("push", tmp_path / "fresh").code == 0
    assert content(out) == content(tmp_path / "fresh")


def test_what_a_killed_push_left_anywhere_is_removed_by_the_next(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    gemtui("push", tmp_path / "out")
    before = content(tmp_path / "out")
    for path in (tmp_path / "out").rglob("*"):
        if path.is_dir():
            (path / ".some.jsonl.gz.abcd1234.gemtui").write_text("half")
    gemtui("push", tmp_path / "out")
    assert content(tmp_path / "out") == before


def test_two_pushes_at_once_write_what_one_does(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    both = [process(tmp_path / "out") for _ in range(2)]
    for each in both:
        _, complaints = each.communicate(timeout=PATIENCE)
        assert each.returncode == 0, complaints
    assert gemtui("push", tmp_path / "fresh").code == 0
    assert content(tmp_path / "out") == content(tmp_path / "fresh")


def test_a_redacted_folder_holds_no_secret_and_no_raw_files(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    out = tmp_path / "out"
    secret_session(store)
    assert gemtui("push", out, "--redact").code == 0
    assert not (out / "raw").exists()
    every = "".join(json.dumps(row) for row in rows(out)) + "".join(content(out))
    assert "[redacted:github-token-1]" in every
    for secret in (*SECRETS, *KEY_LINES):
        assert json.dumps(secret)[1:-1] not in every
    again = gemtui("push", out)
    assert again.code == 2
    assert "contains sessions pushed with --redact: name another folder" in again.complaint


def test_folders_that_are_refused_stay_as_they_are(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    for folder, why in (
        (mine, "is not empty and was not written by gemtui push"),
        (link, "is a symbolic link"),
        (store, "belongs to Gemini CLI"),
        (store / "new", "belongs to Gemini CLI"),
    ):
        answer = gemtui("push", folder)
        assert (answer.code, answer.out) == (2, "")
        assert why in answer.complaint
    assert [each.name for each in mine.iterdir()] == ["letter.txt"]
    assert not any((tmp_path / "elsewhere").iterdir())
    assert not (store / "new").exists()


@pytest.mark.parametrize("place", ["raw", "sessions", "sessions/project_key=greeter"])
def test_nothing_is_written_through_a_link_in_the_folder(
    store: Path, tmp_path: Path, gemtui: Gemtui, place: str
) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    gemtui("push", out)
    (out / place).rename(elsewhere)
    (out / place).symlink_to(elsewhere)
    before = content(elsewhere)
    add_session(store, "greeter", "11111111-aaaa", "Say hi", time="2026-11-20T12:00:00.000Z")
    answer = gemtui("push", out)
    assert answer.code == 2
    assert "is a symbolic link, and gemtui does not write through links" in answer.complaint
    assert content(elsewhere) == before


def test_a_damaged_file_is_named_and_kept(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    out = tmp_path / "out"
    gemtui("push", out)
    (path,) = out.glob("sessions/project_key=greeter/*/messages.ndjson.gz")
    path.write_bytes(b"no gzip")
    answer = gemtui("push", out)
    assert answer.code == 2
    assert f"{path} is corrupt" in answer.complaint
    assert path.read_bytes() == b"no gzip"


@pytest.mark.parametrize(
    ("schema", "why"),
    [(1, "was written by an older gemtui, which used Zstandard"), (3, "by a newer gemtui")],
)
def test_a_folder_of_another_version_is_refused_and_stays_as_it_is(
    store: Path, tmp_path: Path, gemtui: Gemtui, schema: int, why: str
) -> None:
    day = tmp_path / "out/sessions/project_key=greeter/day=2026-11-20"
    day.mkdir(parents=True)
    (day / "messages.ndjson.zst").write_bytes(b"rows")
    manifest = {"made_by": "gemtui push", "schema": schema, "redact": False}
    (tmp_path / "out/manifest.json").write_text(json.dumps(manifest))
    before = content(tmp_path / "out")
    answer = gemtui("push", tmp_path / "out")
    assert (answer.code, why in answer.complaint) == (2, True)
    (tmp_path / "out/.gemtui-push.lock").unlink()
    assert content(tmp_path / "out") == before


def test_a_session_that_cannot_be_read_is_named_and_the_others_are_pushed(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    path = add_session(store, "mine", "11111111-aaaa", "Say hi")
    add_session(store, "mine", "22222222-aaaa", "Say \ud800")
    gemtui("sessions", "--everywhere")
    before = path.stat()
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    answer = gemtui("push", tmp_path / "out")
    found = {row["session"]: row for row in rows(tmp_path / "out")}
    assert answer.code == 1
    assert str(path) in answer.complaint
    assert "11111111-aaaa" not in found
    assert "\ud800" not in found["22222222-aaaa"]["title"], "no lone surrogates"


ASK = """
import json, sys
import duckdb
with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as base:
    view, *questions = json.load(sys.stdin)
    base.execute(view)
    print(json.dumps([base.execute(each).fetchall() for each in questions]))
"""


def test_the_guides_queries_run_on_a_pushed_folder(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    gemtui("push", tmp_path / "out")
    queries = re.findall(r"```sql\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    view, *questions = (query.replace("FOLDER", str(tmp_path / "out")) for query in queries)
    asked = json.dumps([view, *(f"SELECT COLUMNS(*)::VARCHAR FROM ({each})" for each in questions)])
    asked = asked.replace(";\\n)", ")")
    done = subprocess.run(
        [sys.executable, "-c", ASK], input=asked.encode(), capture_output=True, timeout=PATIENCE
    )
    tokens, prompts, files = json.loads(done.stdout)
    used = [row["tokens"]["total"] for row in rows(tmp_path / "out") if row["tokens"]["total"]]
    assert sum(int(count) for _, _, count in tokens) == sum(used)
    assert {week[:10] for week, _, _ in tokens} == {"2026-11-16"}
    assert FULL in {session for _, _, session, _ in prompts}
    assert (FULL, "1") in {
        (session, writes) for path, session, writes, _ in files if "hello" in path
    }
