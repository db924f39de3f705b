"""Recognise files that decide what is run later, and describe settings changes.

A call that writes such a file can give the next run, the next commit or the next shell full
permissions, so the user is asked about the call in every mode except yolo. Which files these are is
a table, `later_files.toml`, with a source for each; of hidden files, those that are not known count
as well. Code that an ordinary command imports doesn't count, not even `conftest.py`, but a file
that names programs to start does, and so does a file that Gemini CLI's settings or git start
(`starts_it`): if a hook starts it, the model's own code runs as early as the next tool call.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, islice, pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from gemtui.calls.git_repository import GitProgram, programs_of
from gemtui.calls.setting_effects import SettingEffect, commands_of, setting_effects
from gemtui.files import read_small, resolved
from gemtui.jsonfile import object_of, without_comments
from gemtui.paths import config_file, data_dir, gemini_home, state_dir, typed_path, worktrees_dir

_MOST_ENTRIES = 2000
"""How many entries of the home folder are checked for links into the project."""
_EVERYWHERE: Final = re.compile(
    r"(?:\A|/)\.gemini/(?:extensions|commands|agents|policies|hooks|skills)(?:/|\Z)"
)
"""Folders that affect all runs, in every project."""


_END: Final = r"(?:/|\Z)"
"""Matches the end of a name in a path."""


class _Kind(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of file in the table `later_files.toml`, whose head describes the fields."""

    why: str
    files: Mapping[str, Sequence[str]]
    exceptions: Sequence[str] = field(default=(), name="except")
    exact: Sequence[str] = ()

    def pattern(self) -> re.Pattern[str]:
        """Return a pattern to be searched in a path whose case is folded."""
        exceptions = f"(?!{_any_of(self.exceptions)}{_END})" if self.exceptions else ""
        names = _any_of(chain.from_iterable(self.files.values()))
        return re.compile(rf"(?:\A|/){exceptions}{names}{_END}")

    def start(self) -> re.Pattern[str]:
        """Return a pattern, like `pattern`, for the folders that begin the longer patterns."""
        starts = (
            str(folder)
            for pattern in chain.from_iterable(self.files.values())
            for folder in PurePosixPath(pattern).parents[:-1]
        )
        return re.compile(rf"(?:\A|/){_any_of(starts)}\Z")


