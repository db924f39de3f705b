"""All prose of the program in one list, so that new words are read when a change is reviewed.

    python -m tests.texts

writes `tests/texts.txt` anew: each string of the source that holds at least two words and is no
docstring, by file, with `{…}` for what is filled in at run time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
LIST = HERE / "texts.txt"
PACKAGE = HERE.parent / "gemtui"
_PROSE = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z“{]")
_STYLE = re.compile(r"\{[^{}]*[a-z-]+: [^;{}]+;")


def texts(source: str) -> Iterator[str]:
    """Yield the prose in a module's source, in its order."""
    tree = ast.parse(source)
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in inside:
            found.append((node.lineno, node.col_offset, "".join(map(_part, node.values))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | alone:
            found.append((node.lineno, node.col_offset, node.value))
    for *_, text in sorted(found):
        if _PROSE.search(text) and not _STYLE.search(text):
            yield text


def _part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{…}"


def listed() -> str:
    """Return the whole list as it is kept."""
    lines = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if found := list(texts(path.read_text("utf-8"))):
            lines += [f"# {path.relative_to(PACKAGE.parent).as_posix()}"]
            lines += [text.encode("unicode_escape").decode() for text in found]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    LIST.write_text(listed(), "utf-8")
