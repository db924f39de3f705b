"""Tool calls of the demo that touch no file: todo lists, the web, subagents, an MCP server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from gemtui.demo.workspace import Call, Json, failed


def denied(call: Call, why: str) -> Call:
    """A call that a policy refused."""
    return failed(call, f"Tool execution denied by policy. {why}")


def web(query: str, answer: str, sources: Sequence[tuple[str, str]]) -> Call:
    """google_web_search with its sources (name, address)."""
    listed = "\n".join(f"[{n}] {name} ({url})" for n, (name, url) in enumerate(sources, 1))
    found = f'Web search results for "{query}":\n\n{answer}\n\nSources:\n{listed}'
    return Call(
        name="google_web_search",
        args={"query": query},
        response={"output": found},
        display=f'Search results for "{query}" returned.',
        description=f'Searching the web for: "{query}"',
        title="GoogleSearch",
        seconds=3.4,
    )


def todos(*items: tuple[str, str]) -> Call:
    """write_todos; items are (status, description)."""
    listed = [{"description": text, "status": status} for status, text in items]
    lines = [f"{n}. [{status}] {text}" for n, (status, text) in enumerate(items, 1)]
    said = "Successfully updated the todo list. The current list is now:\n" + "\n".join(lines)
    return Call(
        name="write_todos",
        args={"todos": listed},
        response={"output": said},
        display={"todos": listed},
        description=f"Set {len(items)} todo(s)",
        title="WriteTodos",
        seconds=0.01,
    )


def topic(title: str, summary: str, intent: str) -> Call:
    """update_topic: what the model says it is at."""
    return Call(
        name="update_topic",
        args={"title": title, "summary": summary, "strategic_intent": intent},
        response={
            "output": f'Current topic: "{title}"\nTopic summary: {summary}\n\n'
            f"Strategic Intent: {intent}"
        },
        display=f"## 📂 Topic: **{title}**\n\n**Summary:**\n{summary}\n\n"
        f"> [!STRATEGY]\n> **Intent:** {intent}",
        description=f'Update topic to: "{title}"',
        title="Update Topic Context",
        seconds=0.01,
    )


def mcp(server: str, tool: str, args: Json, rows: Sequence[Json]) -> Call:
    """A tool of an MCP server that returns a list of flat objects."""
    text = json.dumps(rows)
    return Call(
        name=f"mcp_{server}_{tool}",
        args=args,
        response={"output": f"<untrusted_context>\n{text}\n</untrusted_context>"},
        display=text,
        description=json.dumps(args),
        title=f"{tool} ({server} MCP Server)",
        seconds=0.8,
    )


def agent(name: str, prompt: str, id: str, steps: Sequence[Call], report: Json) -> Call:
    """invoke_agent: a subagent with session id `id` did `steps` and reported."""
    result = json.dumps(report, indent=2)
    activities = [
        {
            "id": f"{id}#{n}-0",
            "type": "tool_call",
            "content": step.name,
            "displayName": step.title,
            "description": step.description,
            "args": json.dumps(step.args),
            "status": "completed",
        }
        for n, step in enumerate(steps)
    ]
    return Call(
        name="invoke_agent",
        args={"agent_name": name, "prompt": prompt},
        response={
            "output": f"Subagent '{name}' finished.\nTermination Reason: GOAL\nResult:\n{result}"
        },
        display={
            "isSubagentProgress": True,
            "agentName": name,
            "recentActivity": activities,
            "state": "completed",
            "result": result,
            "terminateReason": "GOAL",
        },
        description=f"Delegating to agent '{name}'",
        title="Invoke Subagent",
        seconds=21.0,
        agent=id,
    )


def complete(report: Json) -> Call:
    """complete_task: how a subagent hands its report back."""
    done = "Output submitted and task completed."
    return Call(
        name="complete_task",
        args={"report": report},
        response={"output": done},
        display=done,
        description="Completing task and submitting results.",
        title="Complete Task",
        seconds=0.01,
    )


_STATIC = (
    "Reads and returns the content of a specified file. If the file is large, the content will be "
    "truncated. The tool's response will clearly indicate if truncation has occurred and will "
    "provide details on how to read more of the file using the 'offset' and 'limit' parameters. "
)


def wordy(call: Call) -> Call:
    """As old versions stored it: the description is the tool's documentation."""
    return replace(call, description=_STATIC * 4)
