"""What is said about errors, by gemtui and by the system."""

from __future__ import annotations

import errno
import os

import pytest

from gemtui.errors import GemtuiError, message_of, reason_of

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/file")


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (FULL, "No space left on device", "/a/file: No space left on device"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error", "Input/output error"),
        (OSError("it is not in the trash"), "it is not in the trash", "it is not in the trash"),
        (OSError(), "OSError", "OSError"),
        (GemtuiError("nothing to undo"), "nothing to undo", "nothing to undo"),
    ],
)
def test_an_error_is_told_without_its_number(error: Exception, reason: str, message: str) -> None:
    assert (reason_of(error), message_of(error)) == (reason, message)
