"""Check, without running git, whether git could run one of the project's programs.

Git's configuration determines which programs git starts (assets/gemini-cli.md#safe-commands). Only
settings known to start nothing are accepted, so that any setting added to git in the future leads
to a question.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from gemtui.errors import reason_of
from gemtui.files import read_if_present, read_small, resolved
from gemtui.text import visible_line

_HEAD: Final = re.compile(rb"ref:[ \t]*refs/|[0-9a-f]{40,64}\s*\Z")
_GITLINK: Final = (0o160000).to_bytes(4, "big")
_MOST: Final = 200_000_000
"""The largest git index file, in bytes, that is read."""
_MOST_FOLDERS: Final = 1000
"""The most folders that are searched for a `.git` folder."""

_SECTION: Final = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\][ \t]*(?:[#;].*)?')
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:[=#;].*)?")
_HEADING: Final = re.compile(r'\s*\[([A-Za-z0-9-]+)(?:\.[^\]]*|[ \t]+"(?:[^"\\]|\\.)*")?\]')
_VALUE: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)[ \t]*=(.*?)(?:[ \t][#;].*)?\r?")
_ODD: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _keys(section: str, text: str) -> frozenset[str]:
    return frozenset(f"{section}.{key}" for key in text.split())


_HARMLESS_SECTIONS: Final = _names(
    """advice am apply author branch clean clone color column commit committer feature fetch gc gui
    help init lfs maintenance notes pack pull push rebase rerere tag url user versionsort"""
)
"""Sections of git's configuration that start no program when git only reads."""
_HARMLESS: Final = (
    _keys(
        "core",
        """abbrev autocrlf bigfilethreshold checkroundtripencoding checkstat commentchar commitgraph
        compression deltabasecachelimit eol filemode filesreflocktimeout fscache ignorecase
        ignorestat logallrefupdates longpaths loosecompression multipackindex packedgitlimit
        packedgitwindowsize packedrefstimeout precomposeunicode preloadindex protecthfs protectntfs
        quotepath repositoryformatversion safecrlf sharedrepository sparsecheckout
        sparsecheckoutcone symlinks trustctime untrackedcache warnambiguousrefs whitespace""",
    )
    | _keys(
        "diff",
        """algorithm autorefreshindex colormoved colormovedws context dirstat ignoresubmodules
        indentheuristic interhunkcontext mnemonicprefix noprefix relative renamelimit renames
        statgraphwidth suppressblankempty wserrorhighlight""",
    )
    | _keys(
        "log", "abbrevcommit date decorate excludedecoration follow graphcolors mailmap showroot"
    )
    | _keys("merge", "conflictstyle ff log renamelimit renames stat tool verbosity")
    | _keys(
        "remote",
        """fetch gh-resolved mirror prune prunetags push pushurl skipdefaultupdate skipfetchall
        tagopt url""",
    )
    | _keys(
        "status",
        """aheadbehind branch displaycommentprefix relativepaths renamelimit renames short
        showstash showuntrackedfiles""",
    )
)
_BARE: Final = "core.bare"
_SHOWS_ELSEWHERE: Final = re.compile(rb"fullname|\[\s*include", re.IGNORECASE)
_STARTS: Final = re.compile(
    r"(?:alias|pager|browser|difftool|mergetool|man)\..*|.*(?:command|cmd|textconv|clean|smudge"
    r"|process|external|program|fsmonitor|pager|editor|hookspath|proxy|driver|helper|difffilter"
    r"|askpass|uploadpack|receivepack)"
)


def why_not_read_only(project: Path, folder: Path, *, looks_at_files: bool) -> str | None:
    """Return why a git command meant to read may do more; None if it only reads.

    The reason is a clause. `project`, `folder`: the run's folder and the command's folder, both
    absolute and real. `looks_at_files`: whether the command compares the project's files, so that
    git also enters submodules and may write its index.
    """
    own = _repository(project)
    if own is None:
        return "the project is not in a git repository"
    if not same_repository(project, folder) or folder.is_relative_to(own):
        return "its folder belongs to another git repository"
    try:
        return _why_odd(own) or _why_config(own) or (_why_files(own) if looks_at_files else None)
    except OSError as error:
        return f"the git repository can't be read: {reason_of(error)}"


def why_not_searched(folder: Path) -> str | None:
    """Return why a git search may show files outside its folder; None if it can't.

    The reason is a clause. The CLI leaves out results whose path begins with `../`, but with
    `grep.fullName` git prints such files under other paths (assets/gemini-cli.md#searches).
    """
    repository = _repository(folder)
    if repository is None:
        return None
    if repository.name != ".git":
        return "its folder looks like a bare git repository, which has its own configuration"
    for config in _configs(repository):
        try:
            if _SHOWS_ELSEWHERE.search(read_if_present(config) or b""):
                return "the git repository's configuration changes the paths that searches show"
        except OSError as error:
            return f"the git repository's configuration can't be read: {reason_of(error)}"
    return None


def may_hold_repository(folder: Path) -> bool:
    """Return whether a folder may be in a git repository, or contain one.

    If not, the CLI never searches with git (assets/gemini-cli.md#searches). If there are too many
    folders to check or one can't be read, the answer is uncertain and True is returned.
    """
    if is_in_repository(folder):
        return True
    unread: list[OSError] = []
    for number, (_, folders, files) in enumerate(os.walk(resolved(folder), onerror=unread.append)):
        if unread or number == _MOST_FOLDERS or ".git" in (*folders, *files):
            return True
    return bool(unread)


