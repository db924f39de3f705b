"""All errors that gemtui raises on purpose, their attributes, and the reasons of system errors.

GemtuiError
├── SessionNotFound        no stored session matches; `.searched` has the places searched
├── SessionAmbiguous       several sessions match; `.candidates` has their ids
├── NotASession            the file exists but is not a Gemini session
├── SessionTooLarge        reading the session would need more memory than allowed
├── StoreUnreadable        the store exists but access to it is denied
├── DeletionFailed         some files of a session could not be moved to the trash or removed
├── RestoreFailed          a saved session can't be restored to the store
├── MoveFailed             a project's sessions can't be given to another folder
├── ForkFailed             no new chat can be created from a session
├── MarkError              a user's name, tag or note can't be saved (also a ValueError)
├── MarksUnreadable        the file with the user's names, tags and notes can't be used; `.path`
├── CheckpointsUnreadable  a project's checkpoints can't be read or written; `.path`
├── UndoError              nothing can be undone or redone here
├── WorktreeError          a worktree can't be created, compared, applied or removed
│   └── WorktreeNotFound   a name matches no worktree, or several
├── PushError              a folder can't be pushed to: it is another program's, or corrupt
├── ConfigError            the settings file is invalid; `.path` and `.key` name the place
├── PolicyError            a policy file can't be read, edited or saved; `.path` names it
│   ├── PolicyNotFound     there is no policy with this name
│   └── PolicyChanged      the file has been changed since it was opened
├── OptionError            an option of a run is invalid (also a ValueError); `.option` names it
│   └── GateError          a run can't ask the user; `.install`: install the extension to fix it
├── InsideRunError         a run's own process tries to answer the run's questions
├── RunNotFound            none of gemtui's runs has this id
├── RunAmbiguous           several runs match; `.candidates` has their ids
├── ExtensionError         gemtui's extension for Gemini CLI can't be installed or removed
├── CliNotFound            no usable Gemini CLI: none is installed, or it is broken or too old
└── ProviderError          a provider's run failed; `.response`, `.files`, `.stderr`, `.run`
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def reason_of(error: BaseException) -> str:
    """Return why the system refused something, in a few words and without the path.

    Any other error's text is returned as it is, or the error's name if it has no text.
    """
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def message_of(error: BaseException) -> str:
    """Return an error's message in one line; that of a system error begins with the path.

    `str` of a system error would begin with a number, as in `[Errno 13]`.
    """
    if not isinstance(error, OSError):
        return str(error)
    return f"{error.filename}: {reason_of(error)}" if error.filename else reason_of(error)


class GemtuiError(Exception):
    """Base class of all errors that gemtui raises on purpose.

    `str(error)` is one line that says what is wrong and how to fix it.
    """


class SessionNotFound(GemtuiError):
    """No stored session matches.

    `searched`: the places that were searched.
    """

    def __init__(self, message: str, *, searched: tuple[Path, ...] = ()) -> None:
        super().__init__(message)
        self.searched = searched


class SessionAmbiguous(GemtuiError):
    """Several sessions match.

    `candidates`: strings that each identify exactly one session, newest first. They are full ids,
    or file paths for sessions that share an id.
    """

    def __init__(self, message: str, *, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class RunNotFound(GemtuiError):
    """None of gemtui's runs has this id or stored a session with this id."""


class RunAmbiguous(GemtuiError):
    """Several runs match.

    `candidates`: their ids, newest first.
    """

    def __init__(self, message: str, *, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class NotASession(GemtuiError):
    """The file at `path` is readable, but is not a Gemini session."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class SessionTooLarge(GemtuiError):
    """Loading the session at `path` would need more memory than gemtui allows.

    `size`, `limit`: in bytes for a legacy `.json` file, otherwise in the unit named in the message.
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
            f"{path} is too large: it has {size:,} {of}, but gemtui reads at most {limit:,}: "
            f"{way_out}"
        )
        self.path, self.size, self.limit = path, size, limit


