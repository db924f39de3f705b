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
    told = orjson.dumps([tool, arguments], option=orjson.OPT_SORT_KEYS)
    return f"{HOOKED}{sha256(told).hexdigest()[:24]}"


def take_hooked_checkpoints(
    project: Project, spool: Path, files: Iterable[Path] | None = None
) -> None:
    """Process the project's events in the folder `spool`, and take their checkpoints.

    A preview leaves the events where they are. The caller holds the project's lock. `files`:
    process only these events; None means all. Events of other projects are ignored. Raises OSError,
    CheckpointsUnreadable.
    """
    mine = _events(project.root, _files(spool) if files is None else files)
    for session in dict.fromkeys(each.session for each in mine):
        _take(project, session, [each for each in mine if each.session == session])


def is_pending(root: Path, spool: Path) -> bool:
    """Return whether events of a project are waiting to be processed.

    `root`: the project's folder. `spool`: the folder that contains the events.
    """
    return bool(_events(root, _files(spool)))


def _files(spool: Path) -> Iterable[Path]:
    return spool.glob("*.*.*")


def _events(root: Path, files: Iterable[Path]) -> list[_Event]:
    events = (each for each in map(_read, sorted(files)) if each is not None)
    return [each for each in events if project_of(Path(each.cwd))[1] == root]


def _take(project: Project, session: str, events: Sequence[_Event]) -> None:
    """Take a checkpoint that covers all events of a session, and remove their files.

    No checkpoint is taken while a call that may write any file is running.
    """
    ordered = sorted(events, key=lambda each: each.when)
    turn_ends = [each for each in ordered if each.kind not in (_BEFORE, _AFTER)]
    over = turn_ends[-1].when if turn_ends else 0.0
    calls, open_ones = _calls(project.root, session, ordered)
    if any(each.when > over and _path(project.root, each) is None for each in open_ones):
        return
    prompts = any(each.kind == "BeforeAgent" for each in turn_ends)
    also: dict[bytes, Before] = {call.path: UNKNOWN for call in calls if call.path is not None}
    if calls or prompts:
        project.taker.take(
            Reason.PROMPT if prompts else Reason.CALL,
            session=session,
            calls=calls,
            also=also,
            always=prompts,
            renews_index=not project.is_preview,
        )
    for each in ordered if not project.is_preview else ():
        if each.when <= over or each not in open_ones:
            each.file.unlink(missing_ok=True)


def _calls(
    root: Path, session: str, events: Sequence[_Event]
) -> tuple[list[WritingCall], list[_Event]]:
    """Return the calls that have ended, and the start events of those that have not."""
    began, calls = list[_Event](), list[WritingCall]()
    for each in events:
        if each.kind == _BEFORE and _counts(root, each):
            began.append(each)
        elif each.kind == _AFTER:
            named = [one for one in began if one.tool == each.tool]
            same = (one for one in named if one.arguments == each.arguments)
            start = next(same, next(iter(named), None))  # a hook may have changed the arguments
            if start is not None:
                began.remove(start)
                command = string(start.arguments.get("command")) or None
                call = WritingCall(
                    run="",
                    session=session,
                    use=start.use,
                    tool=start.tool,
                    command=command,
                    path=_path(root, start),
                    began=start.when,
                    ended=each.when,
                )
                calls.append(call)
    return calls, began


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
    kind = file.name.rpartition(".")[2]
    try:
        told = mapping(orjson.loads(read_small(file, _LARGEST)))
    except (OSError, ValueError):
        return None
    time, cwd = instant(told.get("timestamp")), string(told.get("cwd"))
    if time is None or not cwd:
        return None
    return _Event(
        file=file,
        kind=kind,
        when=time.timestamp(),
        session=string(told.get("session_id")),
        cwd=cwd,
        tool=string(told.get("tool_name")),
        arguments=mapping(told.get("tool_input")),
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
    with suppress(OSError):
        os.setsid()
    place = Path(file)
    try:
        wanted = load_config(Path(config)).checkpoints is Checkpoints.ALWAYS
    except GemtuiError:
        wanted = False
    if not wanted:
        place.unlink(missing_ok=True)
        return
    done, still = os.pipe()
    if os.fork():
        os.close(still)
        if place.name.endswith("BeforeAgent"):
            select.select([done], [], [], LONGEST)
        os._exit(0)
    with suppress(OSError, GemtuiError):
        _work(Path(data), place)


if __name__ == "__main__":
    main(*sys.argv[1:])