def is_in_repository(folder: Path) -> bool:
    """Return whether a folder or one of its parents is a git repository."""
    return _repository(resolved(folder)) is not None


def _configs(git: Path) -> Iterator[Path]:
    """Yield the configuration files of a repository; some may not exist.

    `git`: the `.git` folder, or a `.git` file that points to it.
    """
    with suppress(OSError):
        if git.is_file():
            text = read_small(git).decode(errors="replace")
            git = resolved(git.parent / text.removeprefix("gitdir:").strip())
    common = git
    with suppress(OSError):
        common = resolved(git / read_small(git / "commondir").decode(errors="replace").strip())
    yield from (git / "config", git / "config.worktree", common / "config")


class GitProgram(NamedTuple):
    """A program that git's configuration names.

    `command`: the command, or the folder that contains hooks if `hooks` is true. `folder`: where
    git starts the program; relative paths are resolved from there.
    """

    command: str
    folder: Path
    hooks: bool


def programs_of(project: Path) -> Iterator[GitProgram]:
    """Yield the programs named by the git configuration that applies in a folder.

    This is the configuration of the folder's repository and of the user. Files that it includes are
    not read.
    """
    folder = project
    while not os.path.lexists(folder / ".git"):
        if folder == folder.parent:
            return
        folder = folder.parent
    home = Path.home()
    at_home = (home / ".gitconfig", home / ".config" / "git" / "config")
    for config in (*_configs(folder / ".git"), *at_home):
        with suppress(OSError):
            for name, value in _values(read_small(config).decode(errors="replace")):
                if name == "core.hookspath":
                    yield GitProgram(value, folder, hooks=True)
                elif name.startswith("alias.") and not value.startswith("!"):
                    continue
                elif _STARTS.fullmatch(name):
                    yield GitProgram(value.removeprefix("!"), folder, hooks=False)


def _values(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in a configuration file as pairs of name and value.

    A name such as `diff.cmd` leaves out the subsection, as in `[diff "name"] cmd = …`.
    """
    section = ""
    for line in text.replace("\0", "").replace("\\\n", " ").split("\n"):
        heading = _HEADING.match(line)
        if heading is not None:
            section = heading[1].lower()
        value = _VALUE.fullmatch(line, 0 if heading is None else heading.end())
        if value is not None:
            yield f"{section}.{value[1].lower()}", value[2].replace('"', "").strip()


def same_repository(project: Path, folder: Path) -> bool:
    """Return whether git uses the same repository in both folders, or none in either."""
    return _repository(project) == _repository(folder)


def _repository(folder: Path) -> Path | None:
    """Return the repository that git uses in a folder; None if there is none.

    This is the nearest `.git`, or a folder that looks like a bare repository, in the folder or one
    of its parents.
    """
    for above in (folder, *folder.parents):
        if os.path.lexists(above / ".git"):
            return above / ".git"
        if all(os.path.lexists(above / name) for name in ("HEAD", "objects", "refs")):
            return above
    return None


def _why_odd(git: Path) -> str | None:
    if git.name != ".git" or git.is_symlink() or not git.is_dir():
        return "the git repository is bare, a symbolic link or a worktree of another one"
    if not ((git / "objects").is_dir() and (git / "refs").is_dir()):
        return "the folder's `.git` is not a repository"
    if not _HEAD.match(read_small(git / "HEAD")):
        return "the folder's `.git` is not a repository"
    odd = ("commondir", "objects/info/alternates", "objects/info/http-alternates")
    if any(os.path.lexists(git / name) for name in odd):
        return "the git repository depends on another one"
    return None


def _why_config(git: Path) -> str | None:
    path = git / "config"
    if path.is_symlink():
        return "the repository's git configuration is a symbolic link"
    section = ""
    for line in read_small(path).decode(errors="replace").removeprefix("\ufeff").split("\n"):
        text = line.removesuffix("\r").strip(" \t")
        if _ODD.search(text) or text.endswith("\\"):
            return "the repository's git configuration can't be read reliably"
        if not text or text[0] in "#;":
            continue
        heading, key = _SECTION.fullmatch(text), _KEY.fullmatch(text)
        if heading is not None:
            section = heading[1].lower() + ("" if heading[2] is None else f".{heading[2]}")
            continue
        if key is None or not section:
            return "the repository's git configuration can't be read reliably"
        why = _why_key(section, key[1].lower(), text)
        if why is not None:
            return why
    return None


def _why_key(section: str, key: str, line: str) -> str | None:
    first, _, middle = section.partition(".")
    named = f"{first}.{key}"
    if first in _HARMLESS_SECTIONS or (named in _HARMLESS and (not middle or first == "remote")):
        return None
    if named == _BARE and re.fullmatch(r"[^=]*=[ \t]*false[ \t]*", line):
        return None
    whole = visible_line(f"{section}.{key}"[:80])
    if first in ("include", "includeif"):
        return "the repository's git configuration includes another file"
    if _STARTS.fullmatch(named):
        return f"the repository's git configuration sets `{whole}`, which can run a program"
    return f"the repository's git configuration sets `{whole}`, which may change what git does"


def _why_files(git: Path) -> str | None:
    if os.path.lexists(git / "hooks" / "post-index-change"):
        return "the git repository has a hook that runs when git refreshes its index"
    if any(git.glob("sharedindex.*")):
        return "the git repository's index can't be read reliably"
    index = git / "index"
    in_index = index.exists() and _GITLINK in read_small(index, _MOST)
    if in_index or os.path.lexists(git / "modules"):
        return "the git repository has submodules, which have their own settings"
    return None