class _Plain(Struct, frozen=True, forbid_unknown_fields=True):
    """Files that no program loads by itself.

    `why`: the reason to give for files that are neither of these nor of a known kind.
    """

    why: str
    endings: str
    names: str


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The table `later_files.toml`: known kinds of files, the hidden files that are not known, and
    files that no program loads by itself.
    """

    kinds: Mapping[str, _Kind]
    hidden: _Kind
    plain: _Plain


class _LaterFiles:
    """The patterns of files that decide what is run later."""

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._patterns = [(kind.pattern(), kind.why) for kind in table.kinds.values()]
        self._exact = {name: kind.why for kind in table.kinds.values() for name in kind.exact}
        self._starts = [(kind.start(), kind.why) for kind in table.kinds.values()]
        self._hidden = table.hidden.pattern()
        self._endings = frozenset(table.plain.endings.split())
        self._names = frozenset(table.plain.names.split())

    def why(self, kind: str) -> str:
        """Return why files of a kind decide what is run later."""
        return self._table.kinds[kind].why

    def why_known(self, path: Path) -> str | None:
        """Return why a file of a known kind decides what is run later; None for other files."""
        if path.name in self._exact:
            return self._exact[path.name]
        text = _folded(path)
        for pattern, why in self._patterns:
            if pattern.search(text):
                return why
        return None

    def why_some_in(self, folder: Path) -> str | None:
        """Return why a file in a folder, or below, would be of a known kind, by its path."""
        text = _folded(folder)
        for pattern, why in self._starts:
            if pattern.search(text):
                return why
        return None

    def why_hidden(self, path: Path) -> str | None:
        """Return why a program may load a hidden file; None if the file is not hidden or only
        text.
        """
        return self._table.hidden.why if self._hidden.search(_folded(path)) else None

    def why_not_plain(self, path: Path) -> str | None:
        """Return why a program may load a file by itself, judging by its ending alone.

        Returns None for endings and names that are known, and for hidden files.
        """
        name, dot, ending = _folded(Path(path.name)).rpartition(".")
        is_listed = ending in (self._endings if dot else self._names)
        return None if is_listed or (dot and not name) else self._table.plain.why


@cache
def _later_files() -> _LaterFiles:
    text = Path(__file__).with_name("later_files.toml").read_text(encoding="utf-8")
    return _LaterFiles(msgspec.convert(tomllib.loads(text), _Table))


def _any_of(patterns: Iterable[str]) -> str:
    """Return a regular expression for any of the patterns."""
    expressions = (
        re.escape(_folded(Path(pattern))).replace(r"\*", "[^/]*") for pattern in patterns
    )
    return f"(?:{'|'.join(expressions)})"


def why_runs_later(path: Path, project: Path) -> str | None:
    """Return why a file decides what is run later, as a clause; None if it doesn't.

    `path`, `project`: absolute, with links resolved. If `path` is in the project, the names of the
    folders above the project don't matter. Spellings that some file systems treat as equal (case,
    width, invisible characters) count as the same. Reads the disk.
    """
    table = _later_files()
    below = path.relative_to(project) if path.is_relative_to(project) else path
    ours = any(path.is_relative_to(resolved(folder)) for folder in (data_dir(), state_dir()))
    if ours and not (below != path and project.is_relative_to(resolved(worktrees_dir()))):
        return table.why("gemtui")
    policies = resolved(config_file().parent / "policies")
    if path == resolved(config_file()) or path.is_relative_to(policies):
        return table.why("gemtui-settings")
    if _EVERYWHERE.search(_folded(path)):
        return table.why("cli-additions")
    for name in (below, *_at_home(path, project)):
        why = table.why_known(name)
        if why is not None:
            return why
    if _is_beside_head(path, project):
        return table.why("bare-repository")
    return table.why_hidden(below)


def why_not_plain(path: Path) -> str | None:
    """Return why a program may load a file by itself, judging by its ending, as a clause.

    Returns None for endings that are known. Known names, whatever their ending, are for
    `why_runs_later`.
    """
    return _later_files().why_not_plain(path)


def why_may_run_later(folder: Path, project: Path) -> str | None:
    """Return why some file in a folder would decide what is run later, as a clause, or None.

    The file's name is unknown. `folder`, `project`: absolute, with links resolved.
    """
    below = folder.relative_to(project) if folder.is_relative_to(project) else folder
    return why_runs_later(folder / "x", project) or _later_files().why_some_in(below)


def _at_home(path: Path, project: Path) -> Iterator[Path]:
    """Yield the other names that a project file has through links in the home folder.

    The names are relative to the home folder, and only links into the project count. For example,
    in a project that contains start-up files, `~/.gemini` may be a link to the project's folder
    `gemini`.
    """
    home = Path.home()
    for folder in (home, home / ".config"):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                target = resolved(Path(entry.path)) if entry.is_symlink() else None
                if target and target.is_relative_to(project) and path.is_relative_to(target):
                    yield Path(entry.path).relative_to(home) / path.relative_to(target)


def _is_beside_head(path: Path, project: Path) -> bool:
    """Return whether git may use a folder above the file as a bare repository.

    Git does so only if the folder contains a file named HEAD. Folders outside the project don't
    count.
    """
    folders = (folder for folder in path.parents if folder.is_relative_to(project))
    return any(os.path.lexists(folder / "HEAD") for folder in folders)


def _folded(path: Path) -> str:
    text = unicodedata.normalize("NFKC", path.as_posix()).casefold()
    return "".join(char for char in text if unicodedata.category(char) != "Cf")


# --- changes of settings -------------------------------------------------------------------------


def describe_settings_change(path: Path, before: str | None, after: str | None) -> tuple[str, ...]:
    """Describe a change to one of the CLI's settings files, one sentence per setting.

    `before`, `after`: the whole contents; None if there is no file. Returns () for other files and
    for a deletion. The sentences quote untrusted values.
    """
    if not _folded(path).endswith("/.gemini/settings.json") or after is None:
        return ()
    now = _settings(after, path)
    if now is None:
        return ("The file would no longer be a JSON object, so Gemini CLI would exit immediately.",)
    was = _effects((_settings(before, path) if before else None) or {})
    becomes = _effects(now)
    gone = (f"Removes {setting}." for setting in was if setting not in becomes)
    return (*_changes(was, becomes), *gone)


def _changes(
    was: Mapping[str, SettingEffect], becomes: Mapping[str, SettingEffect]
) -> Iterator[str]:
    for setting, effect in becomes.items():
        if setting not in was:
            yield f"Adds {setting}. {effect.follows}"
        elif effect.value != was[setting].value:
            yield f"Changes {setting}. {effect.follows}"


def _effects(settings: Mapping[str, Any]) -> dict[str, SettingEffect]:
    return {effect.setting: effect for effect in setting_effects(settings)}


def _settings(text: str, path: Path) -> Mapping[str, Any] | None:
    try:
        return object_of(without_comments(text.encode("utf-8", "replace")), path)
    except OSError:
        return None


_PROJECT: Final = re.compile(
    r"\$(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD)\b"
    r"|\$\{(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD|workspacePath)\}"
)
"""Variables in hook commands whose value is the run's folder."""


