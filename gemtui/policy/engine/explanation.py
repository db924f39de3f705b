"""The reasons for a decision, in sentences.

They name the deciding rule, the rules that were tried before it, and the result in headless runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from gemtui.policy.engine.evaluator import Evaluator, ToolContext
from gemtui.policy.engine.refusals import tool_refuses
from gemtui.policy.engine.setup import Considered, Evaluation, Explanation
from gemtui.policy.match.matching import CompiledRule, arguments_text
from gemtui.policy.match.patterns import PatternTimeout
from gemtui.policy.model.mcp_names import LONGEST_NAME, MCP_PREFIX
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Tier
from gemtui.policy.model.tool_catalog import AGENTS, current_name
from gemtui.policy.words import condition_result, rule_place
from gemtui.text import visible_line

_DOES = {Decision.ALLOW: "allows it", Decision.DENY: "denies it", Decision.ASK_USER: "asks first"}


def explanation(call: Call, evaluator: Evaluator, other: Evaluator) -> Explanation:
    """Return the decision for a call, with its reasons.

    `evaluator` decides. `other`: the same rules for the opposite kind of session (interactive if
    `evaluator` is headless, and vice versa), because an Explanation contains both results.
    """
    evaluation = evaluator.evaluate(call)
    availability = evaluator.context(call).availability
    asked, unasked = (evaluator, other) if evaluator.interactive else (other, evaluator)
    refuses = None
    if availability.found and not call.is_foreign:
        refuses = tool_refuses(call, evaluator.roots, mode=evaluator.mode)
    allowed = unasked.evaluate(call).decision is Decision.ALLOW and refuses is None
    because = _because(call, evaluator, evaluation)
    for rule in _hanging(evaluator.context(call), evaluation):
        because += f" The pattern of {rule_place(rule)} may make {evaluator.program} hang."
    if refuses is not None:
        because += (
            f" The tool {call.tool} itself rejects the call, whatever the policy says: {refuses}."
        )
    return Explanation(
        call=call,
        mode=evaluator.mode,
        decision=evaluation.decision,
        offered=availability.offered,
        headless=Decision.ALLOW if allowed else Decision.DENY,
        interactive=asked.evaluate(call).decision,
        rule=evaluation.ready.rule if evaluation.ready else None,
        because=visible_line(because),
        message=_message(evaluator, call, evaluation),
        considered=tuple(_considered(call, evaluator, evaluation)),
        found=availability.found,
        possible=not availability.known.impossible,
        tool_refuses=refuses,
    )


def _hanging(context: ToolContext, evaluation: Evaluation) -> Iterator[Rule]:
    """Yield the rules that were tried for a call and whose patterns may hang the CLI."""
    decides = evaluation.matched or evaluation.ready
    for ready in context.rules.rules:
        if ready.may_hang:
            yield ready.rule
        if ready is decides:
            return


def _message(evaluator: Evaluator, call: Call, evaluation: Evaluation) -> str | None:
    """Return the CLI's message to the model about a denied call.

    Returns None if the call isn't denied, there is no message, or the tool is not found.
    """
    if evaluation.decision is not Decision.DENY or not evaluator.context(call).availability.found:
        return None
    if evaluation.message is not None:
        return evaluation.message
    return evaluation.ready.rule.deny_message if evaluation.ready else None


def _because(call: Call, evaluator: Evaluator, evaluation: Evaluation) -> str:
    if evaluator.stopped:
        return f"Gemini CLI does not start: {evaluator.stopped}."
    availability = evaluator.context(call).availability
    if availability.known.impossible:
        return _impossible(call.tool)
    if availability.known.absent:
        return (
            "The tool does not exist here, so calls to it fail as “not found”: "
            f"{availability.known.absent}."
        )
    if not availability.found:
        return _hidden(availability.by.rule if availability.by else None)
    text = _decided(evaluator, evaluation)
    if availability.known.name != call.tool:
        text += f" This is an older name of {availability.known.name} that still works."
    if evaluation.decision is Decision.ASK_USER and not evaluator.interactive:
        text += " Headless runs can't ask, so the call is denied."
    return text


def _impossible(name: str) -> str:
    """Say that no tool can have a name, and which name the CLI uses instead."""
    meant = current_name(name)
    if name.startswith(MCP_PREFIX) and meant:
        most = f"at most {LONGEST_NAME} characters, and only letters, digits, _ - . :"
        return (
            f"No tool can have this name: Gemini CLI calls it {meant}, because names of MCP "
            f"tools have {most}."
        )
    if name in AGENTS:
        return f"No tool has this name: Gemini CLI calls agents with {meant}."
    return f"No tool has this name.{f' Did you mean {meant}?' if meant else ''}"


def _hidden(rule: Rule | None) -> str:
    end = "so the tool is hidden from the model, and calls to it fail as “not found”."
    if rule is None:
        return f"No rule applies to it, which means deny in headless runs, {end}"
    return _upper(f"{rule_place(rule)} denies it for all arguments, {end}")


def _decided(evaluator: Evaluator, evaluation: Evaluation) -> str:
    if evaluation.stuck:
        return _upper(f"{evaluation.note}, so {evaluator.program} would hang on this call.")
    does = _DOES[evaluation.decision]
    if not evaluation.note:
        if evaluation.ready:
            return _upper(f"{rule_place(evaluation.ready.rule)} {does}.")
        return _default(evaluator, evaluation.decision)
    first = evaluation.matched or evaluation.ready
    if first is None:
        return f"No rule matches, and {evaluator.program} {does}: {evaluation.note}."
    if first.decision is evaluation.decision and first is evaluation.ready:
        return _upper(f"{rule_place(first.rule)} {does}: {evaluation.note}.")
    matched = f"{rule_place(first.rule)} matches and would {_would(first.decision)}"
    other = evaluation.ready if evaluation.ready is not first else None
    by = rule_place(other.rule) if other else evaluator.program
    return _upper(f"{matched}, but {by} {does}: {evaluation.note}.")


def _would(decision: Decision) -> str:
    return {Decision.ALLOW: "allow it", Decision.DENY: "deny it"}.get(decision, "ask first")


def _default(evaluator: Evaluator, decision: Decision) -> str:
    if evaluator.mode is ApprovalMode.YOLO:
        return "No rule matches, and yolo allows it."
    if decision is Decision.ASK_USER:
        return "No rule matches, so you are asked."
    where = "in an interactive session" if evaluator.interactive else "headless"
    return f"No rule matches, so Gemini CLI {_DOES[decision]} {where}."


def _upper(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _considered(call: Call, evaluator: Evaluator, evaluation: Evaluation) -> Iterator[Considered]:
    """Yield the rules in the order in which they are tried, with whether each matches.

    Rules after the deciding one are included. Built-in rules are included only if they apply to the
    tool in this situation. `evaluation`: the decision for the call.
    """
    if evaluator.stopped or evaluator.context(call).availability.known.absent:
        return
    context = evaluator.context(call)
    decided: Rule | None = None
    for _, group in groupby(evaluator.rules, key=lambda ready: id(ready.rule)):
        readies = tuple(group)
        rule = readies[0].rule
        reasons = [evaluator.mismatch(one, context.subject) for one in readies]
        fit = tuple(one for one, why in zip(readies, reasons, strict=True) if why is None)
        if not fit:
            if rule.tier is not Tier.BUILTIN:
                why = min((reason for reason in reasons if reason), key=_weight)
                yield Considered(rule=rule, matches=False, why=visible_line(why))
            continue
        matches, why = _match_of(fit, call, context)
        if decided is not None:
            matches = False
            why = f"it is never checked, because {rule_place(decided)} has already decided"
        elif matches:
            decided = rule
            why = _deciding(rule, evaluation, why)
        if not matches and evaluation.ready and evaluation.ready.rule is rule:
            matches, why = True, "it decides part of the command"
        yield Considered(rule=rule, matches=matches, why=visible_line(why))


def _weight(reason: str) -> bool:
    """Return whether a reason merely says that the rule is for a different tool.

    A sort key: a rule that names several tools has one reason for each, and this is the least
    informative one, so it sorts last.
    """
    return reason.startswith("it is for ")


def _match_of(fit: tuple[CompiledRule, ...], call: Call, context: ToolContext) -> tuple[bool, str]:
    """Return whether a rule matches the call, and why or why not.

    `fit`: the rule's compiled forms that apply to the tool in this situation.
    """
    if any(one.pattern is None for one in fit):
        hides = "" if context.availability.found else ", so the tool is hidden"
        return True, f"it is for this tool, with any arguments{hides}"
    if not context.availability.found:
        return False, "it depends on the arguments, so it does not hide the tool"
    try:
        text = arguments_text(call.args)
        matches = any(one.matches(text) for one in fit)
    except PatternTimeout:
        return False, "matching its pattern takes too long with these arguments"
    return matches, condition_result(fit[0].rule, matches)


def _deciding(rule: Rule, evaluation: Evaluation, why: str) -> str:
    answers = evaluation.ready.rule if evaluation.ready else None
    if answers is rule or not evaluation.note:
        return why
    return f"{why}; but {evaluation.note}"
