"""Every error gemtui raises on purpose, and what a caller can do about each.

GemtuiError
├── SessionNotFound     no stored session has this id; `.searched` says where we looked
├── SessionAmbiguous    an id prefix fits several sessions; `.candidates` lists them
├── NotASession         the file is there and is no Gemini session
├── SessionTooLarge     a session over the stated limit of what reading it may cost
├── StoreUnreadable     the store exists and we may not read it
├── DeletionFailed      some files of a session could not be moved to the trash or removed
├── ConfigError         our own configuration file: `.path` and `.key` name the place
├── PolicyError         a policy file can't be read, edited or saved so; `.path` names it
│   ├── PolicyNotFound  there is no policy of this name
│   └── PolicyChanged   the file on disk is no longer the one that was opened
├── OptionError         an option of a run does not fit; the message names it (a ValueError, too)
├── RunNotFound         no run of ours has this id
├── RunAmbiguous        an id prefix fits several runs; `.candidates` lists them
├── CliNotFound         there is no Gemini CLI that can run: none at all, a broken or too old one
└── ProviderError       a provider's run failed; `.response` and `.files` hold what there was
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class GemtuiError(Exception):
    """Root of all errors gemtui raises: `str(error)` is one plain line that names the way out."""


class SessionNotFound(GemtuiError):
    """No stored session fits; `searched` holds the places that were looked at."""

    def __init__(self, message: str, *, searched: tuple[Path, ...] = ()) -> None:
        super().__init__(message)
        self.searched = searched


class SessionAmbiguous(GemtuiError):
    """Several sessions fit; `candidates` holds their full ids, newest first.

    Of those that share their full id it holds the files: any candidate names one session.
    """

    def __init__(self, message: str, *, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class RunNotFound(GemtuiError):
    """No run of ours, and no session that one of them stored, has this id."""


class RunAmbiguous(GemtuiError):
    """Several runs fit; `candidates` holds their ids, newest first."""

    def __init__(self, message: str, *, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class NotASession(GemtuiError):
    """The file can be read, and is not a Gemini session; `path` names it."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class SessionTooLarge(GemtuiError):
    """A session would cost more memory than gemtui spends on one.

    `path` names it, `size` and `limit` count bytes of a legacy object, or what the message says.
    """

    def __init__(
        self,
        path: Path,
        *,
        size: int,
        limit: int,
        of: str = "bytes",
        way_out: str = "resume it once in Gemini CLI to turn it into a .jsonl log",
    ) -> None:
        super().__init__(
            f"{path} is too large: {size:,} {of}, and gemtui reads up to {limit:,}: {way_out}"
        )
        self.path, self.size, self.limit = path, size, limit


class StoreUnreadable(GemtuiError):
    """The store is there and the operating system does not let us read it; `path` names it."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class DeletionFailed(GemtuiError):
    """Some files could not be removed; `left` names them with the reason each."""

    def __init__(self, message: str, *, left: tuple[tuple[Path, str], ...]) -> None:
        super().__init__(message)
        self.left = left


class ConfigError(GemtuiError):
    """Our configuration is wrong at one place; `path` and `key` name it."""

    def __init__(self, message: str, *, path: Path, key: str | None = None) -> None:
        super().__init__(message)
        self.path, self.key = path, key


class PolicyError(GemtuiError):
    """A policy file can't be read, edited or saved in this way; `path` names it."""

    def __init__(self, message: str, *, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class PolicyNotFound(PolicyError):
    """There is no policy of this name, neither a file nor one of ours."""


class PolicyChanged(PolicyError):
    """The file on disk has changed since it was opened: saving would undo that change."""


class OptionError(GemtuiError, ValueError):
    """An option of a run does not fit; `str(error)` names the option and what it may be."""


class CliNotFound(GemtuiError):
    """There is no Gemini CLI that can run; the message says why, and how to get one."""


class ProviderError(GemtuiError):
    """A provider's run failed, or its CLI can't be used; the message says what to do about it.

    `response`: what had been answered by then. `files`: written by then, in order, as
    `ProviderResult.files`.
    """

    def __init__(
        self, message: str, *, response: str = "", files: Mapping[str, None] | None = None
    ) -> None:
        super().__init__(message)
        self.response = response
        self.files = dict(files or {})
