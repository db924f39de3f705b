"""Patches as git writes them, from what files held before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff

_LONGEST = 10_000
"""Lines above which a file is replaced as a whole: comparing takes time that grows fast."""
_NO_NEWLINE = "\\ No newline at end of file\n"
_PLAIN_NAME = re.compile(r'[^\x00-\x1f\x7f"\\]+')


def file_patch(name: str, before: str | None, after: str | None) -> str:
    """Return the change to one file for `git apply`; "" if nothing changed.

    `name`: the path from where the patch is applied, with slashes. `before`, `after`: the whole
    content; None = the file does not exist.
    """
    if before == after:
        return ""
    hunks = "".join(_hunks(before or "", after or ""))
    return _head(name, is_new=before is None, gone=after is None, changed=bool(hunks)) + hunks


def patch_of_diff(name: str, diff: str, *, is_new: bool) -> str:
    """Return a unified diff of one file for `git apply`; "" if it changes nothing.

    `diff`: with any header before its first `@@`, as Gemini CLI stores it.
    """
    found = re.search(r"^@@ ", diff, re.M)
    if found is None:
        return ""
    return _head(name, is_new=is_new, gone=False, changed=True) + diff[found.start() :]


def _head(name: str, *, is_new: bool, gone: bool, changed: bool) -> str:
    old, new = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    head = f"diff --git {old} {new}\n"
    head += "new file mode 100644\n" if is_new else "deleted file mode 100644\n" if gone else ""
    if changed:
        end = "\t" if " " in name else ""  # without it, programs other than git end the name there
        head += "--- /dev/null\n" if is_new else f"--- {old}{end}\n"
        head += "+++ /dev/null\n" if gone else f"+++ {new}{end}\n"
    return head


def _quoted(name: str) -> str:
    """A name as git takes it in a header: quoted where it holds quotes or control characters."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    escaped = re.sub(r'[\x00-\x1f\x7f"\\]', lambda found: f"\\{ord(found[0]):03o}", name)
    return f'"{escaped}"'


def _hunks(before: str, after: str) -> Iterator[str]:
    old, new = _lines(before), _lines(after)
    if len(old) + len(new) <= _LONGEST:
        changed = list(unified_diff(old, new))[2:]
    else:
        changed = [f"@@ -{_span(old)} +{_span(new)} @@\n"]
        changed += [f"-{line}" for line in old] + [f"+{line}" for line in new]
    for line in changed:
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"


def _span(lines: list[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


def _lines(text: str) -> list[str]:
    """Lines with their line feeds; nothing else ends a line, as in git."""
    return re.findall(r"[^\n]*\n|[^\n]+$", text)
