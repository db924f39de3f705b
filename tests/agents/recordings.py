"""Scripted sessions of Claude Code and Qwen Code, recorded once for all tests of a run.

The last request of each is what the agent itself takes the conversation for: it resumes the session
and sends it to the model, with the prompt AGAIN.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agents.messages_server import AGENT_TASK, MessagesServer, says
from tests.agents.programs import Agent, Claude, Event, Qwen, Reply, Talk
from tests.model_server import (
    Answer,
    Chunk,
    ModelServer,
    Part,
    Request,
    answer,
    call,
    text,
    thought,
    usage,
)
from tests.patience import until

AGAIN = "Again"
GREETER = Path(__file__).with_name("greeter.py")
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
OLD, CRLF, BARE, NEW = "old.txt", "crlf.txt", "bare.txt", "new.txt"
REFUSED, STOPPED = "refused.txt", "stopped.txt"
TITLE = "A title of its own"
AT_ONCE = 3
"""How many sessions are recorded at the same time: each agent takes 300 MB."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session.

    `resumed`: the messages that the agent sent when it resumed the session. `tokens`: what the
    server told of each answer, input and output.
    """

    path: Path
    project: Path
    resumed: Sequence[Mapping[str, Any]]
    tokens: Sequence[int]


def _reply(question: Event) -> Reply:
    named = json.dumps(question.get("input", {}))
    if STOPPED in named:
        return "interrupt"
    return "deny" if REFUSED in named else "allow"


def _files(project: Path) -> None:
    (project / OLD).write_text("one\ntwo\nthree\n")
    (project / CRLF).write_bytes(b"one\r\ntwo\r\n")
    (project / BARE).write_text("one\ntwo")


# --- Claude Code ---------------------------------------------------------------------------------


def _bash(command: str) -> tuple[str, Mapping[str, Any]]:
    return "Bash", {"command": command, "description": "Runs"}


def _work(claude: Claude, model: MessagesServer) -> str:
    _files(claude.project)
    old, crlf, bare, new, refused, stopped = (
        str(claude.project / name) for name in (OLD, CRLF, BARE, NEW, REFUSED, STOPPED)
    )
    change = {"old_string": "two", "new_string": "2"}
    model.play(
        says("Hi.", thought="A greeting."),
        says("Two.", ("Read", {"file_path": old}), _bash("echo hi; echo err >&2"), thought="Both."),
        says("Read."),
        says("No.", ("Write", {"file_path": refused, "content": "x"})),
        says("Refused."),
        says("Fail.", _bash("echo out; exit 3"), ("Read", {"file_path": old + ".none"})),
        says("Failed."),
        says("Create.", ("Write", {"file_path": new, "content": "a\nb"})),
        says("Edit.", ("Edit", {"file_path": old, **change})),
        says("Look first.", ("Read", {"file_path": crlf}), ("Read", {"file_path": bare})),
        says("", ("Edit", {"file_path": crlf, **change}), ("Edit", {"file_path": bare, **change})),
        says("Overwrite.", ("Write", {"file_path": old, "content": "all\n"})),
        says("Edited."),
        says("I see."),
        says("Greet.", ("mcp__greeter__greet", {"who": "you"})),
        says("Greeted."),
        says("Stop me.", ("Write", {"file_path": stopped, "content": "x"})),
        says("Went on."),
    )
    server = {"command": sys.executable, "args": [str(GREETER)]}
    config = json.dumps({"mcpServers": {"greeter": server}})
    with Talk(claude, model.url, "--mcp-config", config, "-n", TITLE, answer=_reply) as talk:
        for prompt in ("Hello", "Do two things", "Write", "Fail", "Edit"):
            talk.ask(prompt)
        talk.ask([{"type": "text", "text": "Look"}, IMAGE])
        for prompt in ("Greet", "Stop", "Go on"):
            talk.ask(prompt)
    return talk.session


def _subagents(claude: Claude, model: MessagesServer) -> str:
    def task(name: str, *, background: bool) -> tuple[str, Mapping[str, Any]]:
        arguments = {"description": name, "prompt": f"{name}, a {AGENT_TASK}"}
        kind = {"subagent_type": "general-purpose", "run_in_background": background}
        return "Task", {**arguments, **kind}

    written = {"file_path": str(claude.project / NEW), "content": "new\n"}
    model.play(
        says("Ask.", task("first", background=False)),
        says("It did."),
        says("Ask again.", task("second", background=True)),
        says("I wait."),
        says("It came."),
        subagents=[
            says("I write.", ("Write", written), thought="So."),
            says("Written."),
            says("I run.", _bash("echo two")),
            says("Run."),
        ],
    )
    with Talk(claude, model.url) as talk:
        talk.ask("Use a subagent")
        talk.ask("Use one in the background")
        talk.until("result")
    return talk.session


def _compacted(claude: Claude, model: MessagesServer) -> str:
    model.play(
        says("One."),
        says("Two.", _bash("echo hi")),
        says("Two ends."),
        says("<summary>They said hello.</summary>"),
        says("Three."),
    )
    with Talk(claude, model.url) as talk:
        for prompt in ("Hello", "Run it", "/compact shorter", "Go on", "/cost"):
            talk.ask(prompt)
    return talk.session


def _branched(claude: Claude, model: MessagesServer) -> str:
    model.play(
        says("First."),
        says("Second.", _bash("echo hi")),
        says("Second ends."),
        says("Other second."),
        says("Other third."),
        says("A branch of the branch."),
    )

    def first_answer(talk: Talk) -> str:
        return next(str(event["uuid"]) for event in talk.events if event["type"] == "assistant")

    with Talk(claude, model.url) as talk:
        talk.ask("One")
        talk.ask("Two")
    resume = ("--resume", talk.session, "--resume-session-at")
    with Talk(claude, model.url, *resume, first_answer(talk)) as branch:
        branch.ask("Two otherwise")
        branch.ask("Three")
    with Talk(claude, model.url, *resume, first_answer(branch)) as twig:
        twig.ask("Three otherwise")
    return talk.session


def _killed(claude: Claude, model: MessagesServer) -> str:
    write = {"file_path": str(claude.project / NEW), "content": "x"}
    model.play(says("One."), says("Two.", ("Write", write)), says("After it."))

    def kill_when_stored(question: Event) -> Reply:
        path, call = claude.session_file(talk.session), question["tool_use_id"].encode()
        until(lambda: call in path.read_bytes())
        return "kill"

    with Talk(claude, model.url, answer=kill_when_stored) as talk:
        talk.ask("Hello")
        talk.send("Write it")
        with pytest.raises(EOFError):
            talk.until("result")
    with claude.session_file(talk.session).open("ab") as file:
        file.write(b'{"parentUuid":"')
    return talk.session


def _typed(claude: Claude, model: MessagesServer) -> str:
    write = {"file_path": str(claude.project / NEW), "content": "x"}
    model.play(says("One.", ("Write", write)), says("Both."), says("Two."))

    def interrupt_with_words(question: Event) -> Reply:
        talk.send("And mind the gap")
        return "allow"

    with Talk(claude, model.url, answer=interrupt_with_words) as talk:
        talk.ask("Write it")
        talk.ask("Next")
    return talk.session


CLAUDE = {
    "work": _work,
    "subagents": _subagents,
    "compacted": _compacted,
    "branched": _branched,
    "killed": _killed,
    "typed": _typed,
}


def record_claude(program: Path, folder: Path, name: str) -> None:
    """Record a session of Claude Code below a folder."""
    claude = Claude(program, folder / name).set_up()
    with MessagesServer() as model:
        session = CLAUDE[name](claude, model)
        with Talk(claude, model.url, "--resume", session) as talk:
            talk.ask(AGAIN)
        resumed = model.requests[-1]["messages"]
    _note(claude, session, resumed, model.tokens)


# --- Qwen Code -----------------------------------------------------------------------------------


def _reads(path: str) -> Part:
    return call("read_file", file_path=path)


def _shell(command: str) -> Part:
    return call("run_shell_command", command=command, is_background=False)


def _qwen_work(qwen: Qwen, model: GeminiModel) -> str:
    _files(qwen.project)
    old, crlf, bare, new, refused, stopped = (
        str(qwen.project / name) for name in (OLD, CRLF, BARE, NEW, REFUSED, STOPPED)
    )
    change = {"old_string": "two", "new_string": "2"}
    model.play(
        answer(thought("Plan", "A greeting."), text("Hi.")),
        answer(thought("Both"), text("Two."), _reads(old), _shell("echo hi; echo err >&2")),
        answer(text("Read.")),
        answer(text("No."), call("write_file", file_path=refused, content="x")),
        answer(text("Refused.")),
        answer(text("Fail."), _shell("echo out; exit 3"), _reads(old + ".none")),
        answer(text("Failed.")),
        answer(text("Create."), call("write_file", file_path=new, content="a\nb")),
        answer(text("Look first."), _reads(crlf), _reads(bare)),
        answer(call("edit", file_path=crlf, **change), call("edit", file_path=bare, **change)),
        answer(text("Overwrite."), call("write_file", file_path=old, content="all\n")),
        answer(text("Edited.")),
        answer(text("Stop me."), call("write_file", file_path=stopped, content="x")),
        answer(text("Went on.")),
    )
    with Talk(qwen, model.url, answer=_reply) as talk:
        for prompt in ("Hello", "Do two things", "Write", "Fail", "Edit", "Stop", "Go on"):
            talk.ask(prompt)
    return talk.session


def _qwen_compressed(qwen: Qwen, model: GeminiModel) -> str:
    task = {"description": "first", "prompt": f"first, a {AGENT_TASK}"}
    written = {"file_path": str(qwen.project / NEW), "content": "new\n"}
    model.play(
        answer(text("Greet."), call("mcp__greeter__greet", who="you")),
        answer(text("Greeted.")),
        answer(text("Ask."), call("agent", subagent_type="general-purpose", **task)),
        answer(text("I wait.")),
        answer(text("It came.")),
        answer(text("Long."), tokens=usage(prompt=9000)),
        answer(text("Gone on.")),
        subagents=[
            answer(text("I write."), call("write_file", **written)),
            answer(text("Written.")),
        ],
    )
    with Talk(qwen, model.url) as talk:
        for prompt in ("Greet", "Use a subagent", "A long prompt " * 4000, "/compress", "Go on"):
            talk.ask(prompt)
    return talk.session


QWEN = {"work": _qwen_work, "compressed": _qwen_compressed}
SUMMARY = answer(text("<state_snapshot>They said hello.</state_snapshot>"), tokens=usage(prompt=5))


class GeminiModel(ModelServer):
    """A model server that takes its answers from scripts, as `MessagesServer` does."""

    def __init__(self) -> None:
        super().__init__(self._turn)
        self.tokens: list[int] = []
        self.play()

    def play(self, *turns: Answer, subagents: Iterable[Answer] = ()) -> None:
        """Take the answers from these scripts."""
        self._turns, self._subagents = iter(turns), iter(subagents)

    def _turn(self, request: Request) -> Answer:
        contents = request.body["contents"]
        if "<state_snapshot>" in json.dumps(contents[-1]):
            return SUMMARY
        is_task = AGENT_TASK in json.dumps(contents[:2])
        turn = next(self._subagents if is_task else self._turns, answer(text("No more turns.")))
        last = turn.steps[-1]
        if isinstance(last, Chunk) and last.usage is not None:
            self.tokens.append(last.usage["totalTokenCount"])
        return turn


def record_qwen(program: Path, folder: Path, name: str) -> None:
    """Record a session of Qwen Code below a folder; it goes on with a call when it resumes."""
    qwen = Qwen(program, folder / name).set_up()
    qwen.use_server("greeter", sys.executable, str(GREETER))
    with GeminiModel() as model:
        session = QWEN[name](qwen, model)
        before = len(model.asked)
        model.play(answer(text("Once more."), _shell("echo more")), answer(text("Ended.")))
        with Talk(qwen, model.url, "--resume", session) as talk:
            talk.ask(AGAIN)
        resumed = model.asked[before].body["contents"]
    _note(qwen, session, resumed, model.tokens)


# --- once for a run of the tests -----------------------------------------------------------------


def _note(agent: Agent, session: str, resumed: object, tokens: Sequence[int]) -> None:
    note = {"session": session, "resumed": resumed, "tokens": tokens}
    (agent.folder / "note.json").write_text(json.dumps(note))


def recordings(
    record: Callable[[Path, Path, str], None], names: Iterable[str], program: Path, folder: Path
) -> Mapping[str, Recording]:
    """Return the recordings below a folder; the first process that asks makes all of them."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [name for name in names if not (folder / name).exists()]
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(lambda name: record(program, folder, name), missing))
    return {name: _read(Agent(program, folder / name)) for name in names}


def _read(agent: Agent) -> Recording:
    note = json.loads((agent.folder / "note.json").read_text())
    path = agent.session_file(note["session"])
    return Recording(path, agent.project, note["resumed"], note["tokens"])


@pytest.fixture(scope="session")
def claude_recordings(
    claude_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Recording]:
    """The recorded sessions of Claude Code, by name."""
    folder = _shared(tmp_path_factory) / "claude"
    return recordings(record_claude, CLAUDE, claude_program, folder)


@pytest.fixture(scope="session")
def qwen_recordings(
    qwen_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Recording]:
    """The recorded sessions of Qwen Code, by name."""
    return recordings(record_qwen, QWEN, qwen_program, _shared(tmp_path_factory) / "qwen")


def _shared(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of a run of the tests have in common."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
