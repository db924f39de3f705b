"""A small check of JSON against the shapes that are promised."""

from __future__ import annotations

import re
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def fits(value: Any, shape: Any, at: str = "$") -> None:
    """Fail with the place where `value` is not of `shape`.

    A shape is a type, a pattern for strings, a set of allowed strings, a tuple of alternatives
    (None among them), a list with the shape of its items, or a dict with exactly these keys.
    """
    match shape:
        case tuple():
            assert any(_does_fit(value, each) for each in shape), f"{at}: {value!r}"
        case dict():
            assert isinstance(value, dict), f"{at}: {value!r}"
            assert set(value) == set(shape), f"{at}: {set(value) ^ set(shape)}"
            for key, inner in shape.items():
                fits(value[key], inner, f"{at}.{key}")
        case list():
            assert isinstance(value, list), f"{at}: {value!r}"
            for index, item in enumerate(value):
                fits(item, shape[0], f"{at}[{index}]")
        case frozenset():
            assert value in shape, f"{at}: {value!r}"
        case re.Pattern():
            assert isinstance(value, str), f"{at}: {value!r}"
            assert shape.fullmatch(value), f"{at}: {value!r}"
        case None:
            assert value is None, f"{at}: {value!r}"
        case type():
            assert type(value) is shape, f"{at}: {value!r}"
        case _:
            assert value == shape, f"{at}: {value!r}"


def _does_fit(value: Any, shape: Any) -> bool:
    try:
        fits(value, shape)
    except AssertionError:
        return False
    return True


COUNT = (int, None)
SESSION = {
    "id": str,
    "title": str,
    "title_source": frozenset({"name", "summary", "prompt", "failed_prompt", "none"}),
    "project": (str, None),
    "project_key": str,
    "project_hash": (str, None),
    "kind": frozenset({"main", "subagent", "checkpoint"}),
    "parent": (str, None),
    "format": frozenset({"jsonl", "json"}),
    "files": [str],
    "size": int,
    "started": (TIME, None),
    "updated": (TIME, None),
    "models": [str],
    "prompts": int,
    "messages": int,
    "tool_calls": int,
    "tool_failures": int,
    "failed_calls": int,
    "tokens": dict.fromkeys(("input", "output", "cached", "thoughts", "tool", "total"), COUNT),
    "files_written_count": int,
    "flags": [
        frozenset(
            {"live", "ghost", "empty", "failed_prompt", "nothing_to_resume", "buried", "torn", "duplicate", "kept"}
        )
    ],
}
MARK = {
    "session": str,
    "name": (str, None),
    "tags": [str],
    "note": (str, None),
    "pinned": bool,
    "archived": bool,
    "changed": (TIME, None),
}
QUESTION = {"message": str, "kind": str, "about": str, "diff": (str, None)}
LIVE = {
    "session": (str, None),
    "state": frozenset({"waiting", "working", "active", "idle", "killed", "ended"}),
    "since": TIME,
    "project": (str, None),
    "pid": (int, None),
    "tool": (str, None),
    "question": (QUESTION, None),
    "by": frozenset({"hook", "file", "run"}),
}
LIVE_SESSIONS = {"version": 1, "home": str, "sessions": [SESSION], "live": [LIVE]}
SESSIONS = {"version": 1, "home": str, "sessions": [SESSION], "marks": [MARK], "next_cursor": (str, None)}
PROBLEM = {"file": str, "line": COUNT, "what": str}
SHOWN = {
    "version": 1,
    "session": SESSION | {"files_written": [str]},
    "messages": [dict],
    "dropped": [{"why": frozenset({"rewound", "buried", "failed_prompt"}), "record": dict}],
    "problems": [PROBLEM],
}
CAPABILITIES = {
    **dict.fromkeys(("stream", "resume", "session_id", "policies", "skip_trust"), bool),
    **dict.fromkeys(("web_search", "thinking"), bool),
    "approval_modes": [str],
    "models": [str],
}
EXTENSION = {
    "state": frozenset({"ready", "missing", "foreign", "gone", "older", "disabled", "hooks_off"}),
    "installed": bool,
    "folder": str,
    "link": str,
    "source": (str, None),
    "mcp": bool,
    "problem": (str, None),
}
DOCTOR = {
    "version": 1,
    "gemtui": {"version": str, "python": str, "platform": str},
    "store": {
        "home": str,
        "home_from": str,
        "state": frozenset({"ok", "missing", "no_folder", "empty", "unreadable"}),
        "projects": int,
        "files": int,
        "sessions": int,
        "hidden": dict,
        "unreadable": [PROBLEM],
        "bytes": int,
    },
    "cli": {
        "path": (str, None),
        "found_by": (str, None),
        "version": (str, None),
        "problem": (str, None),
        "install": "https://github.com/google-gemini/gemini-cli",
        "capabilities": (CAPABILITIES, None),
    },
    "extension": EXTENSION,
    "policies": {
        "engine": str,
        "engine_is_installed": (bool, None),
        "places": [{"path": str, "ours": bool, "files": int, "errors": int, "warnings": int, "check": str}],
    },
    "runs": {
        "path": str,
        "runs": int,
        "bytes": int,
        "private": bool,
        "most_runs": int,
        "most_bytes": int,
        "broken": [str],
        "orphaned": [str],
        "asking": [str],
        "only_copies": [{"run": str, "session": str, "bytes": int}],
        "clear": str,
    },
    "terminal": {
        "tty": bool,
        "term": (str, None),
        "colorterm": (str, None),
        "columns": COUNT,
        "rows": COUNT,
        "no_color": bool,
        "locale": (str, None),
        "utf8": bool,
        "tmux": bool,
        "set_clipboard": (str, None),
        "notifications": (int, None),
        "allow_passthrough": (str, None),
    },
    "files": {
        "config": {"path": str, "found": bool, "problem": (str, None)},
        "cache": {"path": str, "files": int, "bytes": int, "private": bool, "problem": (str, None), "clear": str},
        "prompts": {"path": str, "bytes": (int, None), "clear": str},
        "search": {
            "path": str,
            "files": (int, None),
            "bytes": int,
            "private": bool,
            "problem": (str, None),
            "clear": str,
        },
        "marks": {"path": str, "sessions": (int, None), "problem": (str, None)},
        "checkpoints": {"folder": str, "projects": int, "bytes": int},
        "vault": {
            "folder": str,
            "on": bool,
            "files": int,
            "kept": int,
            "bytes": {"shared": int, "copied": int, "only_here": int},
        },
    },
    "problems": [str],
}
