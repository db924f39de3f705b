"""gemtui's settings: a TOML file, loaded once into a frozen `Config`.

`Config` alone defines and describes the settings. `load_config` and the table in assets/settings.md
are derived from its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from math import inf
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, get_args, get_type_hints

from msgspec import Struct

from gemtui.errors import ConfigError, reason_of
from gemtui.files import read_small, write_whole
from gemtui.paths import make_own_folder
from gemtui.sessions.catalog.columns import Sort


class Scope(StrEnum):
    """The sessions that the session list shows at startup."""

    PROJECT = "project"
    EVERYWHERE = "everywhere"


class Ring(StrEnum):
    """The ways to notify a user who is looking at another window."""

    OFF = "off"
    BELL = "bell"
    NOTIFY = "notify"


class Checkpoints(StrEnum):
    """When to take checkpoints of a project's files."""

    RUNS = "runs"
    ALWAYS = "always"
    OFF = "off"


Value = bool | int | float | str | tuple[str, ...]
"""The type of a setting's value.

A tuple is a program and its arguments, not a shell command.
"""


class Config(Struct, frozen=True, kw_only=True):
    """All settings: their types, descriptions and defaults."""

    theme: Annotated[str, "Colour theme; F2 in the app previews all themes."] = "gemtui-dark"
    ascii: Annotated[bool, "Draw with ASCII characters only, as --ascii does."] = False
    plain: Annotated[
        bool, "Make gemtui a conversation by lines, gemtui chat: for screen readers."
    ] = False
    links: Annotated[
        bool, "Make paths and addresses of gemtui's own links, in terminals known to show links."
    ] = True
    mouse: Annotated[bool, "React to mouse clicks, wheel, and selection."] = True
    scope: Annotated[
        Scope, "Sessions shown at the first start in a folder: its project's, or all."
    ] = Scope.PROJECT
    sort: Annotated[Sort, "Sort order of the list at the first start in a folder."] = Sort.UPDATED
    group: Annotated[bool, "Group the list by project at startup."] = False
    fold_thoughts: Annotated[bool, "Show thoughts as one line until you expand them."] = True
    see_files: Annotated[
        bool, "During a run, also list files that its commands changed, according to checkpoints."
    ] = True
    ring: Annotated[
        Ring,
        "How to notify you, while you are in another window, that a session is waiting for you or "
        "a run has ended: off; bell: ring the bell and change the window's title; notify: also "
        "show a desktop notification, if the terminal supports it.",
    ] = Ring.NOTIFY
    editor: Annotated[
        str, 'Command that opens a file, such as "code --wait"; if empty, $VISUAL, then $EDITOR.'
    ] = ""
    git_tool: Annotated[
        tuple[str, ...],
        (
            "Program and arguments that the review starts in the project's folder, such as "
            '["lazygit"] or ["git", "gui"].'
        ),
    ] = ("git", "add", "--patch")
    on_ask: Annotated[
        tuple[str, ...],
        "Program and arguments to start when a question has waited for on_ask_after seconds; it "
        "receives the question as JSON on stdin.",
    ] = ()
    on_ask_after: Annotated[int, "Seconds that a question waits before on_ask is started."] = 10
    answer_within: Annotated[
        int, "Seconds that a question of a run waits for an answer before the run is ended."
    ] = 86_400
    on_end: Annotated[
        tuple[str, ...],
        (
            "Program and arguments to start when a run has ended; it receives the run as JSON on "
            "stdin."
        ),
    ] = ()
    day_budget: Annotated[
        float,
        "The most that all sessions may cost per day, in US dollars: once it is reached, no run "
        "starts or continues. 0: no limit.",
    ] = 0.0
    ready_minutes: Annotated[
        int,
        "Minutes that Gemini CLI, started when you begin to type a prompt, waits for you to send "
        "it; meanwhile it needs about 350 MB of memory. 0: start it when you send the prompt.",
    ] = 10
    checkpoints: Annotated[
        Checkpoints,
        "When to take the checkpoints that gemtui undo needs: in every run that gemtui starts, "
        "also in sessions of Gemini CLI itself (with the extension), or never.",
    ] = Checkpoints.RUNS
    checkpoint_days: Annotated[
        int, "Days after which checkpoints are deleted, except those of active runs."
    ] = 30
    checkpoint_bytes: Annotated[
        int, "Bytes that all checkpoints may use; beyond that, the oldest are deleted."
    ] = 2_000_000_000


