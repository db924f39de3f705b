"""Examples in a policy's file: read, added, tried, and comments to Gemini CLI."""

from __future__ import annotations

from gemtui.agents import Agent
from gemtui.policy.examples import Example, examples_of, try_examples, with_example
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Decision

RULE = """\
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git"
decision = "allow"
priority = 1
"""
PUSH = Example(
    expected=Decision.DENY,
    tool="run_shell_command",
    args={"command": "git push"},
    mode=ApprovalMode.YOLO,
)


def test_an_added_example_is_read_back_and_changes_no_rule() -> None:
    text = with_example(with_example(RULE, PUSH), Example(expected=Decision.ALLOW, tool="glob"))
    assert with_example(text, PUSH) == text
    first, second = examples_of(text)
    assert (first.expected, first.tool, first.args, first.mode, first.line) == (
        PUSH.expected,
        PUSH.tool,
        PUSH.args,
        PUSH.mode,
        1,
    )
    assert (second.tool, second.line) == ("glob", 2)
    assert Policy.parse(text) == Policy.parse(RULE)


def test_examples_pass_fail_or_cannot_be_read() -> None:
    text = (
        '# example: allow run_shell_command {"command": "git push"}\n'
        '# example: deny run_shell_command {"command": "git push"}\n'
        "# example: ask run_shell_command {}x\n"
        "# example: allow glob {\n"
        "# example: ask web_fetch in nowhere\n"
        "# an example: of prose\n"
    )
    tried = try_examples(examples_of(text), Policy.parse(RULE))
    assert [each.passes for each in tried] == [True, False, False, False, False]
    assert [bool(each.example.problem) for each in tried] == [False, False, True, True, True]
    assert tried[1].decision is Decision.ALLOW


def test_an_example_may_be_a_call_of_another_agent() -> None:
    text = (
        '# example: allow Bash {"command": "git push"} for claude\n'
        '# example: ask Bash {"command": "make"} in default for claude\n'
        '# example: deny Bash {"command": "git push"}\n'
        '# example: allow Bash {"command": "git push"} for nobody\n'
    )
    examples = examples_of(text)

    tried = try_examples(examples, Policy.parse(RULE))

    assert [each.passes for each in tried] == [True, True, True, False]
    assert [each.agent for each in examples[:3]] == [Agent.CLAUDE, Agent.CLAUDE, Agent.GEMINI]
    assert examples[3].problem == "gemtui knows no agent nobody: write gemini, qwen or claude"
    assert text.startswith(examples[0].text)
