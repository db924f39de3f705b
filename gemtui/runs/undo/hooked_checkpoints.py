"""Take checkpoints in sessions started outside gemtui, on events from its hooks.

`hook.sh` writes each event to its own file in `hooked_dir()`, named `PID.NUMBER.EVENT`, where PID
is the process id of the CLI. `python -m gemtui.runs.undo.hooked_checkpoints DATA CONFIG FILE` then
processes the events of this CLI process in chronological order, and removes their files. If such a
Python process is killed, the next one, or an undo, completes its work.

While a call that may write any file appears to be running, no checkpoint is taken after other
calls. The user may have denied that call, but no event says so before the end of the turn.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from gemtui.checkpoints.store import UNKNOWN, Reason, WritingCall, folder_of, only_one
from gemtui.checkpoints.take import Before, open_taker
from gemtui.checkpoints.undo import Project
from gemtui.config import Checkpoints, load_config
from gemtui.errors import GemtuiError
from gemtui.files import read_small
from gemtui.paths import data_dir
from gemtui.runs.undo.checkpointing import project_of, prune_if_due, written_name
from gemtui.transcript.parts import instant, mapping, string
from gemtui.transcript.tools import WRITING, kind_of, may_write

HOOKED = "hook "
"""The prefix of the ids that checkpoints use for calls reported by hooks."""
LONGEST = 5.0
"""How many seconds Gemini CLI waits for a checkpoint before it sends a prompt."""
_LARGEST = 64_000_000
"""The largest event, in bytes, that is read."""
_BEFORE, _AFTER = "BeforeTool", "AfterTool"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """An event that a hook reported.

    `file`: the file with the event. `kind`: its type, such as `BeforeTool`. `when`: seconds since
    1970.
    """

    file: Path
    kind: str
    when: float
    session: str
    cwd: str
    tool: str
    arguments: Mapping[str, Any]

    @property
    def use(self) -> str:
        """The id under which the checkpoint store records the call.

        Hooks don't report Gemini CLI's own id, so it is derived from the call and its time.
        """
        return f"{hooked_use(self.tool, self.arguments)} {self.when}"


def hooked_use(tool: str, arguments: Any) -> str:
    """Return the prefix of the ids that the store gives to calls like this one.

    Such an id is used for a call that a hook reported, because hooks don't report Gemini CLI's own
    id. The call's time is appended to the prefix.
    """
    data = orjson.dumps([tool, arguments], option=orjson.OPT_SORT_KEYS)
    return f"{HOOKED}{sha256(data).hexdigest()[:24]}"


def take_hooked_checkpoints(
    project: Project, spool: Path, files: Iterable[Path] | None = None
) -> None:
    """Process the project's events in the folder `spool`, and take their checkpoints.

    A preview leaves the events where they are. The caller holds the project's lock. `files`:
    process only these events; None means all. Events of other projects are ignored. Raises OSError,
    CheckpointsUnreadable.
    """
    by_session: dict[str, list[_Event]] = {}
    for event in _events(project.root, _files(spool) if files is None else files):
        by_session.setdefault(event.session, []).append(event)
    for session, events in by_session.items():
        _take(project, session, sorted(events, key=lambda event: event.when))


def is_pending(root: Path, spool: Path) -> bool:
    """Return whether events of a project are waiting to be processed.

    `root`: the project's folder. `spool`: the folder that contains the events.
    """
    return bool(_events(root, _files(spool)))


def _files(spool: Path) -> Iterable[Path]:
    return spool.glob("*.*.*")


def _events(root: Path, files: Iterable[Path]) -> list[_Event]:
    events = [event for event in map(_read, sorted(files)) if event is not None]
    return [event for event in events if project_of(Path(event.cwd))[1] == root]


def _take(project: Project, session: str, events: Sequence[_Event]) -> None:
    """Take a checkpoint that covers all events of a session, in order, and remove their files.

    No checkpoint is taken while a call that may write any file is running.
    """
    turn_end, has_prompt = 0.0, False
    for event in events:
        if event.kind not in (_BEFORE, _AFTER):
            turn_end = event.when
            has_prompt = has_prompt or event.kind == "BeforeAgent"
    calls, running = _calls(project.root, session, events)
    if any(event.when > turn_end and _path(project.root, event) is None for event in running):
        return
    also: dict[bytes, Before] = {call.path: UNKNOWN for call in calls if call.path is not None}
    if calls or has_prompt:
        project.taker.take(
            Reason.PROMPT if has_prompt else Reason.CALL,
            session=session,
            calls=lambda: calls,
            also=also,
            always=has_prompt,
            renews_index=not project.is_preview,
        )
    if not project.is_preview:
        for event in events:
            if event.when <= turn_end or event not in running:
                event.file.unlink(missing_ok=True)


def _calls(
    root: Path, session: str, events: Sequence[_Event]
) -> tuple[list[WritingCall], list[_Event]]:
    """Return the calls that have ended, and the start events of those that have not."""
    running, calls = list[_Event](), list[WritingCall]()
    for event in events:
        if event.kind == _BEFORE and _counts(root, event):
            running.append(event)
        elif event.kind == _AFTER:
            starts = [start for start in running if start.tool == event.tool]
            # another hook may have changed the arguments
            starts.sort(key=lambda start: start.arguments != event.arguments)
            for start in starts[:1]:
                running.remove(start)
                call = WritingCall(
                    run="",
                    session=session,
                    use=start.use,
                    tool=start.tool,
                    command=string(start.arguments.get("command")) or None,
                    path=_path(root, start),
                    began=start.when,
                    ended=event.when,
                )
                calls.append(call)
    return calls, running


def _counts(root: Path, event: _Event) -> bool:
    if kind_of(event.tool) in WRITING:
        return _path(root, event) is not None
    return may_write(event.tool)


def _path(root: Path, event: _Event) -> bytes | None:
    """Return the file that a file tool's call writes, relative to the project.

    Returns None for a call that may write any file, or one outside the project.
    """
    if kind_of(event.tool) not in WRITING:
        return None
    return written_name(root, event.arguments)


def _read(file: Path) -> _Event | None:
    """Read an event; return None if the file is unreadable or has been removed."""
    try:
        values = mapping(orjson.loads(read_small(file, _LARGEST)))
    except (OSError, ValueError):
        return None
    time, cwd = instant(values.get("timestamp")), string(values.get("cwd"))
    if time is None or not cwd:
        return None
    return _Event(
        file=file,
        kind=file.name.rpartition(".")[2],
        when=time.timestamp(),
        session=string(values.get("session_id")),
        cwd=cwd,
        tool=string(values.get("tool_name")),
        arguments=mapping(values.get("tool_input")),
    )


def _work(data: Path, file: Path) -> None:
    """Take the checkpoints for all events of the CLI process that wrote `file`.

    `data`: gemtui's data folder.
    """
    event = _read(file)
    if event is None:
        with suppress(OSError):
            file.unlink()
        return
    _, root, own = project_of(Path(event.cwd))
    place = folder_of(data / "checkpoints", root)
    if file.name.endswith("AfterAgent") and not place.is_dir():
        return
    pid = file.name.partition(".")[0]
    with only_one(place), open_taker(place, root, own) as (store, taker):
        project = Project(root, store, taker)
        project.finish_interrupted()
        take_hooked_checkpoints(project, file.parent, file.parent.glob(f"{pid}.*.*"))
    if event.kind == "BeforeAgent" and data == data_dir():
        prune_if_due()


def main(data: str, config: str, file: str) -> None:
    """Process an event; the hook waits for this only before a prompt.

    A child process does the work; the hook waits for it for at most `LONGEST` seconds. `data`:
    gemtui's data folder. `config`: its settings file; if this does not ask for checkpoints in all
    sessions, the event is only removed. `file`: the event.
    """
    if sys.platform == "win32":
        return
    with suppress(OSError):
        os.setsid()
    path = Path(file)
    try:
        is_wanted = load_config(Path(config)).checkpoints is Checkpoints.ALWAYS
    except GemtuiError:
        is_wanted = False
    if not is_wanted:
        path.unlink(missing_ok=True)
        return
    reading, writing = os.pipe()  # the child holds `writing` open until it ends
    if os.fork():
        os.close(writing)
        if path.name.endswith("BeforeAgent"):
            select.select([reading], [], [], LONGEST)
        os._exit(0)
    with suppress(OSError, GemtuiError):
        _work(Path(data), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