class Setting(Struct, frozen=True, kw_only=True):
    """A setting, as described to users.

    `values`: a description of the allowed values. `doc`: what the setting does.
    """

    name: str
    default: Value
    values: str
    doc: str

    @property
    def toml(self) -> str:
        """The TOML line that sets the default, such as `theme = "gemtui"`."""
        return f"{self.name} = {_toml(self.default)}"


def settings() -> tuple[Setting, ...]:
    """Return all settings, in the order in which `Config` defines them."""
    defaults = Config()
    return tuple(
        Setting(name=name, default=getattr(defaults, name), values=_values(wanted), doc=doc)
        for name, (wanted, doc) in _described().items()
    )


def load_config(path: Path) -> Config:
    """Load the settings file, or use the defaults if the file does not exist.

    Raises ConfigError, which names the file and the key, if the file can't be read, isn't valid
    TOML, or contains unknown keys or invalid values.
    """
    text = _text(path)
    if not text:
        return Config()
    import tomllib  # imported lazily, because often there is no settings file

    try:
        return _config(tomllib.loads(text), path)
    except tomllib.TOMLDecodeError as error:
        raise _broken(path, error) from None
    except (RecursionError, ValueError) as error:
        raise _unreadable(path, _nested(error)) from None


def _text(path: Path) -> str:
    """Return the file's contents, or "" if the file is missing. Raises ConfigError."""
    try:
        return read_small(path).decode()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise _unreadable(path, reason_of(error)) from None
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"not UTF-8 (byte {error.start})") from None


def _nested(error: Exception) -> str:
    """Describe the error that `tomllib` raises for deep nesting or huge integers."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _unreadable(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path} can't be read: {why}; repair or remove it", path=path)


def keep_setting(path: Path, name: str, value: bool | str) -> None:
    """Save one setting in the settings file, creating the file if needed.

    The rest of the file stays as it is. Raises ConfigError if the file can't be read or isn't valid
    TOML, and OSError if writing fails.
    """
    import tomlkit  # imported lazily, because most starts save no setting
    from tomlkit.exceptions import ParseError

    try:
        document = tomlkit.parse(_text(path))
    except ParseError as error:
        raise _broken(path, error) from None
    except (RecursionError, ValueError) as error:
        raise _unreadable(path, _nested(error)) from None
    document[name] = value
    make_own_folder(path.parent)
    write_whole(path, [tomlkit.dumps(document).encode()], durable=True)


def _broken(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"{path} is not valid TOML: {error}; correct that line", path=path)


def _described() -> dict[str, tuple[type | GenericAlias, str]]:
    hints = get_type_hints(Config, include_extras=True)
    return {name: get_args(hints[name]) for name in Config.__struct_fields__}


def _config(raw: Mapping[str, Any], path: Path) -> Config:
    wanted_by_name = {name: wanted for name, (wanted, _doc) in _described().items()}
    for key in raw:
        if key not in wanted_by_name:
            raise ConfigError(f"{path}: {_unknown(key, tuple(wanted_by_name))}", path=path, key=key)
    return Config(
        **{key: _value(value, wanted_by_name[key], path, key) for key, value in raw.items()}
    )


def _unknown(key: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=1)
    hint = (
        f'did you mean "{near[0]}"?' if near else f"the available settings are {', '.join(known)}"
    )
    return f'there is no setting "{key}": {hint}'


def _value(value: Any, wanted: type | GenericAlias, path: Path, key: str) -> Any:
    if wanted == tuple[str, ...]:
        if isinstance(value, list) and all(map(_is_word, value)) and value[:1] != [""]:
            return tuple(value)
    elif isinstance(wanted, type) and issubclass(wanted, StrEnum):
        if value in tuple(wanted):
            return wanted(value)
    elif wanted is float:
        if type(value) in (int, float) and 0 <= value < inf:
            return float(value)
    elif type(value) is wanted and not (type(value) is int and value <= 0):
        return value
    written = _toml(value) if isinstance(value, bool | str) else repr(value)
    raise ConfigError(
        f"{path}: {key} = {written} is not valid; it must be {_values(wanted)}", path=path, key=key
    )


def _is_word(value: object) -> bool:
    """Return whether a value can be passed to a program as an argument."""
    return isinstance(value, str) and "\0" not in value


def _values(wanted: type | GenericAlias) -> str:
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return " or ".join(f'"{choice}"' for choice in wanted)
    if wanted is bool:
        return "true or false"
    if wanted is int:
        return "a whole number above 0"
    if wanted is float:
        return "a number, 0 or more"
    if wanted is str:
        return 'text in quotes ("…")'
    return 'a list of strings (["program", "argument", …])'


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
