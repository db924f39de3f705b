r"""Compare two texts by lines, and say what a comparison by lines does not show: their ends."""

from __future__ import annotations

from collections.abc import Iterator

_NEWLINE, _CRLF, _MIXED = r"\n", r"\r\n", "mixed"


def comparable(before: str | None, after: str) -> tuple[str | None, str]:
    r"""Return both texts with `\n` at all line ends.

    Where one of them mixes line ends, `\r\n` leaves the mark `␍` in both.
    """
    mixed = _MIXED in (_ends(before or ""), _ends(after))
    end = "\u240d\n" if mixed else "\n"
    plain = None if before is None else before.replace("\r\n", end)
    return plain, after.replace("\r\n", end)


def line_end_changes(before: str | None, after: str) -> Iterator[str]:
    """Yield what becomes of the line ends and the last newline, each as a clause."""
    was, becomes = _ends(before or ""), _ends(after)
    if becomes == _MIXED:
        yield r"mixed line ends: ␍ marks \r\n"
    elif was and becomes and was != becomes:
        yield f"line ends change from {was} to {becomes}"
    elif becomes == _CRLF:
        yield r"\r\n at all line ends"
    if after and not after.endswith("\n"):
        removed = before is not None and before.endswith("\n")
        yield "the newline at the end is removed" if removed else "no newline at the end"
    elif before and after and not before.endswith("\n"):
        yield "a newline is added at the end"


def _ends(text: str) -> str:
    crlf, all = text.count("\r\n"), text.count("\n")
    if crlf and crlf < all:
        return _MIXED
    return _CRLF if crlf else _NEWLINE if all else ""