def starts_it(settings: Mapping[str, Any], project: Path, path: Path) -> str | None:
    """Return what starts a project file as a program, as a clause, or None.

    `settings`: Gemini CLI's settings, merged from all files. `project`, `path`: absolute, with
    links resolved. Files that such a program loads in turn are not recognised.
    """
    for command in commands_of(settings):
        folder = resolved(project / _PROJECT.sub(str(project), command.folder))
        if any(resolved(folder / name) == path for name in _names(command.words, project)):
            return "Gemini CLI's settings start it as a program"
    if any(_git_starts(git_program, project, path) for git_program in programs_of(project)):
        return "git runs it automatically, for example when you commit"
    return None


def is_program(path: Path, environ: Mapping[str, str]) -> bool:
    """Return whether a shell runs this file when its name is entered as a command.

    For that, the file must be executable, and its folder must be in PATH. So a new file doesn't
    count, because no tool makes files executable. `path`: absolute, with links resolved.
    """
    folders = (entry for entry in environ.get("PATH", "").split(":") if entry.startswith("/"))
    return os.access(path, os.X_OK) and any(
        resolved(Path(folder)) == path.parent for folder in folders
    )


def _git_starts(named: GitProgram, project: Path, path: Path) -> bool:
    if named.hooks:
        return path.is_relative_to(resolved(named.folder / typed_path(named.command)))
    names = _names((named.command,), project)
    return any(resolved(named.folder / typed_path(name)) == path for name in names)


def _names(command: tuple[str, ...], project: Path) -> Iterator[str]:
    """Yield all paths that the words of a command may refer to."""
    whole = [_PROJECT.sub(str(project), word).replace("\0", "") for word in command]
    yield from whole
    pieces = [piece for word in whole for piece in _split(word)]
    for before, piece in pairwise(["", *pieces]):
        yield from (piece, piece.partition("=")[2])
        if before == "-m":
            module = piece.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")


def _split(text: str) -> list[str]:
    with suppress(ValueError):
        return [piece.strip(";&|()<>") for piece in shlex.split(text)]
    return text.split()


_LARGEST: Final = 1_000_000
_HEAD: Final = re.compile(rb"\A\s*---[ \t]*\r?\n(.*?)\r?\n---", re.DOTALL)
_STARTS: Final = re.compile(rb"mcp_servers|agent_card|\\")
"""Keys in an agent file's front matter that can start programs.

A backslash counts as well, because an escape sequence could spell one of the keys.
"""


def agents_that_start(project: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the agent files of user, project and extensions that may start programs.

    A file is included if it can't be read or its front matter can't be parsed.
    """
    home = gemini_home(environ)
    folders = (project / ".gemini" / "agents", home / "agents")
    for folder in (*folders, *sorted(home.glob("extensions/*/agents"))):
        yield from filter(_may_start, sorted(folder.glob("*.md")))


def _may_start(file: Path) -> bool:
    text = None
    with suppress(OSError):
        text = read_small(file, _LARGEST)
    head = None if text is None else _HEAD.match(text)
    return head is None or _STARTS.search(head[1]) is not None
