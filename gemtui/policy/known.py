"""The CLI's tools by name, with their arguments (contract 4.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. `required` and `optional`: its arguments, in the order of the CLI's declaration."""

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """All arguments, the required ones first."""
        return (*self.required, *self.optional)


TOOLS: tuple[Tool, ...] = ()
AGENTS = ("generalist", "codebase_investigator", "cli_help")


def tool(name: str) -> Tool | None:
    """The tool of this name, or of the alias that rules know; None = not one of the CLI's own."""
    raise NotImplementedError


def nearest(name: str) -> str | None:
    """The tool that was probably meant by a name that no tool has."""
    raise NotImplementedError
