"""`gemtui runs`: past and present runs as a table or as JSON."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from gemtui.commands.answer import lines_to_stdout, note, to_stdout
from gemtui.jsonout import encode, encode_array
from gemtui.runs.listing import Run, RunState, clear, list_runs, prune, runs_dir
from gemtui.text import Clean, cells, clean_line, ellipsis, relative, size

_HEAD = ("ID", "AGE", "STATE", "TIME", "SIZE", "FOLDER", "PROMPT")
_SHORT = 8
_FOLDER_WIDTH = 24


def run(*, as_json: bool, clear: bool) -> None:
    """List the runs, once those beyond the bound have been removed; or remove all that ended."""
    place = runs_dir()
    if clear:
        _clear(place)
        return
    prune(place)
    runs = list_runs(place)
    if as_json:
        head = b'{"version":1,"place":' + encode(str(place)) + b',"runs":'
        to_stdout(encode_array((each.to_dict() for each in runs), head=head, tail=b"}\n"))
        return
    lines_to_stdout(_table(runs, datetime.now(UTC)))
    if not runs:
        note(f"no runs in {place}: gemtui run starts one")


def _clear(place: Path) -> None:
    removed = clear(place)
    left = len(list_runs(place))
    going = f"; {left} go on, or could not be removed" if left else ""
    note(f"removed {removed} {'run' if removed == 1 else 'runs'} from {place}{going}")


def _table(runs: Sequence[Run], now: datetime) -> Iterator[Clean]:
    """A head and one line per run; prompts are cut to the terminal's width, if there is one."""
    if not runs:
        return
    rows = [_HEAD, *(_row(each, now) for each in runs)]
    cleaned = [[clean_line(cell) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*cleaned, strict=True)]
    room = None
    if sys.stdout.isatty():
        room = max(0, shutil.get_terminal_size().columns - sum(width + 2 for width in widths[:-1]))
    for *front, prompt in cleaned:
        padded = (cell + " " * (widths[at] - cells(cell)) for at, cell in enumerate(front))
        yield Clean("  ".join((*padded, prompt if room is None else ellipsis(prompt, room))))


def _row(run: Run, now: datetime) -> tuple[str, ...]:
    return (
        run.id[:_SHORT],
        relative(run.started, now),
        _state(run),
        _time(run, now),
        size(run.size),
        ellipsis(clean_line(Path(run.cwd).name or run.cwd), _FOLDER_WIDTH),
        run.prompt,
    )


def _state(run: Run) -> str:
    if run.status is None:
        return run.state.value
    if run.exit is not None and run.exit.limit in ("timeout", "idle"):
        return "timeout"
    whole = run.complete or run.status != "success"
    return run.status.value.replace("_", " ") if whole else "incomplete"


def _time(run: Run, now: datetime) -> str:
    """How long it took, or has taken so far."""
    end = now if run.state is RunState.RUNNING else run.ended
    return "" if end is None else f"{max(0, round((end - run.started).total_seconds()))} s"
