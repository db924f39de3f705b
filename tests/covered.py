"""The files that a test module depends on, as far as its imports show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]

_MODULE = re.compile(r"\b(?:gemtui|tests)(?:\.\w+)+")
_IMPORTED = re.compile(r"\bfrom ((?:gemtui|tests)[\w.]*) import (\([^)]*\)|[^\n]*)")
_NAME = re.compile(r"\w+")
_BUILT = re.compile(r"f\"((?:gemtui|tests)[\w.]*)\.\{")
_SCRIPT = re.compile(r"\"([\w/]+\.py)\"")


def covered(test: Path) -> frozenset[Path]:
    """Return every file of gemtui and its tests that `test` names, directly or through another.

    A module is named by an import, wherever that is, by its dotted name in a string, as when
    children are started, and by its path beside the module that starts it. A name that is put
    together names all modules of its package. The packages around a module, with the data in their
    folders, and the conftest modules belong to it.
    """
    found, waiting = set[Path](), [test]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(_named(file))
    return frozenset(found)


def digest(test: Path) -> str:
    """Return a number for the contents of all that `covered` returns and of all recorded data."""
    lines = sorted(map(_line, covered(test) | _data()))
    return sha256("\n".join(line for _, line in lines).encode()).hexdigest()[:16]


@cache
def _line(file: Path) -> tuple[tuple[str, ...], str]:
    """Return what sorts as the path does, and the path with a number for the contents."""
    return file.parts, f"{file.relative_to(ROOT)} {sha256(file.read_bytes()).hexdigest()}"


@cache
def _data() -> frozenset[Path]:
    return frozenset(file for file in (ROOT / "tests/data").rglob("*") if file.is_file())


@cache
def _named(file: Path) -> frozenset[Path]:
    if file.suffix != ".py":
        return frozenset()
    text = file.read_text()
    return frozenset((*_of_modules(text), *_of_scripts(text, file.parent), *_around(file)))


def _of_scripts(text: str, folder: Path) -> Iterator[Path]:
    for name in _SCRIPT.findall(text):
        if (found := folder / name).is_file():
            yield found


def _of_modules(text: str) -> Iterator[Path]:
    for package in _BUILT.findall(text):
        yield from ROOT.joinpath(*package.split(".")).glob("*.py")
    for module in _MODULE.findall(text):
        yield from _files(module)
    for package, names in _IMPORTED.findall(text):
        for name in _NAME.findall(names):
            yield from _files(f"{package}.{name}")


def _around(file: Path) -> Iterator[Path]:
    """Yield what Python and pytest load with a module, and what lies beside it to be read."""
    for folder in file.relative_to(ROOT).parents[:-1]:
        for name in ("__init__.py", "conftest.py"):
            if (found := ROOT / folder / name).exists():
                yield found
    if file.name == "__init__.py" and file.is_relative_to(ROOT / "gemtui"):
        yield from _beside(file.parent)


def _beside(folder: Path) -> Iterator[Path]:
    """Yield the data of a package: all files that are no modules of it or of packages in it."""
    for each in folder.iterdir():
        if each.is_file() and each.suffix != ".py":
            yield each
        elif each.is_dir() and each.name != "__pycache__" and not (each / "__init__.py").exists():
            yield from (file for file in each.rglob("*") if _is_source(file))


def _is_source(file: Path) -> bool:
    return file.is_file() and file.suffix != ".pyc"


@cache
def _files(module: str) -> tuple[Path, ...]:
    """Return the file of a module, or of the longest part of the name that is one."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return (file,)
    return ()
