"""Print the results of commands: lines, tables and JSON on stdout, files, notes, and questions.

Answers are printed to stdout; notes, progress and questions are printed to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from types import UnionType
from typing import Any

import click

from gemtui.errors import ConfigError
from gemtui.files import is_file, is_folder, path_exists, resolved, write_whole
from gemtui.jsonin import loads
from gemtui.jsonout import encode, encode_array, json_value
from gemtui.paths import config_file, typed_path
from gemtui.text import cells, clean, clean_line, ellipsis, visible_line

_SLOW = 1.0
"""After how many seconds a note explains why a command is taking long."""
_NARROW = 20
"""If the last column has fewer cells than this, its text is not wrapped."""
_LONGEST_CURSOR = 20_000
"""The maximum length of a cursor, in characters.

This leaves enough room for a path, which has at most 4,096 bytes.
"""


def to_stdout(pieces: Iterable[bytes]) -> None:
    """Write to stdout and flush it; do nothing if stdout was closed (`>&-`).

    Raises BrokenPipeError if the reader is gone, and other OSErrors, for example for a full disk.
    """
    if sys.stdout is None:
        return
    stream = sys.stdout.buffer
    try:
        for piece in pieces:
            stream.write(piece)
        stream.flush()
    except BaseException:
        discard_stdout()
        raise


def json_to_stdout(value: Mapping[str, Any]) -> None:
    """Print an object as one line of JSON; its first key is `version`, which is 1.

    Its values are converted with `json_value`.
    """
    values = {key: json_value(item) for key, item in value.items()}
    to_stdout([encode({"version": 1, **values}), b"\n"])


def json_list_to_stdout(
    name: str,
    values: Iterable[Any],
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Print an object with a list like `json_to_stdout`, without holding the list in memory.

    `name`, `values`: the list's key and its values, as for `encode_array` once `json_value` has
    converted them, one per line. `before`, `after`: what the object contains before and after the
    list.
    """
    head = encode({"version": 1, **(before or {})}).removesuffix(b"}")
    tail = b"".join(
        b",%b:%b" % (encode(key), encode(value)) for key, value in (after or {}).items()
    )
    head = b"%b,%b:" % (head, encode(name))
    to_stdout(encode_array(map(json_value, values), head=head, tail=tail + b"}\n"))


def discard_stdout() -> None:
    """Discard buffered output, so that the interpreter's final flush does not raise."""
    try:
        handle = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)


@contextmanager
def slow_note(words: str) -> Iterator[None]:
    """Print a note on stderr if the block takes longer than a second.

    Nothing is printed if stderr isn't a terminal.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    timer = Timer(_SLOW, note, (words,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def lines_to_stdout(lines: Iterable[str], *, links: Iterable[Path | str] = ()) -> None:
    """Clean and print lines in stdout's encoding; characters it doesn't have become `?`.

    `links`: paths and addresses that become links, as for `gemtui.links.linker`.
    """
    encoding = stdout_encoding()
    cleaned: Iterable[str] = map(clean, lines)
    if links and _shows_links():
        from gemtui.links import linker

        cleaned = map(linker(links), cleaned)
    to_stdout(f"{line}\n".encode(encoding, "replace") for line in cleaned)


def _shows_links() -> bool:
    if terminal_width() is None:
        return False
    from gemtui.config import load_config
    from gemtui.links import shows_links

    with suppress(ConfigError):
        return shows_links(os.environ) and load_config(config_file()).links
    return False


def fact_line(name: str, text: str, *, width: int = 9) -> str:
    """Return a line of a report on one thing: a name, padded to `width`, and a text."""
    return f"{name:<{width}} {text}".rstrip()


def columns(
    rows: Sequence[Sequence[str]],
    *,
    numbers: frozenset[int] = frozenset(),
    room: int | None = None,
    cut: bool = False,
) -> Iterator[str]:
    """Yield a table's rows as lines with aligned columns.

    `numbers`: the indexes of columns to align right. `room`: the maximum width of a line in cells;
    to fit, the last column is wrapped or, with `cut`, truncated. None means no limit.
    """
    cleaned = [[visible_line(cell).strip() for cell in row] for row in rows]
    if not cleaned:
        return
    widths = [max(map(cells, column)) for column in zip(*cleaned, strict=True)]
    for *front, last in cleaned:
        padded = []
        for at, cell in enumerate(front):
            blanks = " " * (widths[at] - cells(cell))
            padded.append(blanks + cell if at in numbers else cell + blanks)
        before = "".join(f"{cell}  " for cell in padded)
        left = None if room is None else max(0, room - cells(before))
        for line in (ellipsis(last, left),) if cut and left is not None else _wrapped(last, left):
            yield f"{before}{line}".rstrip()
            before = " " * cells(before)


def _wrapped(text: str, room: int | None) -> Iterator[str]:
    """Wrap text at spaces to lines of at most `room` cells; long words stay whole.

    None, or a very narrow `room`, leaves the text as it is.
    """
    if room is None or room < _NARROW:
        yield text
        return
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and cells(longer) > room:
            yield line
            longer = word
        line = longer
    yield line


def terminal_width() -> int | None:
    """Return the width of stdout's terminal in columns; None if it is no terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def stdout_encoding() -> str:
    """Return the encoding in which text must be written to stdout."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def note(words: str) -> None:
    """Print a note on stderr, for example on why the output is empty or incomplete."""
    click.echo(clean_line(f"gemtui: {words}"), err=True)


def require_terminal() -> None:
    """Raise click.UsageError if no question can be asked: stdin isn't a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(
            "can't ask for confirmation without a terminal: add --yes to skip the question"
        )


