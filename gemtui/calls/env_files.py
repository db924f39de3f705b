"""The `.env` file that Gemini CLI reads for a run, and what its variables could change.

The CLI adds the variables to its own environment, where they are not set already, so every command
of the run gets them (assets/gemini-cli.md#env-files).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gemtui.calls.blanks import BLANKS
from gemtui.files import read_small, resolved
from gemtui.paths import gemini_home

MOST: Final = 1_000_000
"""Bytes of the largest `.env` file that is read here."""

_ENDS: Final = "\n\r\u2028\u2029"
_SPACE: Final = "".join(set(BLANKS) - set(_ENDS))
_LINE: Final = re.compile(
    # the pattern of dotenv with JavaScript's blanks and ends of lines; blanks before a name are
    # taken on its own line only, which finds the same names in linear time
    r"(?<![^{ends}])[{space}]*+(?:export[{blanks}]++)?([A-Za-z0-9_.-]+)"
    r"(?:[{blanks}]*+=[{blanks}]*?|:[{blanks}]+?)"
    r"([{blanks}]*'(?:\\'|[^'])*'|[{blanks}]*\"(?:\\\"|[^\"])*\"|[{blanks}]*`(?:\\`|[^`])*`"
    r"|[^#\r\n]+)?[{blanks}]*(?:#[^{ends}]*)?(?![^{ends}])".replace("{ends}", _ENDS)
    .replace("{space}", re.escape(_SPACE))
    .replace("{blanks}", re.escape(BLANKS))
)
_QUOTED: Final = re.compile(r"(['\"`])(.*)\1", re.DOTALL)

_RISKY: Final = re.compile(
    # shells and the loader of programs
    r"PATH|ENV|BASH(?:_.*|OPTS)?|SHELL(?:OPTS)?|PS[0-4]|IFS|CDPATH|GLOBIGNORE|PROMPT_COMMAND"
    r"|POSIXLY_CORRECT|(?:LD|DYLD|GCONV|MALLOC|GLIBC)_.*|LOCPATH|NLSPATH|TERMINFO(?:_DIRS)?"
    # what programs read or start
    r"|GIT_.*|SSH_.*|GREP_.*|RIPGREP_CONFIG_PATH|LESS.*|.*(?:PAGER|EDITOR)|BROWSER|VISUAL"
    r"|NODE_.*|(?i:NPM_CONFIG_.*)|PYTHON[A-Z0-9]+|PERL(?:_.*|5[A-Z]+|LIB)|RUBY(?:OPT|LIB)"
    r"|LUA_.*|CLASSPATH|_?JAVA(?:_TOOL)?_OPTIONS|JDK_JAVA_OPTIONS"
    # where programs look for their settings
    r"|HOME|XDG_.*|TMPDIR|TMP|TEMP|GEMINI_CLI_HOME",
    re.ASCII,
)
_HARMLESS: Final = re.compile(
    r"GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GREP_COLORS?|NODE_ENV", re.ASCII
)


def env_files(
    project: Path, environ: Mapping[str, str] = os.environ, *, ignore_local: bool = False
) -> tuple[Path, ...]:
    """Return the `.env` file that the CLI reads in a trusted folder; () = there is none.

    In each folder from the project up to the root, `.gemini/.env` and then `.env` is looked for,
    and last in the home folder. `ignore_local`: `--ignore-env` or `advanced.ignoreLocalEnv` is set;
    then plain `.env` files count in the home folder alone.
    """
    home = gemini_home(environ).parent
    found = next(
        (path for path in _places(resolved(project), home, ignore_local) if _is(path)), None
    )
    return () if found is None else (found,)


def _places(project: Path, home: Path, ignore_local: bool) -> Iterator[Path]:
    for folder in (project, *project.parents):
        yield folder / ".gemini" / ".env"
        if not ignore_local or folder == home:
            yield folder / ".env"
    yield home / ".gemini" / ".env"
    yield home / ".env"


def _is(path: Path) -> bool:
    """Whether the CLI stops at this path: it is anything that exists, readable or not."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:  # a folder that may not be looked into: it does not exist for the CLI either
        return False
    return True


def variables(path: Path) -> dict[str, str]:
    """Return what a `.env` file sets, as the CLI reads it. Raises OSError."""
    text = read_small(path, MOST).decode(errors="replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return {match[1]: _value(match[2] or "") for match in _LINE.finditer(text)}


def _value(raw: str) -> str:
    text = raw.strip(BLANKS)
    quoted = _QUOTED.fullmatch(text)
    value = quoted[2] if quoted else text
    return value.replace(r"\n", "\n").replace(r"\r", "\r") if text[:1] == '"' else value


def is_risky(name: str) -> bool:
    """Return whether a variable can make a harmless program run another or read other files."""
    return bool(_RISKY.fullmatch(name)) and not _HARMLESS.fullmatch(name)


def risky_variables(path: Path) -> tuple[str, ...]:
    """Return the names of the variables that a `.env` file sets for which `is_risky`, sorted.

    Raises OSError, also for a file larger than `MOST`.
    """
    return tuple(sorted(name for name in variables(path) if is_risky(name)))
