"""The demo's Python service: three weeks of work on a parser, a cache and a small API."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from gemtui.demo import tidewatch_files as text
from gemtui.demo.calls import agent, complete, denied, todos, topic, wordy
from gemtui.demo.chat import Chat
from gemtui.demo.workspace import Call, Json, Workspace, cells

MISSED = """\
=================================== FAILURES ===================================
_________________ test_the_last_line_needs_no_line_feed ________________________

    def test_the_last_line_needs_no_line_feed() -> None:
>       assert len(parse(TABLE.rstrip("\\n"))) == 2
E       assert 1 == 2
E        +  where 1 = len([Tide(harbour='tromso', when=datetime(2026, 3, 1, 3, 12), height=2.7)])

tests/test_parse.py:26: AssertionError
=========================== short test summary info ============================
FAILED tests/test_parse.py::test_the_last_line_needs_no_line_feed - assert 1 == 2
1 failed, 4 passed in 0.05s"""

CUT = """\
=================================== FAILURES ===================================
_______________ test_an_unfinished_download_keeps_what_is_whole ________________

line = 'tromso     2026-03-0'

    def _tide(line: str) -> Tide:
>       harbour, day, time, height = line.split()
E       ValueError: not enough values to unpack (expected 4, got 2)

tidewatch/parse.py:20: ValueError
=========================== short test summary info ============================
FAILED tests/test_parse.py::test_an_unfinished_download_keeps_what_is_whole
1 failed, 4 passed in 0.06s"""


def tell(home: Path, now: datetime) -> Workspace:
    """Write all sessions of the project; returns its files as they are at the end."""
    work = Workspace(home / "src" / "tidewatch", "tidewatch", old=True)
    tmp = home / ".gemini" / "tmp"
    chats, hashed = tmp / work.slug / "chats", tmp / work.hash / "chats"
    for chat in (start(work, now - timedelta(days=20)), plan(work, now - timedelta(days=18))):
        chat.write_old(hashed, before_0_30=True)
        # the migration to named folders copied old sessions and left them where they were
        chat.write_old(chats, before_0_30=True)
    cache(work, now - timedelta(days=13, hours=2)).write_old(chats)
    work.old = False
    tail(work, now - timedelta(days=6, hours=1)).write(chats)
    unknown_harbour(work, now - timedelta(days=3, hours=4), chats)
    release(work, now - timedelta(days=2, hours=3), chats)
    deploy = Chat(work, "deploy", start=now - timedelta(hours=5), model="gemini-3-pro-preview")
    deploy.fail("Deploy tidewatch to the staging machine and watch its log for a minute")
    deploy.write(chats)
    moon(work, now - timedelta(minutes=5), now).write(chats)
    return work


def start(work: Workspace, when: datetime) -> Chat:
    """The first session: a parser and its test, in the oldest format."""
    work.files |= {"README.md": text.README, "pyproject.toml": text.PYPROJECT}
    chat = Chat(work, "start", start=when)
    chat.ask(
        "Start the service described in the README. Begin with the parser for the harbour "
        "office's text tables, and a test for it."
    )
    chat.say(
        "I'll read what is there first.",
        wordy(work.read("README.md")),
        wordy(work.read("pyproject.toml")),
        thoughts=(
            "Getting my bearings: The README names the tables but not their format. I should look "
            "at the project before I decide on a layout.",
        ),
    )
    chat.say(
        "",
        work.write("tidewatch/__init__.py", ""),
        work.write("tidewatch/parse.py", text.PARSE),
        work.write("tests/test_parse.py", text.TEST_PARSE),
    )
    missing = "/usr/bin/python: No module named pytest"
    chat.say("", work.shell("python -m pytest -q", missing, why="Run the tests", code=1))
    chat.say("", work.shell("python -m pip install -q -e '.[test]'", "", seconds=9.4))
    chat.say("", work.shell("python -m pytest -q", "....\n4 passed in 0.03s", why="Run the tests"))
    chat.say(
        "The parser is in `tidewatch/parse.py`, with four passing tests.\n\n"
        "- Comments (`#`) and empty lines are skipped.\n"
        "- A line with another number of fields raises `ValueError`.\n"
        "- Times stay *naive*: the tables do not say their zone."
    )
    return chat


def plan(work: Workspace, when: datetime) -> Chat:
    """A plan without a change: a todo list and a table in Markdown."""
    chat = Chat(work, "plan", start=when)
    chat.ask("Plan the HTTP side: endpoints, errors, caching. Only the plan, please, no code yet.")
    chat.say("", wordy(work.list()), wordy(work.read("tidewatch/parse.py")))
    chat.say(
        "",
        todos(
            ("completed", "Read the parser"),
            ("in_progress", "Decide on endpoints and errors"),
            ("pending", "Keep parsed tables on disk"),
            ("pending", "Serve /tides/<harbour>"),
        ),
    )
    chat.say(
        "## Plan\n\n"
        "| step | what | done when |\n| --- | --- | --- |\n"
        "| 1 | `Store`: parsed tables as JSON, 12 hours | a restart reads no table |\n"
        "| 2 | `Api`: WSGI, one endpoint | `/tides/tromso` answers |\n"
        "| 3 | errors as JSON | unknown harbour is a 404, broken table a 502 |\n\n"
        "WSGI keeps the service free of dependencies; "
        "`wsgiref` is enough until there is more than one user."
    )
    chat.call_it("Plan the HTTP side of tidewatch")
    return chat


def cache(work: Workspace, when: datetime) -> Chat:
    """A cache, with a test that fails on the way."""
    chat = Chat(work, "cache", start=when)
    chat.ask("Step 1 of the plan: keep parsed tables on disk.")
    chat.say(
        "I'll look at how tides are made and who would use the cache.",
        work.read("tidewatch/parse.py"),
        work.grep("Tide\\("),
        thoughts=(
            "Choosing a format: JSON is enough. A tide has a time and a height; the harbour is the "
            "file's name.",
        ),
    )
    draft = text.STORE.replace('now - datetime.fromisoformat(kept["saved"]) > KEEP', "False")
    chat.say(
        "",
        work.write("tidewatch/store.py", draft),
        work.write("tests/test_store.py", text.TEST_STORE),
    )
    chat.say(
        "",
        work.shell(
            "python -m pytest -q",
            ".....F\n"
            "FAILED tests/test_store.py::test_an_old_table_does_not - AssertionError: assert\n"
            "  [Tide(harbour='tromso', when=datetime(2026, 3, 1, 12, 0), height=2.7)] is None\n"
            "1 failed, 5 passed in 0.05s",
            why="Run the tests",
            code=1,
        ),
    )
    chat.say(
        "The age is never checked. Fixing that.",
        work.replace(
            "tidewatch/store.py",
            "        if False:\n",
            '        if now - datetime.fromisoformat(kept["saved"]) > KEEP:\n',
            "Give up tables older than KEEP.",
        ),
    )
    chat.say("", work.shell("python -m pytest -q", "......\n6 passed in 0.04s", why="Run them"))
    chat.say("Parsed tables are kept for twelve hours in `tidewatch/store.py`; 6 tests pass.")
    work.files |= {"tidewatch/api.py": text.API, "tests/test_api.py": text.TEST_API}
    return chat


def tail(work: Workspace, when: datetime) -> Chat:
    """A bug hunt: thoughts, parallel calls, an edit that misses, tests that fail twice."""
    chat = Chat(work, "tail", start=when, model="gemini-3-pro-preview")
    chat.ask("The evening tide of the last day is missing when the table has no newline at its end")
    chat.say(
        "I'll read the parser and find out who calls it.",
        work.read("tidewatch/parse.py"),
        work.grep("parse\\("),
        thoughts=(
            "Locating the loss: A table without a final newline loses its last line, so I expect "
            "the split to treat the tail as incomplete.",
            "Checking callers: If `parse` is also fed partial downloads, dropping the tail may be "
            "deliberate. I need to see the tests.",
        ),
    )
    chat.say(
        "`parse` splits on `\\n` and drops whatever follows the last one. That is right for a "
        "download that was cut short, and wrong for a table that simply ends without a newline. "
        "A test first.",
        topic("The tail of a table", "Finding the lost line", "Keep whole last lines"),
        work.replace(
            "tests/test_parse.py",
            '@pytest.mark.parametrize("line"',
            "def test_the_last_line_needs_no_line_feed() -> None:\n"
            '    assert len(parse(TABLE.rstrip("\\n"))) == 2\n\n\n'
            '@pytest.mark.parametrize("line"',
            "Add a test for a table without a final newline.",
        ),
    )
    chat.say("", work.shell("python -m pytest -q tests/test_parse.py", MISSED, code=1, seconds=0.7))
    chat.say(
        "It fails as described. Now the parser.",
        work.misses(
            "tidewatch/parse.py",
            '    *lines, _tail = text.split("\\n")\n',
            "    lines = text.splitlines()\n",
            "Keep the last line.",
        ),
    )
    chat.say(
        "",
        work.replace(
            "tidewatch/parse.py",
            '    *lines, _ = text.split("\\n")\n',
            '    lines = text.split("\\n")\n',
            "Keep the last line.",
        ),
    )
    chat.say("", work.shell("python -m pytest -q tests/test_parse.py", CUT, code=1, seconds=0.8))
    chat.say(
        "As feared: a download that was cut short must not raise. The tail counts only if it is a "
        "whole tide.",
        work.replace(
            "tidewatch/parse.py",
            '    lines = text.split("\\n")\n'
            '    return [_tide(line) for line in lines if line and not line.startswith("#")]\n',
            '    *lines, tail = text.split("\\n")\n'
            '    tides = [_tide(line) for line in lines if line and not line.startswith("#")]\n'
            "    last = _whole(tail)\n"
            "    return tides if last is None else [*tides, last]\n\n\n"
            "def _whole(line: str) -> Tide | None:\n"
            '    """The last line of a table, None if the download was cut short in it."""\n'
            "    try:\n"
            "        return _tide(line)\n"
            "    except ValueError:\n"
            "        return None\n",
            "Keep the last line if it is a whole tide.",
        ),
        thoughts=(
            "Telling the cases apart: Both end without a newline. Only parsing can tell them "
            "apart: a whole line gives a tide, a cut one raises.",
        ),
    )
    chat.say("", work.shell("python -m pytest -q", "........\n8 passed in 0.06s", seconds=0.9))
    chat.say(
        "Fixed. A last line without a newline is kept **if it is a whole tide**:\n\n"
        "```python\n"
        '*lines, tail = text.split("\\n")\n'
        'tides = [_tide(line) for line in lines if line and not line.startswith("#")]\n'
        "last = _whole(tail)\n"
        "return tides if last is None else [*tides, last]\n"
        "```\n\n"
        "A height that was cut (`2.7` of `2.75`) can't be told from a whole one; comparing the "
        "length with `Content-Length` would be the way to know."
    )
    chat.ask("Good. Does anything else rely on the old behaviour?")
    chat.say("", work.grep("split\\("))
    chat.say(
        "No. `parse` is called in `tidewatch/api.py` only, with whole files. The other `split` "
        "there takes the harbour from the path."
    )
    chat.call_it("Keep the last line of a tide table")
    return chat


def unknown_harbour(work: Workspace, when: datetime, chats: Path) -> None:
    """A subagent with a session of its own, and what came of its report."""
    chat = Chat(work, "unknown", start=when, model="gemini-3-pro-preview")
    question = "Find where the service decides what happens with a harbour it has no table for"
    chat.ask(f"{question}, then make it a proper 404. Let the investigator look first.")
    helper = Chat(
        work, "investigator", start=chat.clock + timedelta(seconds=4), kind="subagent",
        model="gemini-3-flash-preview",
    )  # fmt: skip
    steps = (work.grep("harbour"), work.read("tidewatch/api.py"), work.read("tidewatch/store.py"))
    report: Json = {
        "SummaryOfFindings": "Nobody decides. Api.__call__ opens tables/<harbour>.txt and lets "
        "FileNotFoundError escape, so that the server answers 500.",
        "RelevantLocations": [
            {
                "FilePath": "tidewatch/api.py",
                "Reasoning": "read_text() raises for an unknown harbour",
                "KeySymbols": ["Api.__call__"],
            }
        ],
    }
    _investigate(helper, question, steps, report)
    helper.write(chats / chat.id, name=helper.id)
    chat.say(
        "The investigator will trace it.",
        agent("codebase_investigator", question, helper.id, (*steps, complete(report)), report),
    )
    chat.say(
        "Nobody decides: the file is opened, and the error escapes as a 500. I'll answer 404.",
        work.replace(
            "tidewatch/api.py",
            '            text = (self.tables / f"{harbour}.txt").read_text()\n',
            "            try:\n"
            '                text = (self.tables / f"{harbour}.txt").read_text()\n'
            "            except FileNotFoundError:\n"
            '                start("404 Not Found", [("Content-Type", "application/json")])\n'
            '                return [b\'{"error": "unknown harbour"}\']\n',
            "Answer 404 for a harbour without a table.",
        ),
        work.write(
            "tests/test_api.py",
            work.files["tests/test_api.py"]
            + "\n\ndef test_an_unknown_harbour_is_a_404(tmp_path: Path) -> None:\n"
            '    status, body = ask(tmp_path, "/tides/atlantis")\n'
            '    assert status == "404 Not Found"\n'
            '    assert body == {"error": "unknown harbour"}\n',
        ),
    )
    chat.say("", work.shell("python -m pytest -q", ".........\n9 passed in 0.07s"))
    chat.say("An unknown harbour is now a 404 with a JSON body; 9 tests pass.")
    chat.write(chats)


def _investigate(helper: Chat, question: str, steps: tuple[Call, ...], report: Json) -> None:
    helper.ask(
        "Your task is to do a deep investigation of the codebase for the following user "
        f"objective:\n<objective>\n{question}\n</objective>",
        pause=0.0,
    )
    for step in steps:
        helper.say("", step, thoughts=(f"Following the name: {step.description} comes next.",))
    helper.say("", complete(report))


def release(work: Workspace, when: datetime, chats: Path) -> None:
    """An interactive run: a coloured screen, a refused push, a checkpoint, and a ghost."""
    chat = Chat(work, "release", start=when)
    chat.ask("Run the tests verbosely, then release 0.4.0")
    green, dim = {"fg": "#00cd00"}, {"dim": True}
    names = [
        f"{name.split('(')[0]:58}"
        for path in ("tests/test_api.py", "tests/test_parse.py", "tests/test_store.py")
        for name in work.files[path].split("def ")
        if name.startswith("test_")
    ]
    tests = [
        cells(f"{name}", ("PASSED", green), (f" [{n * 100 // len(names):3}%]", dim))
        for n, name in enumerate(names, 1)
    ]
    title = cells(("=" * 27 + " test session starts " + "=" * 27, {"bold": True}))
    end = cells(("=" * 28 + " 9 passed in 0.08s " + "=" * 27, green | {"bold": True}))
    plain = "\n".join("".join(run["text"] for run in line).rstrip() for line in (*tests, end))
    chat.say("", work.shell("pytest -v", plain, screen=[title, *tests, [], end], seconds=4.1))
    chat.say(
        "All green. I'll set the version, commit and tag.",
        work.replace(
            "pyproject.toml", 'version = "0.3.0"', 'version = "0.4.0"', "Set the version to 0.4.0."
        ),
        work.shell(
            "git commit -am 'Release 0.4.0' && git tag v0.4.0",
            "[main 7c1e9d4] Release 0.4.0\n 1 file changed, 1 insertion(+), 1 deletion(-)",
        ),
    )
    push = work.shell("git push --follow-tags", "", why="Publish the release")
    chat.say("", denied(push, "Pushing is left to people here."))
    chat.say(
        "Version 0.4.0 is committed and tagged. I may not push; please run\n\n"
        "```sh\ngit push --follow-tags\n```"
    )
    chat.note("Conversation checkpoint saved with tag: before-push.")
    chat.call_it("Release tidewatch 0.4.0")
    chat.write(chats)
    chat.checkpoint(chats.parent, "before-push")
    chat.ghost(chats, chat.clock + timedelta(hours=20))


def moon(work: Workspace, when: datetime, now: datetime) -> Chat:
    """A session that is still going on: tests run and have not ended."""
    chat = Chat(work, "moon", start=when, model="gemini-3-pro-preview")
    chat.ask("Add the moon phase to each answer, it explains the spring tides", pause=20)
    chat.say("", work.read("tidewatch/api.py"), thoughts=("Where it belongs: Beside the tides.",))
    chat.say(
        "A mean month is good to half a day, which is enough to explain a spring tide.",
        work.write("tidewatch/moon.py", text.MOON),
        work.replace(
            "tidewatch/api.py",
            "from tidewatch.parse import parse\n",
            "from tidewatch.moon import phase\nfrom tidewatch.parse import parse\n",
            "Import the moon phase.",
        ),
        work.replace(
            "tidewatch/api.py",
            '        return [json.dumps({"harbour": harbour, "tides": rows}).encode()]\n',
            "        moon = round(phase(datetime.now()), 2)\n"
            '        answer = {"harbour": harbour, "moon": moon, "tides": rows}\n'
            "        return [json.dumps(answer).encode()]\n",
            "Answer with the moon phase.",
        ),
    )
    chat.clock = now - timedelta(seconds=12)
    chat.say("Running the tests.")
    return chat
