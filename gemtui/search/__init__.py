"""Full-text search across stored sessions."""

from importlib.util import find_spec

NO_ENGINE = (
    "the search needs the package tantivy, which is not published for Windows on ARM: use Python "
    "for AMD64, which runs there too"
)


def has_engine() -> bool:
    """Return whether the search's engine is installed; without it, use `NO_ENGINE`."""
    return find_spec("tantivy") is not None
