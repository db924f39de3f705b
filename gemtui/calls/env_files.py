"""Find the `.env` file that Gemini CLI 0.61 reads, and what its variables can do.

The CLI adds the variables of one file to its own environment, and therefore to the environment of
every hook, MCP server and command it starts (assets/gemini-cli.md#env-files).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from gemtui.calls.javascript import BLANKS
from gemtui.files import path_exists, read_small, resolved
from gemtui.paths import gemini_home

MOST = 128 * 1024
"""The largest `.env` file, in bytes, that is read.

A larger file is probably not meant for the CLI.
"""
_LONGEST = 2048
"""The longest quoted string, in characters, that is treated as one value.

If a string is longer, its lines are parsed as separate variables, so that none is missed.
"""
_S = f"[{BLANKS}]"
_LINE = re.compile(
    rf"^{_S.replace(chr(10), '')}*+(?:export{_S}+)?([A-Za-z0-9_.-]++)(?:{_S}*=|:{_S})"
    rf"({_S}*(?:'(?:\\'|[^']){{0,{_LONGEST}}}'"
    rf'|"(?:\\"|[^"]){{0,{_LONGEST}}}"'
    rf"|`(?:\\`|[^`]){{0,{_LONGEST}}}`)|[^#\n]+)?{_S}*(?:#.*)?$",
    re.MULTILINE,
)
"""Matches one variable in the syntax of the JavaScript package dotenv."""
_QUOTED = re.compile(r"""^(['"`])([\s\S]*)\1$""", re.MULTILINE)
_ENDS = re.compile("\r\n?|[\u2028\u2029]")
_IGNORED = frozenset(
    (
        "DEBUG",
        "DEBUG_MODE",
        "GEMINI_CLI_IDE_SERVER_STDIO_COMMAND",
        "GEMINI_CLI_IDE_SERVER_STDIO_ARGS",
    )
)
"""Variables the CLI ignores in files outside `.gemini`."""

_IN_HOOKS = re.compile(
    "BASH_ENV|BASHOPTS|SHELLOPTS|PS4|ENV|LD_.*|DYLD_.*|GCONV_PATH|NODE_OPTIONS|GEMTUI_.*"
)
_MOVES = re.compile(
    "GEMINI_CLI_HOME|GEMINI_CLI_SYSTEM_(SETTINGS|DEFAULTS)_PATH|GEMINI_CLI_TRUSTED_FOLDERS_PATH"
)
_WRITTEN = re.compile(
    "GEMINI_WRITE_SYSTEM_MD|GEMINI_TELEMETRY_OUTFILE|GEMINI_DEBUG_LOG_FILE|GEMINI_CONTEXT_TRACE_DIR"
    "|GEMINI_CLI_ACTIVITY_LOG_TARGET|SSLKEYLOGFILE|NODE_(V8_COVERAGE|COMPILE_CACHE|REDIRECT_WARNINGS)"
    "|GIT_TRACE.*"
)
"""Variables that name a file or folder to which the CLI, or git run by it, writes."""
_IN_SEARCHES = re.compile("RIPGREP_CONFIG_PATH|GIT_(DIR|WORK_TREE|COMMON_DIR|EXEC_PATH)")
"""Variables that add options to the CLI's searches, or make them search elsewhere.

For example, they can add ripgrep's option `--pre`, which runs a program.
"""
_RISKY = re.compile(
    # shells and the program loader
    r"PATH|BASH(_.*)?|SHELL|PS[0-3]|IFS|CDPATH|GLOBIGNORE|PROMPT_COMMAND|ZDOTDIR|POSIXLY_CORRECT"
    r"|(GCONV|MALLOC|GLIBC)_.*|LOCPATH|NLSPATH|TERMINFO(_DIRS)?"
    # what programs read or start
    r"|GIT_.*|SSH_.*|SUDO_ASKPASS|GREP_.*|RIPGREP_CONFIG_PATH|LESS.*|.*(PAGER|EDITOR)|VISUAL|BROWSER"
    r"|NODE_.*|(?i:npm_config_.*)|PYTHON[A-Z0-9]+|PYTEST_(ADDOPTS|PLUGINS)|PERL(_.*|5[A-Z]+|LIB)"
    r"|RUBY(OPT|LIB)|LUA_.*|CLASSPATH|.*JAVA_.*OPTIONS|JDK_JAVA_OPTIONS"
    r"|MAKEFLAGS|GNUMAKEFLAGS|(CARGO|RUSTC)_.*|GOFLAGS|CC|CXX|OPENSSL_(CONF|MODULES|ENGINES)"
    # what the CLI starts by itself
    r"|GEMINI_CLI_IDE_SERVER_STDIO_.*|GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"
    # where programs look for their settings
    r"|HOME|XDG_.*|TMPDIR|TMP|TEMP",
    re.ASCII,
)
_HARMLESS = re.compile(r"GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|GREP_COLORS?|NODE_ENV", re.ASCII)
_SENDS = re.compile(
    "GOOGLE_(GEMINI|VERTEX)_BASE_URL|CODE_ASSIST_ENDPOINT"
    "|(GEMINI_TELEMETRY_OTLP|OTEL_EXPORTER_OTLP(_[A-Z]+)?)_ENDPOINT|(?i:(HTTPS?|ALL)_PROXY)"
)
_PLAIN_WORD = re.compile(r"[\w-]*", re.ASCII)


def env_files(
    project: Path, environ: Mapping[str, str], *, ignore_local: bool = False
) -> tuple[Path, ...]:
    """Return the one `.env` file, if any, that a CLI in a trusted folder reads.

    It is the first `.gemini/.env` or `.env` found in the folder `project`, then in its parents, and
    then in the home folder. The file may be unreadable. `ignore_local`: whether `--ignore-env` or
    `advanced.ignoreLocalEnv` is set; if so, a `.env` outside `.gemini` is read only if it is in the
    home folder.
    """
    home = gemini_home(environ).parent
    root = resolved(project)
    for folder in (root, *root.parents, home):
        if path_exists(path := folder / ".gemini" / ".env"):
            return (path,)
        if path_exists(path := folder / ".env") and (not ignore_local or folder == home):
            return (path,)
    return ()


def env_variables(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that the CLI takes from a `.env` file.

    Returns {} if there is no file or it can't be read. `environ`: the CLI's environment; its
    variables take precedence, so they are left out. None means empty. Raises OSError for a file
    that is too large or not a regular file, because what the CLI would do with it is unknown.
    """
    try:
        text = _ENDS.sub("\n", read_small(path, MOST).decode("utf-8", "replace"))
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        return {}
    ignored: frozenset[str] = frozenset() if ".gemini" in str(path) else _IGNORED
    assigned = {match[1]: _value(match[2] or "") for match in _LINE.finditer(text)}
    return {
        name: value
        for name, value in assigned.items()
        if name not in ignored and name not in (environ or {})
    }


def _value(text: str) -> str:
    text = text.strip(BLANKS)
    value = _QUOTED.sub(r"\2", text)
    return value.replace(r"\n", "\n").replace(r"\r", "\r") if text[:1] == '"' else value


def risky_variables(path: Path, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of variables that can start programs or replace CLI settings.

    `path`: a `.env` file. `environ` and the errors raised are the same as for `env_variables`.
    """
    variables = env_variables(path, environ)
    refused = set(hook_variables(variables))
    return tuple(name for name in variables if name in refused or is_risky(name))


def is_risky(name: str) -> bool:
    """Return whether a variable can change what a harmless program does.

    For example, it might make the program run another one or read different files.
    """
    return bool(_RISKY.fullmatch(name)) and not _HARMLESS.fullmatch(name)


def hook_variables(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of variables that change what hooks do, or which hooks exist.

    `ENV` is left out if its value is a plain word such as `production`: only a path makes a shell
    run a file.
    """
    return tuple(
        name
        for name, value in variables.items()
        if _MOVES.fullmatch(name)
        or (_IN_HOOKS.fullmatch(name) and not (name == "ENV" and _PLAIN_WORD.fullmatch(value)))
    )


def written_by(variables: Iterable[str]) -> tuple[str, ...]:
    """Return the names of variables that contain a path the CLI itself writes to."""
    return tuple(name for name in variables if _WRITTEN.fullmatch(name))


def in_searches(variables: Iterable[str]) -> tuple[str, ...]:
    """Return the names of variables that change what the CLI's searches do.

    They matter because searches need no approval.
    """
    return tuple(name for name in variables if _IN_SEARCHES.fullmatch(name))


def is_of_user(path: Path, environ: Mapping[str, str]) -> bool:
    """Return whether a `.env` file is the user's own, in the home folder."""
    home = gemini_home(environ)
    return path.parent in (home, home.parent)


def destinations(variables: Mapping[str, str]) -> dict[str, str]:
    """Find the variables that decide where conversations go; map them to their hosts."""
    return {name: host(value) for name, value in variables.items() if _SENDS.fullmatch(name)}


def host(url: str) -> str:
    """Return a URL's host and port, or `an unreadable address` if it can't be parsed.

    A user name or password in the URL is left out.
    """
    with suppress(ValueError):
        parts = urlsplit(url if "//" in url else f"//{url}")
        if parts.hostname:
            return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    return "an unreadable address"
