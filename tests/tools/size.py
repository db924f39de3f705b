"""How much there is to read: tokens by package, and what makes reading slow.

    python -m tests.tools.size

A token is one of Python's, without comments and docstrings; lines are those that hold one. Private
functions with one caller make a reader jump; locals that could be anything make one guess.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
VAGUE = frozenset(
    ("each", "found", "place", "words", "known", "told", "done", "said", "given", "here")
)
LAYOUT = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
)


@dataclass
class Size:
    """The size of some modules."""

    tokens: int = 0
    lines: int = 0
    one_caller: int = 0
    vague: Counter[str] = field(default_factory=Counter)

    def add(self, other: Size) -> None:
        """Add the size of other modules."""
        self.tokens += other.tokens
        self.lines += other.lines
        self.one_caller += other.one_caller
        self.vague += other.vague


def size_of(source: str) -> Size:
    """Return the size of one module."""
    tree = ast.parse(source)
    docstrings = set(_docstring_places(tree))
    tokens, lines = 0, set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in LAYOUT or token.start in docstrings:
            continue
        tokens += 1
        lines.update(range(token.start[0], token.end[0] + 1))
    stored = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    vague = Counter(name for name in stored if name in VAGUE)
    return Size(tokens, len(lines), _with_one_caller(tree), vague)


def _docstring_places(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield where a text stands alone: a docstring, of a variable, too."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.col_offset


def _with_one_caller(tree: ast.Module) -> int:
    """Return how many private functions of a module are named once in it."""
    uses: Counter[str] = Counter()
    private = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            uses[node.id] += 1
        elif isinstance(node, ast.Attribute):
            uses[node.attr] += 1
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("_"):
            private.append(node.name)
    return sum(uses[name] == 1 for name in private if not name.endswith("__"))


def sizes(folder: Path) -> dict[str, Size]:
    """Return the size of each package directly below a folder, and of the modules beside them as
    `.`.
    """
    packages: dict[str, Size] = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        package = parts[0] if len(parts) > 1 else "."
        packages.setdefault(package, Size()).add(size_of(path.read_text(encoding="utf-8")))
    return packages


def main() -> None:
    """Print the sizes of the package and of its tests."""
    for name in ("gemtui", "tests"):
        packages = sizes(ROOT / name)
        whole = Size()
        for size in packages.values():
            whole.add(size)
        print(f"{name}: {whole.tokens:,} tokens, {whole.tokens / whole.lines:.1f} a line")
        for package, size in sorted(packages.items(), key=lambda item: -item[1].tokens):
            print(f"  {size.tokens:8,}  {package}")
        print(f"  private functions with one caller: {whole.one_caller:,}")
        print(
            "  vague names: "
            + ", ".join(f"{word} {number}" for word, number in whole.vague.most_common())
        )


if __name__ == "__main__":
    main()