def agreed(lines: Iterable[str], question: str) -> bool:
    """Clean lines and print them to stderr, ask the user to confirm, and return the answer.

    Raises click.UsageError if there is no terminal in which to ask.
    """
    require_terminal()
    for line in lines:
        click.echo(clean(line), err=True)
    return click.confirm(clean_line(question), err=True)


def require_yes(lines: Iterable[str], question: str) -> None:
    """Ask as `agreed` does. Raises click.Abort if the user declines."""
    if not agreed(lines, question):
        raise click.Abort


def progress(
    doing: str, total: int, things: str = "sessions", *, so_far: Callable[[], str] = lambda: ""
) -> Callable[[int], None]:
    """Return a function that shows progress, given how many things are done.

    It prints a line on stderr if that is a terminal. `doing`: what is being done, such as
    "writing". `total`: the number of all things. `so_far`: returns what is known already, to be
    shown behind the numbers.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        return lambda _: None

    def say(done: int) -> None:
        if done % 50 == 0 or done == total:
            end = "\r\x1b[K" if done == total else ""
            line = clean_line(f"{doing} {done:,} of {total:,} {things}{so_far()}")
            click.echo(f"\r{line}{end}", nl=False, err=True)

    return say


def to_file(
    path: Path, pieces: Iterable[bytes], *, keep: Iterable[Path], force: bool = False
) -> None:
    """Write an export to a file, completely or not at all.

    A new file is readable only by the user. `keep`: files that must not be overwritten, and folders
    in which nothing may be written, such as the session and Gemini's own folder. `force`: replace
    an existing file; otherwise, an existing file is an error. Raises click.UsageError, OSError.
    """
    require_writable(path, keep=keep, force=force)
    try:
        write_whole(typed_path(path), pieces, durable=True, special=True, over=force)
    except FileExistsError as error:
        raise click.UsageError(there_already(path)) from error


def require_writable(path: Path, *, keep: Iterable[Path], force: bool) -> None:
    """Raise click.UsageError if `to_file` with these arguments would not write to a path."""
    target = resolved(typed_path(path))
    if is_folder(target):
        raise click.UsageError(f"{path} is a folder: give the name of a file in it")
    if not is_folder(target.parent):
        what = "is not a folder" if path_exists(target.parent) else "does not exist"
        raise click.UsageError(f"{target.parent} {what}: give a folder that exists")
    for kept in keep:
        if target.is_relative_to(resolved(kept)):
            raise click.UsageError(f"{path} belongs to Gemini CLI: name a file elsewhere")
    if not force and is_file(target):
        raise click.UsageError(there_already(path))


def there_already(path: Path) -> str:
    """Return what to say about a file that would be replaced without `--force`."""
    return f"{path} exists: name another file, or replace it with --force"


# --- pages ---------------------------------------------------------------------------------------


def write_cursor(kind: str, *values: Any) -> str:
    """Return a token that marks where a list's next page begins, for use in scripts.

    `values`: JSON values that say where that is. `kind`: the kind of list, so that `read_cursor`
    rejects the cursors of other lists.
    """
    import base64

    return base64.urlsafe_b64encode(encode([kind, *values])).decode("ascii").rstrip("=")


def not_a_cursor() -> click.UsageError:
    """Return the error to raise for an argument that isn't a cursor of this list."""
    return click.UsageError(
        "--cursor: this is not a next_cursor from an earlier answer: leave it out to start over"
    )


def read_cursor(kind: str, cursor: str, *types: type | UnionType) -> list[Any]:
    """Return the values that `write_cursor` put into a cursor.

    `kind`: as for `write_cursor`. `types`: the expected types of the values. Raises
    click.UsageError if the argument isn't a cursor for this kind of list.
    """
    import base64

    try:
        padded = cursor[:_LONGEST_CURSOR] + "=" * (-len(cursor) % 4)
        decoded = loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except ValueError:
        decoded = None
    if isinstance(decoded, list) and decoded[:1] == [kind] and len(decoded) == len(types) + 1:
        values = decoded[1:]
        if all(map(_is_a, values, types)):
            return values
    raise not_a_cursor()


def _is_a(value: object, wanted: type | UnionType) -> bool:
    return isinstance(value, wanted) and not isinstance(value, bool)
