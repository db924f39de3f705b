"""The state of a file or folder at one moment, as a checkpoint stores it."""

from __future__ import annotations

from typing import NamedTuple

FILE, LINK, FOLDER, ABSENT, UNKEPT = "file", "link", "folder", "absent", "unkept"
TOO_LARGE, UNREADABLE, SPECIAL = "too large", "unreadable", "neither a file nor a link"


class FileState(NamedTuple):
    """The kind, mode and contents of a file or folder.

    `kind`: FILE, LINK, FOLDER, ABSENT, or UNKEPT for a file whose contents no checkpoint contains.
    `mode`: the permission bits of a FILE or FOLDER; negative if unknown. `content`: the digest of a
    file's bytes or of a link's target; for UNKEPT, the reason, followed by numbers that identify
    this version.
    """

    kind: str
    mode: int = 0
    content: str = ""

    def encode(self) -> str:
        """Serialise the state to one line of text, which `decode` parses."""
        return f"{self.kind} {self.mode:o} {self.content}"

    @property
    def kept(self) -> bool:
        """Whether the state can be restored."""
        return self.kind != UNKEPT

    @property
    def why(self) -> str:
        """Why an UNKEPT file is not stored, such as "too large"."""
        return self.content.partition(":")[0]


GONE = FileState(ABSENT)
UNKNOWN = FileState(UNKEPT, 0, "not checked before it was written")


def decode(text: str) -> FileState:
    """Parse the state that `FileState.encode` serialised. Raises ValueError."""
    kind, mode, content = text.split(" ", 2)
    return FileState(kind, int(mode, 8), content)


def unkept(why: str, *version: int) -> FileState:
    """Return the state of a file whose contents are not stored.

    `why`: the reason. `version`: numbers that identify this version of the file, such as its size
    and times.
    """
    return FileState(UNKEPT, 0, ":".join((why, *map(str, version))))
