"""What the README and the documents beside it say is what the program does."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import orjson
import pytest
from click.testing import CliRunner

from gemtui import GateError, load_session
from gemtui.cli import main, root
from gemtui.commands.shared_options import LaterCommand
from gemtui.ui.kit.keys import Where, keys_of
from gemtui.version import VERSION
from tests.fake_cli import INIT, OK, FakeCli, ends, says, uses
from tests.rows import each_row
from tests.tools.documents import (
    ASSETS,
    HERE,
    MAN_PAGE,
    PANES,
    PARTS,
    documents,
    man_page,
    rewritten,
)

DATA = Path(__file__).parent / "data" / "sessions"
TEXTS = {path: path.read_text(encoding="utf-8") for path in documents()}
README = TEXTS[HERE / "README.md"]

each_document = pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)


@each_document
def test_its_tables_are_those_of_the_program(path: Path) -> None:
    assert rewritten(TEXTS[path]) == TEXTS[path], "run: python -m tests.tools.documents"


def test_the_manual_page_is_that_of_the_program() -> None:
    assert MAN_PAGE.read_text() == man_page(), "run: python -m tests.tools.documents"


def test_every_table_has_a_place() -> None:
    everything = "".join(TEXTS.values())
    assert [name for name in PARTS if everything.count(f"<!-- {name} -->") != 1] == []


def test_the_keys_of_every_place_are_told() -> None:
    told = [place for places in PANES.values() for place in places]
    assert sorted(told) == sorted(place for place in Where if keys_of(place))


def test_a_table_that_says_otherwise_is_found() -> None:
    text = TEXTS[ASSETS / "settings.md"]
    assert rewritten(text.replace("ascii = false", "ascii = true", 1)) == text


def test_the_first_page_is_short_and_with_the_manual_s_leads_to_all_others() -> None:
    assert len(re.sub("<!--.*?-->", "", README, flags=re.S).split()) < 700
    first = README.replace("](assets/", "](") + TEXTS[ASSETS / "index.md"]
    others = [path.name for path in TEXTS if path.parent == ASSETS]
    assert [name for name in others if f"]({name}" not in first] == []


# --- links, pictures and places ------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """What can stand behind `#` in a link to a document: its headings as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@each_document
def test_its_pictures_and_links_are_there(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", TEXTS[path])
    wrong = []
    for link in (a or b for a, b in links):
        target, _, anchor = link.partition("#")
        place = path.parent / target if target else path
        if not link.startswith("http") and (
            not place.exists() or (anchor and anchor not in anchors(place))
        ):
            wrong.append(link)
    assert wrong == []


def test_every_picture_is_shown_on_a_page() -> None:
    shown = {name for text in TEXTS.values() for name in re.findall(r"[\w-]+\.svg", text)}
    assert {path.name for path in ASSETS.glob("*.svg")} <= shown
    assert len(re.findall(r"assets/[\w-]+\.svg", README)) == 1


@each_row("picture", sorted(ASSETS.glob("*.svg")))
def test_no_text_of_a_picture_has_blanks_at_its_ends(picture: Path) -> None:
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    assert [
        each for each in texts if each != each.strip() or re.search(r"^&#160;|&#160;$", each)
    ] == []


@each_document
def test_the_places_that_it_names_are_there(path: Path) -> None:
    named = re.findall(r"`((?:gemtui|tests|\.ci)/[\w./-]*)(?:: (\w+))?", TEXTS[path])
    wrong = []
    for place, name in named:
        file = HERE / place
        if not file.exists() or (name and not defines(file, name)):
            wrong.append(f"{place}: {name}")
    assert wrong == []


def defines(file: Path, name: str) -> bool:
    """Whether a module has a class, function, method or value of this name."""
    source = file.read_text(encoding="utf-8")
    return bool(re.search(rf"^\s*(?:class|(?:async )?def) {name}\b|^\s*{name}\b.*=", source, re.M))


def test_the_map_has_every_folder_and_every_module_that_stands_alone() -> None:
    package = HERE / "gemtui"
    folders = [path.parent for path in package.rglob("__init__.py") if path.parent != package]
    modules = [path for path in package.glob("*.py") if path.name != "__init__.py"]
    places = [str(path.relative_to(HERE)) for path in (*folders, *modules)]
    text = TEXTS[ASSETS / "architecture.md"]
    assert [place for place in places if f"| `{place}" not in text] == []


def test_the_changelog_begins_with_this_version() -> None:
    assert re.findall(r"^## ([\d.]+)", TEXTS[ASSETS / "changelog.md"], re.M)[0] == VERSION


# --- commands ------------------------------------------------------------------------------------


def test_its_first_commands_start_the_program_and_run_the_tests() -> None:
    commands = re.findall(r"^python3 -m venv .*$", README, flags=re.M)
    assert [command.rpartition("/")[2] for command in commands] == ["gemtui", "python -m pytest"]


def command_lines() -> Iterator[str]:
    """Every command of gemtui in a block or among words."""
    for path, text in TEXTS.items():
        written = text.partition("<!-- commands -->")[0] if path.name == "commands.md" else text
        yield from (line.partition("#")[0] for line in re.findall(r"^gemtui .*$", written, re.M))
        yield from re.findall(r"`(gemtui [^`]+)`", written)


@each_row("line", sorted(set(command_lines())))
def test_its_commands_exist(line: str) -> None:
    words = shlex.split(re.split("[|>]", line)[0])[1:]
    group: click.Command = root
    path: list[str] = []
    for word in words:
        if not isinstance(group, click.Group) or word not in group.commands:
            break
        found = group.commands[word]
        group = found.load() if isinstance(found, LaterCommand) else found
        path.append(word)
    if isinstance(group, click.Group) and path and words[len(path) :]:
        assert words[len(path)].startswith("-"), f"{' '.join(path)} has no such command"
    shown = CliRunner().invoke(root, [*path, "--help"]).output
    assert [word for word in words if word.startswith("-") and word not in shown] == []


@each_row("line", sorted(set(re.findall(r"python (?:-P )?-m (tests[.\w]+)", str(TEXTS)))))
def test_its_programs_for_developers_exist(line: str) -> None:
    place = HERE / line.replace(".", "/")
    assert place.with_suffix(".py").exists() or (place / "__main__.py").exists()


WORDS = {
    "sessions --live": "--json",
    "sessions": "--everywhere --json",
    "show --format json": "latest",
    "runs list": "--json",
    "runs questions": "--json",
    "runs clear": "--json",
    "files": "--everywhere --json",
    "fork": "b3bf9d1b --json",
    "recover": "nothing.txt --json",
    "search": "--everywhere --json hello",
    "stats": "--everywhere --json",
    "mark": "latest --json",
    "marks export": "",
    "marks import": "marks.json --json",
    "extension status": "--json",
    "vault on": "--json",
    "vault off": "--json",
    "vault status": "--json",
    "vault prune": "--yes --json",
    "trust list": "--json",
    "trust remove": "/ --json",
    "policy list": "--json",
    "policy show": "work.toml --json",
    "policy check": "work.toml --json",
    "policy words": "allow --json",
    "policy flags": "work.toml --json",
    "policy explain": "--tool glob --json",
    "policy replay": "--everywhere --json",
    "policy suggest": "--everywhere --json",
    "doctor": "--json",
    "undo": "b3bf9d1b --to 1 --files --yes --json",
    "checkpoints": "latest --json",
    "push": "pushed --json",
    "review": "latest --json",
}
SHAPES = dict(
    re.findall(r"^\| `gemtui ([^`]+)` \| `\{([^}]+)\}`", TEXTS[ASSETS / "commands.md"], re.M)
)


def names(shape: str) -> set[str]:
    """The names in `"version", "home"`."""
    return {name.strip('" \n') for name in shape.split(",")}


@pytest.mark.parametrize("command", WORDS)
def test_its_json_has_the_names_that_are_told(
    command: str, work: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    main([*command.split(), *WORDS[command].split()])
    assert set(orjson.loads(capsysbinary.readouterr().out)) == names(SHAPES[command])


@pytest.mark.parametrize("command", ["runs show", "runs stop", "runs restore", "runs queue"])
def test_the_json_about_one_run_has_the_names_that_are_told(
    command: str, work: Path, fake_cli: FakeCli, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    fake_cli(f"print:{INIT}", says("Done."), f"print:{OK}")
    assert main(["run", "--quiet", "hi"]) == 0
    capsysbinary.readouterr()
    main([*command.split(), "latest", "--json"])
    assert set(orjson.loads(capsysbinary.readouterr().out)) == names(SHAPES[command])


def test_the_json_about_a_session_that_is_put_back_has_the_names_that_are_told(
    work: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    session = load_session("latest").session
    main(["vault", "on"])
    session.path.unlink()
    main(["vault", "restore", session.id, "--json"])
    answer = orjson.loads(capsysbinary.readouterr().out)
    assert set(answer) == names(SHAPES["vault restore"])


def test_the_json_of_redo_has_the_names_of_undo() -> None:
    assert names(SHAPES["redo"]) == names(SHAPES["undo"])


def test_all_json_is_looked_at() -> None:
    of_runs = {"runs show", "runs stop", "runs restore", "runs queue", "runs answer", "runs say"}
    of_worktrees = {f"worktrees {name}" for name in ("list", "diff", "apply", "remove")}
    alone = of_runs | of_worktrees | {"redo", "sessions move", "vault restore"}
    assert SHAPES.keys() - WORDS.keys() == alone


def test_sessions_runs_and_events_have_the_names_that_are_told(
    work: Path, fake_cli: FakeCli, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = TEXTS[ASSETS / "commands.md"]
    told = {
        name: names(shape)
        for name, shape in re.findall(r"^\*\*An? (\w+)\*\*[^{]*\{([^}]+)\}", text, re.M)
    }
    fake_cli(f"print:{INIT}", says("Done."), f"print:{OK}")
    main(["run", "--json", "--quiet", "hi"])
    events = [orjson.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert {name for event in events for name in event} == told["event"]
    main(["runs", "--json"])
    (run,) = orjson.loads(capsysbinary.readouterr().out)["runs"]
    assert set(run) == told["run"]
    main(["sessions", "--everywhere", "--json"])
    for session in orjson.loads(capsysbinary.readouterr().out)["sessions"]:
        assert set(session) == told["session"]


# --- programs ------------------------------------------------------------------------------------


def programs(path: Path) -> list[str]:
    """The blocks of Python in a document."""
    return re.findall(r"```python\n(.*?)```", TEXTS[path], flags=re.S)


def run(program: str) -> None:
    exec(compile(program, "document", "exec"), {"__name__": "__main__"})


@each_document
def test_its_programs_are_python(path: Path) -> None:
    for program in programs(path):
        compile(program, path.name, "exec")


@pytest.fixture
def work(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with sessions in the store and a policy at hand."""
    shutil.copytree(DATA / "main" / ".gemini", home / ".gemini", dirs_exist_ok=True)
    monkeypatch.chdir(home)
    Path("work.toml").write_text(
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "git push"\ndecision = '
        '"deny"\npriority = 9\n'
    )
    Path("marks.json").write_text('{"version": 1, "marks": []}')
    return home


def test_the_program_of_the_first_page_runs(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (reading,) = programs(HERE / "README.md")
    run(reading)
    assert "assistant (" in capsys.readouterr().out


def test_the_programs_about_the_library_run(
    work: Path, fake_cli: FakeCli, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, raw, running, aborting, asking, providing, deciding, levels, failing = programs(
        ASSETS / "library.md"
    )
    run(reading)
    assert "assistant (" in capsys.readouterr().out
    run(raw)
    assert capsys.readouterr().out.startswith("24 ")
    fake_cli(
        f"print:{INIT}",
        uses("t", "write_file", "haiku.txt"),
        ends("t"),
        says("Done."),
        f"print:{OK}",
    )
    run(running)
    told = capsys.readouterr().out
    assert "Done." in told
    assert "write_file success" in told
    assert "success" in told
    run(providing)
    assert "['haiku.txt']" in capsys.readouterr().out
    run(deciding)
    assert "deny True Rule 1 of work.toml" in capsys.readouterr().out
    run(levels)
    assert "run_shell_command" in capsys.readouterr().out
    run(failing)
    assert "no session has the id" in capsys.readouterr().out
    with pytest.raises(GateError, match="gemtui extension install"):
        run(asking)
    fake_cli(f"print:{INIT}", "wait")
    run(aborting)
    assert "interrupted" in capsys.readouterr().out
