"""What the CLI sees in a shell command: its parts, redirections, opened wrappers, roots.

The CLI parses with tree-sitter's bash grammar, and so do we (policy-engine, "Shell: prefixes and
splitting").
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One command inside a command, in the order in which they stand.

    `text`: as written, no blanks round it; the engine checks it alone unless it is `whole`, the
    command itself. `name`: the command's name without quotes. `inner`: what stands inside when it
    is a wrapper that the engine opens (`bash -c '...'`), checked alone, too; None = no such
    wrapper, "" = an empty one.
    """

    text: str
    name: str
    whole: bool
    inner: str | None

    @property
    def redirected(self) -> bool:
        """Whether the part, read alone, redirects."""
        return has_redirection(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A command as the engine reads it.

    `parsed`: False = empty, blank, not to be parsed, or of a kind that the engine refuses to read
    (`${x@P}`): no parts then. `parts`: never holds redirections and subshells themselves, which
    are no commands; it may be empty although `parsed` (`( )` forms). `redirected`: anywhere in it.
    """

    text: str
    parsed: bool
    parts: tuple[Part, ...]
    redirected: bool

    @property
    def roots(self) -> tuple[str, ...]:
        """The names of its commands, in order."""
        return tuple(part.name for part in self.parts if part.name)


def read_command(text: str) -> Reading:
    """How the engine reads a command; never raises, whatever the text."""
    raise NotImplementedError


def has_redirection(text: str) -> bool:
    """Whether the engine finds a redirection in a command."""
    raise NotImplementedError


def unwrapped(text: str) -> str:
    """What stands inside a wrapper that the engine opens; else the text without blanks round it."""
    raise NotImplementedError