class StoreUnreadable(GemtuiError):
    """The store at `path` exists, but the operating system denies access."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class DeletionFailed(GemtuiError):
    """Some of a session's files could not be deleted.

    `left`: the files that could not be deleted, each with the reason.
    """

    def __init__(self, message: str, *, left: tuple[tuple[Path, str], ...]) -> None:
        super().__init__(message)
        self.left = left


class RestoreFailed(GemtuiError):
    """A saved session can't be restored.

    The message gives the reason and the fix.
    """


class MoveFailed(GemtuiError):
    """The sessions of a project can't be given to another folder.

    The message says why.
    """


class ForkFailed(GemtuiError):
    """No new chat can be created from a session.

    The message gives the reason and the fix.
    """


class MarkError(GemtuiError, ValueError):
    """A session's name, tag or note can't be saved.

    The message says what is valid.
    """


class MarksUnreadable(GemtuiError):
    """The file with names, tags and notes can't be used.

    `path`: the file, whose contents are left unchanged; a corrupt file has been renamed by an edit.
    """

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class PushError(GemtuiError):
    """A folder can't be used for `gemtui push`.

    It isn't a push folder (a folder that gemtui has pushed sessions to), or it is corrupt.
    """


class ConfigError(GemtuiError):
    """The settings file is invalid.

    `path`: the file. `key`: the setting at fault, if it is a single one.
    """

    def __init__(self, message: str, *, path: Path, key: str | None = None) -> None:
        super().__init__(message)
        self.path, self.key = path, key


class PolicyError(GemtuiError):
    """The policy file at `path` can't be read, edited or saved."""

    def __init__(self, message: str, *, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class PolicyNotFound(PolicyError):
    """There is no policy file with this name or path."""


class PolicyChanged(PolicyError):
    """The policy file was changed after it was opened, so it is not saved.

    Saving would undo that change.
    """


class OptionError(GemtuiError, ValueError):
    """An option of a run is invalid.

    The message names the option and its valid values. `option`: its name in `AgentOptions`, if only
    one option is involved. `what`: the problem, without the option's name.
    """

    def __init__(self, message: str, *, option: str | None = None, what: str | None = None) -> None:
        super().__init__(message)
        self.option, self.what = option, what or message


class GateError(OptionError):
    """A run can't ask the user to approve its tool calls.

    The message says why and how to fix it. `problem`: why. `install`: True if installing or
    reinstalling gemtui's extension for Gemini CLI would fix it.
    """

    def __init__(self, problem: str, *, install: bool = False) -> None:
        super().__init__(f"this run can't ask: {problem}", option="ask", what=problem)
        self.install = install


class InsideRunError(GemtuiError):
    """A process that a run has started tries to answer the run's questions."""

    def __init__(self) -> None:
        super().__init__(
            "the run itself started this program, so it can't answer the run's questions: use "
            "another terminal"
        )


class ExtensionError(GemtuiError):
    """gemtui's extension for Gemini CLI can't be installed or removed.

    The message gives the reason.
    """


class CliNotFound(GemtuiError):
    """There is no Gemini CLI that can be run.

    The message says why, and how to install one.
    """


class ProviderError(GemtuiError):
    """A provider's run failed, or its CLI can't be used.

    The message says what to do. `response`: the partial answer. `files`: the files written before
    the failure, as in `ProviderResult.files`. `stderr`: the end of the CLI's stderr. `run`: the
    folder with the record of the run; None if no run was started.
    """

    def __init__(
        self,
        message: str,
        *,
        response: str = "",
        files: Mapping[str, None] | None = None,
        stderr: str = "",
        run: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.response = response
        self.files = dict(files or {})
        self.stderr, self.run = stderr, run


class CheckpointsUnreadable(GemtuiError):
    """A project's checkpoints can't be read or written.

    The message says why. `path`: the checkpoint file, which is left unchanged.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


class UndoError(GemtuiError):
    """Nothing can be undone or redone here.

    The message says why.
    """


class WorktreeError(GemtuiError):
    """A worktree can't be created, found, compared, applied or removed.

    The message says why.
    """


class WorktreeNotFound(WorktreeError):
    """A name matches no worktree, or several.

    The message says which is the case.
    """
