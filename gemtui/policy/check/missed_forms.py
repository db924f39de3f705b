"""Find rules for test commands that miss the forms in which agents run them.

Agents rarely run a plain `npm test`: they change the folder, redirect stderr to stdout, and shorten
the output. A commandPrefix covers none of these forms in Gemini CLI
(assets/gemini-cli.md#shell-rules), so the user is asked about the calls, or they are denied,
although a rule seems to allow them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemtui.policy.check.finding_builder import FindingDraft, warned
from gemtui.policy.engine.decide import Engine
from gemtui.policy.engine.results import Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.match.command_patterns import command_words
from gemtui.policy.match.matching import SHELL
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule

_TESTERS = frozenset(
    {"ctest", "jest", "mocha", "nox", "phpunit", "pytest", "rspec", "test", "tox", "unittest",
     "vitest"}
)  # fmt: skip
"""Words in commands that run tests, such as `npm test` and `python -m pytest`."""
_FORMS = {
    "`2>&1`": "{} 2>&1",
    "`| tail`": "{} | tail",
    "`cd FOLDER &&`": "cd src && {}",
    "`CI=1` before it": "CI=1 {}",
}


def missed_forms(rules: Sequence[Rule]) -> Mapping[int, tuple[FindingDraft, ...]]:
    """Find rules that allow a test command, but not all forms in which agents run it.

    `rules`: in load order. A form that any of the rules allows isn't missed. Returns a mapping from
    each rule's index in `rules` to its findings.
    """
    found: dict[int, tuple[FindingDraft, ...]] = {}
    engines: dict[ApprovalMode, Engine] = {}
    for place, rule in enumerate(rules):
        prefixes = [prefix for prefix in rule.command_prefixes if _runs_tests(prefix)]
        if not prefixes or rule.decision is not Decision.ALLOW or rule.subagent or rule.mcp_name:
            continue
        mode = next((m for m in ApprovalMode if not rule.modes or m.in_rules in rule.modes), None)
        if mode is not None:
            if mode not in engines:
                engines[mode] = Engine(Policy(rules=tuple(rules)), mode=mode, setup=Setup())
            drafts = (_finding(prefix, engines[mode]) for prefix in prefixes)
            found[place] = tuple(draft for draft in drafts if draft is not None)
    return found


def _runs_tests(prefix: str) -> bool:
    try:
        return not _TESTERS.isdisjoint(command_words(prefix))
    except (ValueError, IndexError):
        return False


def _finding(prefix: str, engine: Engine) -> FindingDraft | None:
    def allows(command: str) -> bool:
        return engine.outcome(Call(SHELL, {"command": command})).decision is Decision.ALLOW

    missed = [name for name, form in _FORMS.items() if not allows(form.format(prefix))]
    if not missed or not allows(prefix):
        return None
    names = ", ".join(missed)
    said = f'"{prefix}" misses forms in which agents often run it: {names}'
    way_out = f"add the rule that gemtui policy words 'allow {prefix}' prints"
    return warned("commandPrefix", said, way_out)
