"""What our engine says of an observed call, in the words of the observation."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from gemtui.policy.decide import Engine, McpTool, Setup
from gemtui.policy.policy import Policy
from gemtui.policy.rules import ApprovalMode, Call, Decision, Tier
from tests.observation.cases import Case, Seen
from tests.observation.mcp import ANNOTATIONS
from tests.observation.place import Place

_ALIASES = ("search_file_content",)
"""Names that are never offered and yet run."""


def ours(place: Place, cases: tuple[Case, ...]) -> tuple[Seen, ...]:
    """The engine's word on the calls of one run, each for itself, by the files of that run."""
    case = cases[0]
    engine = Engine(
        policy_of(place),
        mode=ApprovalMode(case.mode),
        interactive=case.interactive,
        setup=setup_of(place),
    )
    return tuple(_said(engine, place, each) for each in cases)


def _said(engine: Engine, place: Place, case: Case) -> Seen:
    found = engine.outcome(Call(tool=case.tool, args=place.args(case)))
    if not found.offered and case.tool not in _ALIASES:
        return Seen(outcome="not_offered", offered=False)
    refused = "ask_user" if case.interactive else "needs_confirmation"
    outcomes = {
        Decision.ALLOW: "allowed",
        Decision.DENY: "denied_by_policy",
        Decision.ASK_USER: refused,
    }
    return Seen(outcome=outcomes[found.decision], offered=found.offered)


def policy_of(place: Place) -> Policy:
    """The rules of all files that the run was given, as the CLI takes them together."""
    named: list[Path] = []
    admin: list[Path] = []
    for given in place.case.given:
        match given.kind:
            case "policy":
                named += [place.policies / name for name in given.names]
            case "policy_dir":
                named.append(place.policies)
            case "policy_paths":
                named += _paths(place, given.values)
            case "admin":
                admin += [place.policies / name for name in given.names]
    folder = place.cli.store / "policies"
    if not named and folder.is_dir():
        named = [folder]
    return Policy.load(named) + Policy.load(admin, tier=Tier.ADMIN)


def _paths(place: Place, values: tuple[str, ...]) -> list[Path]:
    parts = (part.strip() for value in values for part in place.here(value).split(","))
    return [place.cli.project / part for part in parts]


def setup_of(place: Place) -> Setup:
    """Settings, flags and MCP servers of the run."""
    flags = place.case.flags
    allowed = [value for flag, value in pairwise(flags) if flag == "--allowed-tools"]
    return Setup(
        settings=place.case.settings,
        allowed_tools=tuple(allowed),
        mcp_tools=tuple(
            McpTool(server=server, name=name, annotations=hints)
            for server in place.case.settings.get("mcpServers", {})
            for name, hints in ANNOTATIONS.items()
        ),
        workspace=place.cli.project,
    )
