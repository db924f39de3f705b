"""Compare files written by approved calls with their previews, and restore them.

A question shows a preview of the file as it would be after the call. If, once the call has been
made, the file differs from this preview, both versions are recorded in the gate folder, and the run
is ended.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.agent.approval import Difference
from gemtui.agent.gate_folder import GateFolder
from gemtui.calls.effect import LARGEST, Effect, digest
from gemtui.errors import GemtuiError
from gemtui.files import read_small, resolved, write_whole

CallKey = tuple[str, str]
"""A call's tool and arguments, which identify the call when its result arrives."""


class PutBackError(GemtuiError):
    """Raised if a file's former contents can't be restored; the message says why."""


@dataclass(frozen=True, slots=True)
class _Write:
    """An approved call that has no result yet.

    `id`: the call's id in the run's output; None for a subagent's call.
    """

    number: int
    key: CallKey
    id: str | None
    effect: Effect


class ApprovedWrites:
    """One run's approved calls that write files. Thread-safe."""

    def __init__(self, gate: GateFolder, clock: Callable[[], float] = time.time) -> None:
        self._gate, self._clock = gate, clock
        self._open: list[_Write] = []
        self._lock = threading.Lock()

    def is_open(self, path: str) -> bool:
        """Return whether an approved call that writes this file has no result yet.

        `path`: the file's real path.
        """
        with self._lock:
            return any(each.effect.path == path for each in self._open)

    def begin(self, number: int, key: CallKey, id: str | None, effect: Effect) -> bool:
        """Save a file's contents before an approved call writes it.

        `number`: the number of the question about the call. Returns False if the call must not run
        now, because another call that writes the same file has no result yet. Raises OSError.
        """
        assert effect.path is not None
        with self._lock:
            if any(each.effect.path == effect.path for each in self._open):
                return False
            if effect.was:
                self._gate.keep_former(number, read_small(Path(effect.path), LARGEST))
            self._open.append(_Write(number, key, id, effect))
        return True

    def is_as_approved(self, key: CallKey, response: object, *, alone: bool) -> bool:
        """Return whether a file is as expected after an approved call.

        The file should match the preview or, if the tool reports an error, be unchanged. If it
        isn't as expected, the difference is recorded. `response`: the tool's response, as reported
        by the hook. `alone`: whether no shell command is running. If one is, it may have changed
        the file right after the tool wrote it; so in that case it is enough if the tool reports
        having written the approved text.
        """
        write = self._pop(lambda each: each.key == key)
        if write is None:
            return True
        output = response if isinstance(response, Mapping) else {}
        wanted = {write.effect.was} if output.get("error") else {write.effect.becomes}
        return self._compare(write, wanted) or (not alone and _wrote(output, write.effect))

    def ended(self, id: str) -> bool:
        """Compare the file with its preview after a call whose end no hook reported.

        `id`: the call's id. Returns False if the file has neither its former nor its approved
        contents.
        """
        write = self._pop(lambda each: each.id == id)
        return write is None or self._compare(write, {write.effect.was, write.effect.becomes})

    def close(self) -> bool:
        """After the run's end, check the files of approved calls that have no result.

        Returns False if any of these files has neither its former nor its approved contents.
        """
        right = True
        while (write := self._pop(lambda _each: True)) is not None:
            right &= self._compare(write, {write.effect.was, write.effect.becomes})
        return right

    def _pop(self, wanted: Callable[[_Write], bool]) -> _Write | None:
        with self._lock:
            found = next(filter(wanted, self._open), None)
            if found is not None:
                self._open.remove(found)
        return found

    def _compare(self, write: _Write, wanted: set[str]) -> bool:
        """Return whether a written file is as expected; if not, record the difference.

        `wanted`: the digests that the file may have.
        """
        effect, data = write.effect, None
        assert effect.path is not None
        try:
            data = read_small(Path(effect.path), LARGEST)
            is_now = digest(data)
        except FileNotFoundError:
            is_now = ""
        except (OSError, ValueError):
            is_now = "unreadable"
        if is_now in wanted and resolved(Path(effect.path)) == Path(effect.path):
            return True
        found = None if data is None else data.decode("utf-8", "replace")
        difference = Difference(
            number=write.number,
            path=effect.path,
            approved=effect.after,
            found=found,
            former=effect.before,
            was=effect.was,
            is_now=is_now,
            at=round(self._clock() * 1000),
        )
        with suppress(OSError):  # the run ends with an error anyway
            self._gate.differs(difference)
        return False


def _wrote(response: Mapping[str, Any], effect: Effect) -> bool:
    """Return whether the tool itself reports that it wrote the approved text.

    `response`: the tool's response, as reported by the hook.
    """
    shown = response.get("returnDisplay")
    if response.get("error") or not isinstance(shown, Mapping):
        return False
    return shown.get("filePath") == effect.path and shown.get("newContent") == effect.after


def restore_former(gate: GateFolder, number: int) -> Path:
    """Restore the former contents of a file that differs from what was approved.

    `number`: the question's number. Returns the file's path. A file that did not exist before the
    call is removed. Raises OSError, and PutBackError if no difference was recorded for the question
    or the file has changed since.
    """
    found = next((each for each in gate.differences() if each.number == number), None)
    if found is None:
        raise PutBackError(f"question {number} has no file that differs from its approved version")
    path = Path(found.path)
    if resolved(path) != path:
        raise PutBackError(f"{path} now leads to a different file")
    if _digest_now(path) != found.is_now:
        raise PutBackError(f"{path} has changed since; restore it by hand")
    if not found.was:
        path.unlink(missing_ok=True)
        return path
    data = gate.former_bytes(number)
    if digest(data) != found.was:
        raise PutBackError("the copy of the earlier contents is corrupt")
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, [data], durable=True)
    return path


def _digest_now(path: Path) -> str:
    try:
        return digest(read_small(path, LARGEST))
    except FileNotFoundError:
        return ""
