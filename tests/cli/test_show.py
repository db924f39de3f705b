"""`gemtui show`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gemtui import load_session
from gemtui.text import clean
from tests.cli.conftest import Gemtui, has, start, values
from tests.cli.shapes import fits
from tests.cli.test_sessions import FULL, add_session
from tests.patience import PATIENCE
from tests.rows import each_row

FORMATS = ["text", "markdown", "html", "json", "unified", "replay"]

pytestmark = pytest.mark.usefixtures("store")


def test_json_is_what_the_library_gives(gemtui: Gemtui) -> None:
    answer = gemtui("show", FULL, "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    fits(answer.json, "Shown")
    assert answer.json == load_session(FULL).to_dict()
    assert answer.json["session"]["id"] == FULL


def test_json_holds_the_records_as_stored_and_what_was_dropped(gemtui: Gemtui) -> None:
    rewound = gemtui("show b3bf9d1b --format json").json
    fits(rewound, "Shown")
    assert {each["why"] for each in rewound["dropped"]} == {"rewound"}
    context = gemtui("show", FULL, "--format", "json").json["messages"][0]
    assert context["content"][0]["text"].startswith("<session_context>")
    failed = gemtui("show 6cafb191 --format json").json
    assert values(failed["dropped"], "why") == ["failed_prompt"]


def test_problems_name_file_and_line(gemtui: Gemtui) -> None:
    answer = gemtui("show c0ffee00 --format json").json
    (problem,) = answer["problems"]
    assert problem["file"] == answer["session"]["files"][0]
    assert problem["line"] > 1
    gemtui.ok("show c0ffee00").complains(f"{problem['file']}, line {problem['line']}: ")


def test_unified_is_an_array_of_messages(gemtui: Gemtui) -> None:
    messages = gemtui("show", FULL, "--format", "unified").json
    assert messages == [each.to_dict() for each in load_session(FULL).messages]
    assert values(messages[:2], "role") == ["user", "assistant"]
    keys = {"id", "role", "content", "timestamp", "tool", "_original"}
    for each in messages:
        assert keys <= set(each) <= keys | {"model", "usage"}
        assert each["tool"] == "gemini"


@each_row("format", ["text", "markdown", "html"])
def test_reading_formats_hold_the_conversation(gemtui: Gemtui, format: str) -> None:
    answer = gemtui("show", FULL, "--format", format)
    assert (answer.code, answer.err) == (0, "")
    answer.shows("Change the greeting from hello to bye", "run_shell_command")
    assert clean(answer.out) == answer.out
    assert answer.out.startswith("<!") is (format == "html")


@each_row("format", ["text", "markdown", "html"])
def test_dropped_messages_are_told_of_and_shown_if_asked_for(gemtui: Gemtui, format: str) -> None:
    answer = gemtui("show b3bf9d1b --format", format)
    assert answer.out.count("3 messages not included: 3 rewound (see gemtui show --dropped)") == 1
    assert "to be rewound" not in answer.out
    whole = gemtui("show b3bf9d1b --format", format, "--dropped").out
    assert "left out" not in whole
    places = [whole.index(words) for words in ("Wrote a.txt", "to be rewound", "different third")]
    assert places == sorted(places)


def test_text_is_the_default(gemtui: Gemtui) -> None:
    assert gemtui("show", FULL).out == gemtui("show", FULL, "--format", "text").out


@each_row("named", [FULL, "7024884b", "7024", "file"])
def test_ways_to_name_a_session(store: Path, gemtui: Gemtui, named: str) -> None:
    if named == "file":
        named = str(next(store.rglob("*7024884b.jsonl")))
    assert gemtui("show", named, "--format", "json").json["session"]["id"] == FULL


def test_latest_is_of_the_current_folders_project_if_it_has_one(
    store: Path, tmp_path: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    add_session(store, "mine", "11111111-aaaa", "Say hi", project=str(mine))
    monkeypatch.chdir(tmp_path)
    newest = gemtui.json("sessions --everywhere")["sessions"][0]["id"]
    assert gemtui("show latest --format json").json["session"]["id"] == newest
    monkeypatch.chdir(mine)
    assert gemtui("show latest --format json").json["session"]["id"] == "11111111-aaaa"


@each_row("format", FORMATS)
@each_row("name", ["checkpoint-mytag.json", "e28bd434-3afe-49ca-9a3a-d73ac6b8bfa3"])
def test_checkpoints_and_subagents_by_file(
    store: Path, gemtui: Gemtui, name: str, format: str
) -> None:
    (path,) = store.rglob(f"{name}*")
    answer = gemtui("show", path, "--format", format)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out


def test_a_file_from_elsewhere(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(next(store.rglob("*7024884b.jsonl")).read_bytes())
    session = gemtui("show", copy, "--format", "json").json["session"]
    has(session, id=FULL, files=[str(copy)], project_key="")


def test_an_unknown_id_names_the_newest(gemtui: Gemtui) -> None:
    answer = gemtui("show nothing-like-it")
    assert (answer.code, answer.out) == (2, "")
    first, *candidates = answer.err.splitlines()
    assert first.startswith("gemtui: ")
    assert "nothing-like-it" in first
    assert len(candidates) == 5
    newest = gemtui.json("sessions --everywhere")["sessions"][:5]
    assert [line.split()[0] for line in candidates] == values(newest, "id")


def test_an_ambiguous_prefix_names_its_candidates(store: Path, gemtui: Gemtui) -> None:
    for minute, end in enumerate(("one", "two")):
        add_session(store, "x", f"my-runs-{end}", f"Prompt \x1b[31m{end}", minute=minute)
    answer = gemtui("show my-run")
    assert (answer.code, answer.out) == (2, "")
    first, *candidates = answer.err.splitlines()
    assert first.startswith("gemtui: ")
    assert {line.split()[0] for line in candidates} == {"my-runs-one", "my-runs-two"}
    assert clean(answer.err) == answer.err


def test_in_an_empty_store_there_is_no_latest(home: Path, gemtui: Gemtui) -> None:
    shutil.rmtree(home / ".gemini")
    gemtui("show latest").refuses(str(home))


@each_row("content", [b"", b"hello\n", b'{"a": 1}', b"\x00\xff\n"])
def test_a_file_that_is_no_session(tmp_path: Path, gemtui: Gemtui, content: bytes) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    gemtui("show", path).refuses(str(path))


def test_folders_and_missing_files(tmp_path: Path, gemtui: Gemtui) -> None:
    for path in (tmp_path, tmp_path / "none.jsonl"):
        answer = gemtui("show", path)
        assert answer.code == 2
        assert answer.err.startswith("gemtui: ")


# --- where the answer goes -----------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_output_writes_the_same_to_a_file(tmp_path: Path, gemtui: Gemtui, format: str) -> None:
    path = tmp_path / "out"
    printed = gemtui("show", FULL, "--format", format).out
    answer = gemtui("show", FULL, "--format", format, "--output", path)
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert path.read_text() == printed
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["out"]


@pytest.mark.parametrize(
    ("ending", "format"),
    [(".html", "html"), (".MD", "markdown"), (".json", "json"), (".log", "text"), ("", "text")],
)
def test_the_format_of_a_file_is_that_of_its_ending_by_default(
    tmp_path: Path, gemtui: Gemtui, ending: str, format: str
) -> None:
    gemtui.ok("show", FULL, "--output", tmp_path / f"a{ending}")
    gemtui.ok("show", FULL, "--format", format, "--output", tmp_path / "b.log")
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / "b.log").read_bytes()


def test_output_into_a_git_repository_is_said(tmp_path: Path, gemtui: Gemtui) -> None:
    outside, repository = tmp_path / "outside", tmp_path / "repository"
    outside.mkdir()
    (repository / ".git").mkdir(parents=True)
    assert gemtui.ok("show", FULL, "--output", outside / "a.md").err == ""
    answer = gemtui.ok("show", FULL, "--output", repository / "sub.md")
    assert "repository is a git repository: take care not to commit this" in answer.err


@each_row("words", [("show", FULL), ("marks", "export"), ("policy", "suggest", "--session", FULL)])
def test_output_over_a_file_is_refused_without_force(
    tmp_path: Path, gemtui: Gemtui, words: tuple[str, ...]
) -> None:
    path = tmp_path / "out"
    path.write_text("mine")
    answer = gemtui(*words, "--output", path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.complaint.endswith(
        f"{path} exists: name another file, or replace it with --force"
    )
    assert path.read_text() == "mine"
    gemtui.ok(*words, "--output", path, "--force")
    assert path.read_text() != "mine"


def test_output_replaces_a_file_and_keeps_its_mode(tmp_path: Path, gemtui: Gemtui) -> None:
    path = tmp_path / "out"
    path.write_text("old " * 100_000)
    path.chmod(0o644)
    gemtui.ok("show", FULL, "--force", "--output", path)
    assert "old old" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o644


def test_output_follows_links_and_leaves_devices_alone(tmp_path: Path, gemtui: Gemtui) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    gemtui.ok("show", FULL, "--output", link)
    assert link.is_symlink()
    assert target.read_text()
    gemtui.ok("show", FULL, "--output", os.devnull)
    assert not Path(os.devnull).is_file()


def test_output_never_touches_what_is_geminis(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    session = next(store.rglob("*7024884b.jsonl"))
    before = session.read_bytes()
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(before)
    (tmp_path / "link").symlink_to(store / "tmp")
    for path in (session, store / "new.txt", tmp_path / "link/new.txt"):
        gemtui("show", FULL, "--output", path).refuses("belongs to Gemini CLI")
    assert gemtui("show", copy, "--output", copy).code == 2
    assert session.read_bytes() == before == copy.read_bytes()
    assert not (store / "new.txt").exists()


def test_output_to_impossible_places(tmp_path: Path, gemtui: Gemtui) -> None:
    gemtui("show", FULL, "--output", tmp_path).refuses("is a folder")
    gemtui("show", FULL, "--output", "~nobody-has-this-name/out").refuses("nobody-has-this-name")
    missing = gemtui("show", FULL, "--output", tmp_path / "none/out")
    assert missing.code == 2
    assert missing.complaint == f"gemtui: {tmp_path}/none does not exist: give a folder that exists"
    (tmp_path / "file").touch()
    below = gemtui("show", FULL, "--output", tmp_path / "file/out")
    assert (below.code, below.complaint) == (
        2,
        f"gemtui: {tmp_path}/file is not a folder: give a folder that exists",
    )


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder that takes no files")
def test_a_folder_that_takes_no_files_is_named_alone(gemtui: Gemtui) -> None:
    answer = gemtui("show", FULL, "--output", f"/proc/{os.getpid()}/out")
    assert answer.code == 1
    assert answer.complaint.startswith(f"gemtui: /proc/{os.getpid()}: ")


def test_a_reader_that_stops_early(store: Path) -> None:
    big = add_session(store, "x", "33333333-big", "line\n" * 300_000)
    line = f'"{sys.executable}" -m gemtui show {big} | head -c 10'
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, timeout=PATIENCE, check=False
    )
    assert len(done.stdout) == 10
    assert done.stderr == b""


def test_hostile_text_reaches_nothing_raw(store: Path, gemtui: Gemtui) -> None:
    evil = "\x1b]52;c;ZXZpbA==\x07<script>alert(1)</script>\u202e\x9d0;t\x9c[/x] \ud800"
    path = add_session(store, "x", "44444444-evil", evil)
    for format in FORMATS:
        answer = gemtui.ok("show", path, "--format", format)
        assert clean(answer.out) == answer.out, format
        assert format != "html" or "<script>alert" not in answer.out


def test_deeply_nested_records_pass(store: Path, gemtui: Gemtui) -> None:
    path = add_session(store, "x", "55555555-deep", "hello")
    depth = 1015
    with path.open("a") as stream:
        nested = '{"a":' * depth + "1" + "}" * depth
        stream.write('{"id":"d","type":"gemini","content":"x","toolCalls":[{"id":"c",')
        stream.write(f'"name":"x","status":"success","args":{nested}}}]}}\n')
    for format in FORMATS:
        assert gemtui("show", path, "--format", format).code == 0, format


def test_other_encodings_replace_what_they_lack() -> None:
    done = start("show 142b2ee6", environ={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert "?bersetze" in done.stdout.decode("ascii")
    as_json = start("show 142b2ee6 --format json", environ={"PYTHONIOENCODING": "ascii"})
    assert "Übersetze" in json.dumps(json.loads(as_json.stdout), ensure_ascii=False)


def test_the_prompts_of_a_session_whose_file_is_gone_are_those_in_logs_json(
    gemtui: Gemtui, home: Path
) -> None:
    entry = {"messageId": 0, "type": "user", "timestamp": "2026-01-02T03:04:05.000Z"}
    entries = [
        entry | {"sessionId": "aaaa1111-2", "message": "Where is\nit?"},
        entry | {"sessionId": "aaaa2222-2", "message": "another"},
        entry | {"sessionId": "aaaa1111-2", "message": "And now?"},
    ]
    folder = home / ".gemini/tmp/proj"
    folder.mkdir(parents=True)
    (folder / "logs.json").write_text(json.dumps(entries))
    answer = gemtui.ok("show aaaa1111")
    assert answer.out.split("\n\n") == [
        "2026-01-02T03:04:05.000Z\nWhere is\nit?",
        "2026-01-02T03:04:05.000Z\nAnd now?",
        "",
    ]
    assert "the file of session aaaa1111-2 is gone" in answer.err
    for id, more in (("aaaa", ()), ("bbbb", ()), ("aaaa1111", ("--format", "json"))):
        assert gemtui("show", id, *more).code == 2


def test_a_project_is_named_as_in_lists(gemtui: Gemtui) -> None:
    shown = gemtui("show latest --format json --project src/greeter").json
    assert shown["session"]["project"] == "/home/dev/src/greeter"
    gemtui("show latest --project greter").fails("no folder or project “greter”: did you mean")
