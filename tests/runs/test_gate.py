"""The gate of a run, asked at its socket as hooks ask."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

import gemtui.extension
from gemtui.agent import approval
from gemtui.agent.approval import (
    ALTERED,
    DIFFERS,
    MOVED,
    PASSED,
    STOLEN,
    TAMPERED,
    UNGATED,
    Approval,
    ApprovalRequest,
    GateFolder,
    HookedCall,
)
from gemtui.agent.command import GATE
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import Owner, Request, RunFolder
from gemtui.calls.effect import SHELL
from gemtui.extension.content import NAME, write
from gemtui.paths import extension_dir, gemini_home
from gemtui.policy.engine.decide import decide
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Call, Decision
from gemtui.runs.gate.gate import (
    ANSWERER_GONE,
    CHANGED,
    LED,
    NOBODY,
    RACES,
    TROUBLE,
    UNANSWERED,
)
from gemtui.runs.gate.gemini_gate import NESTED, GeminiGate
from gemtui.runs.gate.questions import Conversation
from gemtui.runs.gate.user_commands import UserCommands
from gemtui.runs.gate.verification import PutBackError, restore_former
from gemtui.transcript.model import Consent
from gemtui.transcript.seal import PROPERTY, sealed, unsealed
from tests.patience import PATIENCE, until
from tests.rows import table

TABLES = table("runs/gate.json")

Hook = Callable[..., dict[str, Any] | None]


class Asker:
    """A run's gate, its hooks and its person."""

    def __init__(
        self,
        place: Path,
        policy: str = "",
        away: str = "wait",
        commands: UserCommands | None = None,
        project: Path | None = None,
        answerer: dict[str, Any] | None = None,
    ) -> None:
        self.project = project or place / "project"
        self.project.mkdir()
        self.folder = RunFolder.create(place / "runs", "run")
        self.now = 1_000.0
        words = ["gemini", f"--policy={self.folder.path / GATE}"]
        if policy:
            words.append(f"--policy={self.folder.write('mine.toml', policy)}")
        request = Request(
            id="run",
            argv=tuple(words),
            cwd=str(self.project),
            environ={},
            about={
                "ask": True,
                "approval_mode": "default",
                "away": away,
                **({} if answerer is None else {"answerer": answerer}),
            },
        )
        self.folder.write_request(request)
        if commands is not None:
            commands.keep(self.folder)
        self.files = GateFolder.of(self.folder)
        self.may_prompt = True
        self.gate = GeminiGate(
            self.folder, request, clock=lambda: self.now, may_prompt=lambda: self.may_prompt
        )
        self.socket = Path(self.gate.open(place)["GEMTUI_GATE"])
        self.pool = ThreadPoolExecutor(200)

    def lives(self) -> None:
        """Let the run look like one that goes on, to whoever reads its folder."""
        own = psutil.Process()
        self.folder.write_owner(Owner(pid=own.pid, began=own.create_time()))
        self.folder.stdout.touch()

    def connect(self, sent: bytes) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(str(self.socket))
        connection.sendall(sent)
        return connection

    def hook(self, event: str, **more: Any) -> dict[str, Any] | None:
        """What a hook gets to print; None = nothing, so that it refuses."""
        told = {"hook_event_name": event, "session_id": "s1", **more}
        line = json.dumps({"event": told}).encode()
        with self.connect(line + b"\n") as connection:
            said = connection.makefile("rb").readline()
        return json.loads(said) if said else None

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        """What the hook of a call gets to print, where it gets an answer."""
        answer = self.hook("BeforeTool", tool_name=tool, tool_input=given)
        assert answer is not None
        return answer

    def later(self, tool: str, **given: Any) -> Future[dict[str, Any] | None]:
        return self.pool.submit(self.hook, "BeforeTool", tool_name=tool, tool_input=given)

    def asks(self, number: int, tool: str, **given: Any) -> Future[dict[str, Any] | None]:
        """A call whose question waits for an answer."""
        hook = self.later(tool, **given)
        self.question(number)
        return hook

    def answered(self, number: int, approval: Approval, tool: str, **given: Any) -> dict[str, Any]:
        """What the hook of a call gets to print once its question has this answer."""
        hook = self.asks(number, tool, **given)
        self.files.answer(number, approval)
        answer = hook.result()
        assert answer is not None
        return answer

    def question(self, number: int) -> ApprovalRequest:
        found = until(lambda: self.files.question(number))
        assert isinstance(found, ApprovalRequest)
        return found

    def says(self, line: dict[str, Any]) -> None:
        with self.folder.stdout.open("ab") as out:
            out.write(json.dumps(line).encode() + b"\n")

    def uses(self, id: str, tool: str, **given: Any) -> None:
        """The stream tells of a call."""
        self.says({"type": "tool_use", "tool_name": tool, "tool_id": id, "parameters": given})

    def ends(self, id: str, status: str = "success") -> None:
        self.says({"type": "tool_result", "tool_id": id, "status": status})

    def close(self) -> None:
        self.gate.close()
        self.pool.shutdown()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Asker]]:
    made: list[Asker] = []

    def one(policy: str = "", away: str = "wait") -> Asker:
        made.append(Asker(tmp_path, policy, away))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture
def asker(make: Callable[..., Asker]) -> Asker:
    return make()


def through(answer: dict[str, Any] | None) -> Any:
    """The arguments with which a call is made."""
    assert answer is not None
    given = answer["hookSpecificOutput"]["tool_input"]
    assert given != unsealed(given)
    return unsealed(given)


def denied(reason: str) -> dict[str, Any]:
    return {"decision": "deny", "reason": reason}


def named(answer: dict[str, Any] | None) -> str:
    """The name of the file that a call is made with."""
    return Path(through(answer)["file_path"]).name


DENY_TOUCH = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch"
decision = "deny"
priority = 5
denyMessage = "No touching."

[[rule]]
toolName = "write_file"
decision = "allow"
interactive = true
priority = 5
"""


MAKES = '[[rule]]\ntoolName = "write_file"\ndecision = "allow"\npriority = 999\n'


ALL_MAKES = Approval.allow(
    rules=(
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "make"\ndecision = '
        '"allow"\npriority = 100\n'
    )
)
SAID_NO = denied("The user said no.")


def test_what_needs_no_question_is_not_asked(make: Callable[..., Asker]) -> None:
    asker = make(DENY_TOUCH)
    assert asker.call("list_directory", dir_path=".") == {}
    assert through(asker.call("write_file", file_path="a.txt", content="")) == {
        "file_path": str(asker.project / "a.txt"),
        "content": "",
    }
    assert through(asker.call("run_shell_command", command="ls")) == {"command": "ls"}
    refused = asker.call("run_shell_command", command="touch a")
    assert refused == denied("Tool execution denied by policy. No touching.")
    refused = asker.call("run_shell_command", command="echo $(id)")
    assert "substitution" in refused["reason"]
    assert asker.files.question_numbers() == []


def test_nobody_is_asked_in_vain(make: Callable[..., Asker]) -> None:
    asker = make(MAKES)
    refused = asker.call("write_file", file_path="sub/Makefile", content="")
    assert "shell command" in refused["reason"]
    assert asker.files.question_numbers() == []
    asker.later("run_shell_command", command="echo x > Makefile")
    assert asker.question(1).tool_name == "run_shell_command"


def test_nobody_s_yes_leaves_plan_mode_for_one_without_questions(asker: Asker) -> None:
    """The CLI leaves it for yolo, where no mark is needed; so it is not entered either."""
    refused = asker.call("exit_plan_mode", plan_filename="plan.md")
    assert "asks about nothing" in refused["reason"]
    refused = asker.call("enter_plan_mode", reason="to think")
    assert "plan mode" in refused["reason"]
    assert asker.files.question_numbers() == []


def test_a_mark_from_another_run_is_taken_away(asker: Asker) -> None:
    """The model reads it in the history of a session that is resumed."""
    answer = asker.call("list_directory", **{"dir_path": ".", PROPERTY: "gemtui-" + "0" * 32})
    assert answer["hookSpecificOutput"]["tool_input"] == {"dir_path": "."}
    given = {"file_path": "a", "content": "", PROPERTY: "gemtui-" + "0" * 32}
    asker.uses("7", "write_file", **given)
    asker.later("write_file", **given)
    assert asker.question(1).tool_use_id == "7"


def test_a_gemini_that_a_command_starts_asks_about_the_files_that_it_means(asker: Asker) -> None:
    asker.hook("SessionStart")
    sub = asker.project / "sub"
    sub.mkdir()

    def nested(tool: str, cwd: Path, **given: Any) -> Any:
        more = {"session_id": "s2", "cwd": str(cwd), "tool_name": tool, "tool_input": given}
        return asker.pool.submit(lambda: asker.hook("BeforeTool", **more))

    nested("write_file", sub, file_path="a", content="1")
    asked = asker.question(1)
    assert asked.arguments["file_path"] == f"{sub}/a"
    assert NESTED in asked.because
    nested("run_shell_command", sub, command="make")
    assert asker.question(2).arguments["dir_path"] == str(sub)
    (asker.project / "@b.txt").write_text("")
    nested("write_file", sub, file_path="@b.txt", content="1")
    effect = asker.question(3).effect
    assert effect is not None
    assert effect.path == f"{sub}/b.txt"
    refused = nested("write_file", asker.project.parent, file_path="a", content="1").result()
    assert refused["decision"] == "deny"
    assert asker.files.question_numbers() == [1, 2, 3]


def test_an_answer_is_what_the_hook_says(asker: Asker) -> None:
    yes = asker.asks(1, "write_file", file_path="a", content="1")
    assert asker.gate.waiting
    asker.files.answer(1, Approval.allow())
    assert named(yes.result()) == "a"
    until(lambda: not asker.gate.waiting)
    no = asker.asks(2, "write_file", file_path="b", content="1")
    asker.files.answer(2, Approval.deny("use c"))
    assert no.result() == denied("The user said no: use c")
    answer = asker.answered(3, Approval.stop(), "write_file", file_path="c", content="1")
    assert answer["continue"] is False
    assert asker.gate.stopped


@pytest.mark.parametrize(
    ("named", "real"), TABLES["a path is pinned to the file that the cli would write"]
)
def test_a_path_is_pinned_to_the_file_that_the_cli_would_write(
    asker: Asker, named: str, real: str
) -> None:
    answer = asker.later("write_file", file_path=named, content="1")
    asked = asker.question(1)
    assert asked.requested["file_path"] == named
    assert asked.effect is not None
    assert asked.arguments == asked.effect.arguments
    assert asked.arguments["file_path"] == str(asker.project / real)
    assert asked.effect.path == str(asker.project / real.replace("%25", "%"))
    asker.files.answer(1, Approval.allow(asked.arguments))
    assert through(answer.result())["file_path"] == str(asker.project / real)
    settled = asker.files.settled(1)
    assert settled is not None
    assert settled.consent is Consent.ALLOWED


def test_a_call_that_carries_the_run_s_own_token_ends_the_run(asker: Asker) -> None:
    """Only a program that has read the token can have told it to the model."""
    asker.asks(1, "write_file", file_path="a", content="1")
    let = asker.call("write_file", file_path="b", content="1", **{PROPERTY: asker.gate._seal})
    assert let == denied(STOLEN)
    assert asker.gate.problem() == STOLEN


def test_a_token_in_what_the_model_says_ends_the_run_before_any_hook(asker: Asker) -> None:
    asker.uses("7", SHELL, command="id", dir_path=f"{asker.gate._seal}/../.")
    assert asker.gate.problem() == STOLEN


@pytest.mark.parametrize(
    "name", ["hook.sh", "ask.py", "hooks/hooks.json", "gemini-extension.json", "the link"]
)
@pytest.mark.parametrize("way", ["written", "gone", "replaced"])
def test_a_changed_extension_ends_the_run_and_lets_nothing_through(
    tmp_path: Path, home: Path, name: str, way: str
) -> None:
    write()
    link = gemini_home() / "extensions" / NAME / ".gemini-extension-install.json"
    link.parent.mkdir(parents=True)
    link.write_text(json.dumps({"type": "link", "source": str(extension_dir())}))
    asker = Asker(tmp_path)
    waiting = asker.asks(1, "write_file", file_path="a", content="1")
    write()  # the same again
    assert asker.gate.problem() is None
    place = link if name == "the link" else extension_dir() / name
    data = place.read_bytes()
    if way == "written":
        place.write_bytes(data + b" ")
    else:
        place.unlink()
    if way == "replaced":
        place.write_bytes(b"x" * len(data))
    asker.files.answer(1, Approval.allow())
    assert waiting.result() == denied(TAMPERED)
    assert asker.call("list_directory", dir_path=".") == denied(TAMPERED)
    ended = {"continue": False, "stopReason": TAMPERED}
    assert asker.hook("AfterTool", tool_name="glob", tool_input={}) == ended, (
        "before the model's next turn"
    )
    assert asker.gate.problem() == TAMPERED
    asker.close()


def test_an_answer_is_tied_to_the_names_and_the_rights_of_a_file(asker: Asker) -> None:
    place = asker.project / "a.py"
    place.write_text("1")
    answer = asker.later("write_file", file_path="a.py", content="2")
    changes: list[Callable[[], object]] = [
        lambda: (asker.project / "b.py").hardlink_to(place),
        lambda: place.chmod(0o755),
        (asker.project / "b.py").unlink,
    ]
    for number, change in enumerate(changes, start=1):
        asker.question(number)
        change()
        asker.files.answer(number, Approval.allow())
    last = asker.question(4)
    assert last.because == CHANGED
    assert last.effect is not None
    assert (last.effect.names, last.effect.executable) == (1, True)
    asker.files.answer(4, Approval.allow())
    assert named(answer.result()) == "a.py"


def test_an_answer_is_tied_to_the_other_names_of_a_file(asker: Asker) -> None:
    """Their number and the text stay the same."""
    place, other = asker.project / "a.py", asker.project / "other"
    for file in (place, other):
        file.write_text("1")
        file.with_name(f"{file.name}-2").hardlink_to(file)
    answer = asker.later("write_file", file_path="a.py", content="2")
    asker.question(1)
    other.replace(place)
    asker.files.answer(1, Approval.allow())
    assert asker.question(2).because == CHANGED
    asker.files.answer(2, Approval.allow())
    assert named(answer.result()) == "a.py"


def test_what_is_allowed_for_a_file_does_not_cover_its_other_names(asker: Asker) -> None:
    """They were made after the answer, so nobody was shown them."""
    place = asker.project / "a.py"
    place.write_text("1")
    first = asker.later("write_file", file_path="a.py", content="2")
    talk = Conversation(asker.files, asker.project)
    asker.question(1)
    assert talk.allow_similar(talk.asked(talk.refresh()[0]))
    first.result()
    done = {"tool_name": "write_file", "tool_input": through(first.result()), "tool_response": {}}
    place.write_text("2")
    asker.hook("AfterTool", **done)
    assert named(asker.call("write_file", file_path="a.py", content="2")) == "a.py"
    asker.hook("AfterTool", **done)
    (asker.project / "b.py").hardlink_to(place)
    asker.later("write_file", file_path="a.py", content="3")
    assert asker.question(2).effect is not None
    asked = talk.asked(talk.refresh()[1])
    assert not asked.has_similar
    assert "it has 2 names (hard links): the others change as well" in asked.runs.remarks


def test_a_call_that_would_fail_is_refused_with_the_reason(asker: Asker) -> None:
    refused = asker.call("replace", file_path="a.py", old_string="1", new_string="2")
    assert refused["reason"] == "The tool would fail: the file to edit does not exist."
    assert asker.files.question_numbers() == []


def test_denies_hold_for_what_a_person_wrote(make: Callable[..., Asker]) -> None:
    asker = make(DENY_TOUCH)
    refused = asker.answered(
        1, Approval.allow({"command": "touch x"}), "run_shell_command", command="make x"
    )
    assert "No touching." in refused["reason"]
    settled = asker.files.settled(1)
    assert settled is not None
    assert (settled.consent, settled.arguments) == (Consent.DENIED, {"command": "touch x"})


FOR_AGENTS = """
[[rule]]
toolName = ["write_file", "run_shell_command"]
subagent = "generalist"
decision = "deny"
priority = 5

[[rule]]
toolName = "read_file"
subagent = "generalist"
decision = "allow"
priority = 6
"""


def test_denies_for_a_sub_agent_hold_while_it_works(make: Callable[..., Asker]) -> None:
    asker = make(FOR_AGENTS)
    asker.uses("1", "invoke_agent", agent_name="generalist")
    assert asker.call("invoke_agent", agent_name="generalist") == {}
    refused = asker.call("write_file", file_path="a", content="1")
    assert refused["reason"] == "Tool execution denied by policy."
    changed = asker.later("web_fetch", prompt="https://example.org")
    assert asker.question(1).subagent
    asker.files.answer(1, Approval.deny())
    assert changed.result()
    asker.ends("1")
    asker.later("write_file", file_path="b", content="1")
    assert asker.question(2).tool_name == "write_file"


@pytest.mark.parametrize(
    ("tool", "given"), [("write_file", {"file_path": "a"}), ("run_shell_command", {"command": "x"})]
)
def test_denies_for_a_sub_agent_stand_above_the_seal(
    make: Callable[..., Asker], tool: str, given: dict[str, Any]
) -> None:
    """The CLI knows for certain who makes a call."""
    text = (make(FOR_AGENTS).folder.path / GATE).read_text()
    seal = re.search("gemtui-[0-9a-f]{32}", text)
    assert seal is not None
    rules = Policy.parse(text) + Policy.parse(FOR_AGENTS)
    marked = sealed(tool, given, seal[0])
    assert decide(rules, Call(tool, marked)).decision is Decision.ALLOW
    assert decide(rules, Call(tool, marked, "generalist")).decision is Decision.DENY
    assert decide(rules, Call("read_file", {}, "generalist")).decision is Decision.ALLOW


def test_what_is_too_large_to_be_shown_is_refused(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval, "LARGEST", 100_000)
    refused = asker.call("write_file", file_path="a", content="x" * 100_000)
    assert refused == denied(f"{TROUBLE}: File too large")
    assert asker.files.question_numbers() == []


def test_like_this_is_asked_once_until_that_is_taken_back(asker: Asker) -> None:
    asker.answered(1, ALL_MAKES, "run_shell_command", command="make all")
    assert through(asker.call("run_shell_command", command="make test")) == {"command": "make test"}
    asker.files.revoke(1)
    assert asker.answered(2, Approval.deny(), "run_shell_command", command="make test") == SAID_NO


def test_like_this_is_an_answer_to_what_waits_already(asker: Asker) -> None:
    first = asker.asks(1, "run_shell_command", command="make all")
    like = asker.later("run_shell_command", command="make test")
    asker.question(2)
    other = asker.asks(3, "run_shell_command", command="make x && rm -rf x")
    asker.files.answer(1, ALL_MAKES)
    assert through(first.result()) == {"command": "make all"}
    assert through(like.result()) == {"command": "make test"}
    assert asker.files.waiting() == [3]
    asker.files.answer(3, Approval.deny())
    assert other.result() == SAID_NO


def test_like_this_is_not_what_does_more(asker: Asker) -> None:
    asker.answered(1, ALL_MAKES, "run_shell_command", command="make all")
    other = asker.answered(2, Approval.deny(), "run_shell_command", command="make test && rm -rf x")
    assert other == SAID_NO


def test_the_seal_that_lets_through_is_in_no_file_once_the_session_began(asker: Asker) -> None:
    rules = (asker.folder.path / GATE).read_text()
    assert PROPERTY in rules
    assert asker.hook("SessionStart", source="startup") == {}
    assert not (asker.folder.path / GATE).exists()
    made = asker.answered(
        1,
        Approval.allow({"file_path": "a", "content": "b"}),
        "write_file",
        file_path="a",
        content="",
    )
    seal = made["hookSpecificOutput"]["tool_input"][PROPERTY]
    assert seal in rules
    files = [path for path in asker.folder.path.rglob("*") if path.is_file()]
    assert not any(seal.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    "given",
    [
        {"file_path": "a\x1b]0;title\x07", "content": "\x00\x9b31m\u202e"},
        {"file_path": "\ud800", "content": "half \udfff"},
        {"file_path": "a", "content": "é" * 1_500_000},
        {"deep": {"deep": [[[1.5, None, True, 10**30]]]}, "content": -0.0},
        {PROPERTY: "gemtui-" + "0" * 32, "file_path": "a"},
    ],
    ids=["escapes", "surrogates", "3 MB", "shapes", "forged"],
)
def test_hostile_arguments_come_through_as_they_are(asker: Asker, given: dict[str, Any]) -> None:
    answer = asker.later("save_memory", **given)
    assert asker.question(1).arguments == unsealed(given)
    asker.files.answer(1, Approval.allow())
    assert through(answer.result()) == unsealed(given)


@pytest.mark.parametrize(
    "sent",
    [
        b"\n",
        b"{\n",
        b"[]\n",
        b'{"event": 1}\n',
        b'{"event": {"hook_event_name": "BeforeTool"}}\xff\n',
        b'{"event": ' + b"[" * 100_000 + b"\n",
    ],
    ids=["nothing", "torn", "list", "number", "no text", "deep"],
)
def test_what_is_no_question_gets_no_answer(asker: Asker, sent: bytes) -> None:
    with asker.connect(sent) as connection:
        assert connection.makefile("rb").read() == b""


def test_a_call_that_can_t_be_read_is_refused(asker: Asker) -> None:
    calls: tuple[dict[str, Any], ...] = (
        {"tool_name": "write_file", "tool_input": []},
        {"tool_input": {}},
        {},
    )
    for given in calls:
        refused = asker.hook("BeforeTool", **given)
        assert refused == denied(TROUBLE)


def test_a_question_that_can_t_be_written_is_refused(asker: Asker) -> None:
    asker.files.path.rmdir()
    asker.files.path.touch()
    refused = asker.call("write_file", file_path="a", content="")
    assert refused == denied(f"{TROUBLE}: Not a directory")
    asker.files.path.unlink()


def test_an_answer_that_can_t_be_read_refuses(asker: Asker) -> None:
    answer = asker.asks(1, "write_file", file_path="a", content="")
    (asker.files.path / "answer-1.json").write_text('{"consent": "allowed", "arguments": 5}')
    assert answer.result() == denied("The user said no: the answer could not be read")


def test_an_answer_that_was_there_before_its_question_refuses(asker: Asker) -> None:
    """No person wrote it: a tool that may write files can guess the name of its file."""
    asker.files.answer(1, Approval.allow())
    refused = asker.call("write_file", file_path="a", content="1")
    assert refused["decision"] == "deny"
    answer = asker.answered(2, Approval.allow(), "write_file", file_path="a", content="1")
    assert named(answer) == "a"


def test_a_folder_for_temporary_files_may_have_a_long_name(tmp_path: Path) -> None:
    (place := tmp_path / ("long" * 40)).mkdir()
    asker = Asker(place)
    ask = Path(gemtui.extension.__path__[0], "files", "ask.py")
    event = {"hook_event_name": "BeforeTool", "tool_name": "read_file", "tool_input": {}}
    said = subprocess.run(
        [sys.executable, "-I", "-S", ask, tmp_path, "1"],
        input=json.dumps(event).encode(),
        env={"GEMTUI_GATE": str(asker.socket)},
        capture_output=True,
        check=True,
    )
    assert json.loads(said.stdout) == {}
    asker.close()


def test_the_end_of_the_hook_ends_its_question(asker: Asker) -> None:
    event = {"hook_event_name": "BeforeTool", "tool_name": "web_fetch", "tool_input": {}}
    connection = asker.connect(json.dumps({"event": event}).encode() + b"\n")
    asker.question(1)
    connection.close()
    settled = until(lambda: asker.files.settled(1))
    assert settled.consent is Consent.ABANDONED
    assert asker.files.answer(1, Approval.allow())
    until(lambda: not asker.gate.waiting)


def test_the_end_of_the_run_ends_all_questions(asker: Asker) -> None:
    answers = [asker.later("write_file", file_path=name, content="") for name in "abc"]
    asker.question(3)
    asker.gate.close()
    assert [each.result() for each in answers] == [None] * 3
    fates = [settled and settled.consent for settled in map(asker.files.settled, (1, 2, 3))]
    assert fates == [Consent.ABANDONED] * 3


def test_a_hundred_at_once_each_get_their_own_answer(asker: Asker) -> None:
    answers = {n: asker.later("write_file", file_path=str(n), content="") for n in range(100)}
    for number in range(1, 101):
        path = asker.question(number).requested["file_path"]
        yes = int(path) % 3 != 0
        asker.files.answer(number, Approval.allow() if yes else Approval.deny(path))
    for n, answer in answers.items():
        said = answer.result()
        if n % 3:
            assert named(said) == str(n)
        else:
            assert said == denied(f"The user said no: {n}")


def test_a_question_that_nobody_answers_for_a_day_ends_the_run(asker: Asker) -> None:
    answer = asker.asks(1, "write_file", file_path="a", content="")

    def is_denied_a_day_later() -> bool:
        asker.now += 24 * 3600 + 1
        return answer.done()

    until(is_denied_a_day_later)
    assert answer.result() == denied(f"The user said no: {UNANSWERED}")
    assert asker.gate.problem() == UNANSWERED


@pytest.mark.parametrize("lives", [True, False])
def test_a_run_whose_only_answerer_is_gone_is_ended(tmp_path: Path, lives: bool) -> None:
    own = psutil.Process()
    process = {"pid": own.pid, "began": own.create_time() - (0 if lives else 1000)}
    asker = Asker(tmp_path, answerer=process)
    answer = asker.asks(1, "write_file", file_path="a", content="")
    if lives:
        asker.files.answer(1, Approval.allow())
        assert named(answer.result()) == "a"
    else:
        assert answer.result() == denied(f"The user said no: {ANSWERER_GONE}")
    assert asker.gate.problem() == (None if lives else ANSWERER_GONE)
    asker.close()


def test_a_slow_person_is_waited_for(asker: Asker) -> None:
    answer = asker.asks(1, "write_file", file_path="a", content="")
    asker.now += 24 * 3600
    asker.files.answer(1, Approval.allow())
    assert named(answer.result()) == "a"


def test_who_goes_may_have_all_refused(make: Callable[..., Asker]) -> None:
    asker = make(away="refuse")
    asker.now = time.time()
    asker.files.here()
    answer = asker.asks(1, "write_file", file_path="a", content="")
    assert not answer.done()
    asker.now += 3600
    assert answer.result() == denied(f"The user said no: {NOBODY}")


def test_a_yes_is_for_where_the_path_led_then(asker: Asker) -> None:
    (asker.project / "docs").mkdir()
    (asker.project / "other").mkdir()
    (asker.project / "link").symlink_to("docs")
    answer = asker.asks(1, "write_file", file_path="link/a", content="1")
    (asker.project / "link").unlink()
    (asker.project / "link").symlink_to("other")
    asker.files.answer(1, Approval.allow())
    again = asker.question(2)
    assert (again.because, again.again) == (LED, 1)
    settled = asker.files.settled(1)
    assert settled is not None
    assert (settled.consent, settled.again) == (Consent.ABANDONED, 2)
    (asker.project / "link").unlink()
    (asker.project / "link").symlink_to("/etc")
    asker.files.answer(2, Approval.allow())
    refused = answer.result()
    assert refused is not None
    assert refused["decision"] == "deny"


def test_a_yes_to_a_file_that_has_changed_is_asked_again(asker: Asker) -> None:
    (place := asker.project / "a").write_text("old\n")
    answer = asker.later("replace", file_path="a", old_string="old", new_string="new")
    first = asker.question(1).effect
    assert first is not None
    place.write_text("old and more\n")
    asker.files.answer(1, Approval.allow(shown=first.mark))
    again = asker.question(2)
    assert again.because == CHANGED
    assert again.effect is not None
    assert again.effect.after == "new and more\n"
    asker.files.answer(2, Approval.allow(shown=first.mark))
    asker.question(3)
    asker.files.answer(3, Approval.allow())
    assert named(answer.result()) == "a"


def test_a_loose_edit_is_made_exact(asker: Asker) -> None:
    (asker.project / "a.py").write_text("def f():\n    return 1\n")
    answer = asker.answered(
        1,
        Approval.allow(),
        "replace",
        file_path="a.py",
        old_string="return  1",
        new_string="return 2",
    )
    assert "    return 1" in through(answer)["old_string"]


def test_an_own_text_that_can_t_be_written_is_refused(asker: Asker) -> None:
    asker.says({"type": "init", "session_id": "s1", "model": "gemini-flash-latest"})
    answer = asker.later("write_file", file_path="a.py", content="# one\\nline")
    asked = asker.question(1).effect
    assert asked is not None
    assert asked.after == "# one\nline"
    asker.files.answer(1, Approval.allow({"file_path": "a.py", "content": "# my\\nline"}))
    refused = answer.result()
    assert refused is not None
    assert "choose another model" in refused["reason"]


def written(asker: Asker, number: int, path: str, content: str) -> dict[str, Any]:
    """The arguments with which an approved write is made."""
    told = asker.answered(number, Approval.allow(), "write_file", file_path=path, content=content)
    made: dict[str, Any] = told["hookSpecificOutput"]["tool_input"]
    return made


def test_a_second_write_of_a_file_waits_for_the_result_of_the_first(asker: Asker) -> None:
    asker.hook("SessionStart")
    made = written(asker, 1, "a", "1")
    refused = asker.call("write_file", file_path="./a", content="2")
    assert refused == denied(RACES)
    (asker.project / "a").write_text("1")
    assert asker.hook("AfterTool", tool_name="write_file", tool_input=made) == {}
    assert asker.gate.problem() is None
    written(asker, 2, "a", "2")


def test_a_file_that_is_not_as_approved_ends_the_run_and_can_be_put_back(asker: Asker) -> None:
    asker.hook("SessionStart")
    (place := asker.project / "a").write_text("old")
    made = written(asker, 1, "a", "new")
    place.write_text("evil")
    stopped = asker.hook("AfterTool", tool_name="write_file", tool_input=made, tool_response={})
    assert stopped == {"continue": False, "stopReason": DIFFERS}
    assert asker.gate.problem() == DIFFERS
    (found,) = asker.files.differences()
    assert (found.path, found.approved, found.found, found.former) == (
        str(place),
        "new",
        "evil",
        "old",
    )
    assert oct((asker.files.path / "before-1").stat().st_mode & 0o777) == "0o600"
    place.write_text("mine")
    with pytest.raises(PutBackError, match="changed since"):
        restore_former(asker.files, 1)
    place.write_text("evil")
    assert restore_former(asker.files, 1) == place
    assert place.read_text() == "old"


@pytest.mark.parametrize("response", [{}, {"error": {"message": "no"}}])
def test_a_file_behind_a_new_link_or_written_despite_an_error_ends_the_run(
    asker: Asker, response: dict[str, Any]
) -> None:
    asker.hook("SessionStart")
    (place := asker.project / "a").write_text("old")
    made = written(asker, 1, "a", "new")
    (asker.project / "b").write_text("new")
    place.unlink()
    if response:
        place.write_text("new")
    else:
        place.symlink_to("b")
    asker.hook("AfterTool", tool_name="write_file", tool_input=made, tool_response=response)
    assert asker.gate.problem() == DIFFERS


@pytest.mark.parametrize("beside", ["write_file", "run_shell_command"])
def test_only_a_command_that_runs_beside_a_write_may_change_its_file(
    asker: Asker, beside: str
) -> None:
    """A difference that such a command may have made is told, and ends no run."""
    asker.hook("SessionStart")
    made = written(asker, 1, "a", "new")
    if beside == "write_file":
        written(asker, 2, "b", "other")
    else:
        command = asker.later("run_shell_command", command="echo x >> a")
        asker.question(2)
        asker.files.answer(2, Approval.allow())
        assert command.result()
    (asker.project / "a").write_text("evil")
    shown = {"filePath": str(asker.project / "a"), "newContent": "new"}
    more = {"tool_input": made, "tool_response": {"returnDisplay": shown}}
    asker.hook("AfterTool", tool_name="write_file", **more)
    assert asker.gate.problem() == (DIFFERS if beside == "write_file" else None)
    assert [each.found for each in asker.files.differences()] == ["evil"]


@pytest.mark.parametrize(
    ("text", "told", "right"), TABLES["a write whose result no hook told of is compared"]
)
def test_a_write_whose_result_no_hook_told_of_is_compared(
    asker: Asker, text: str | None, told: str, right: bool
) -> None:
    asker.hook("SessionStart")
    asker.uses("1", "write_file", file_path="a", content="1")
    made = written(asker, 1, "a", "1")
    if text is not None:
        (asker.project / "a").write_text(text)
    if told == "error":
        response = {"error": {"message": "no room"}}
        more = {"tool_input": made, "tool_response": response}
        asker.hook("AfterTool", tool_name="write_file", **more)
    elif told == "result":
        asker.ends("1")
    else:
        asker.gate.close()
    assert asker.gate.problem() == (None if right else DIFFERS)


def test_a_call_that_a_granted_rule_lets_pass_says_so(asker: Asker) -> None:
    asker.answered(1, ALL_MAKES, "run_shell_command", command="make all")
    assert asker.call("run_shell_command", command="make test")
    (passed,) = asker.files.passed_calls().values()
    assert (passed.arguments, passed.answer) == ({"command": "make test"}, 1)


def test_a_question_of_a_server_names_its_origin(asker: Asker) -> None:
    server = {"server_name": "things", "command": "node", "args": ["my server.js"]}
    given = {"tool_name": "mcp_things_make", "tool_input": {"path": "a"}}
    asker.pool.submit(lambda: asker.hook("BeforeTool", mcp_context=server, **given))
    asked = asker.question(1)
    assert (asked.server, asked.origin) == ("things", "node 'my server.js'")


def test_a_tool_of_a_server_gets_what_was_allowed_whatever_other_hooks_say(asker: Asker) -> None:
    told = asker.answered(1, Approval.allow(), "mcp_things_make", path="a")
    assert told["hookSpecificOutput"]["tool_input"] == {"path": "a"}


def test_an_answer_that_is_no_json_to_the_cli_refuses(asker: Asker) -> None:
    """It would take such an answer for words, and make the call as it was."""
    answer = asker.asks(1, "mcp_things_make", count=1)
    with pytest.raises(ValueError):
        asker.files.answer(1, Approval.allow({"count": float("inf")}))
    given = '{"consent": "allowed", "arguments": {"count": 1e999}}'
    (asker.files.path / "answer-1.json").write_text(given)
    assert answer.result() == denied(TROUBLE)


@pytest.mark.parametrize(("tool", "given"), TABLES["what ran is what was allowed or the run ends"])
def test_what_ran_is_what_was_allowed_or_the_run_ends(
    asker: Asker, tool: str, given: dict[str, Any]
) -> None:
    asker.hook("SessionStart")
    told = asker.answered(1, Approval.allow(), tool, **given)
    made = told["hookSpecificOutput"]["tool_input"]
    other = asker.answered(2, Approval.allow(), tool, **given)
    assert other == told
    asker.hook("AfterTool", tool_name=tool, tool_input=made)
    assert asker.gate.problem() is None
    asker.hook("AfterTool", tool_name=tool, tool_input=made | {"path": "b"})
    assert asker.gate.problem() == ALTERED


def test_a_command_s_folder_may_begin_with_two_slashes(asker: Asker) -> None:
    given = {"command": "make", "dir_path": f"/{asker.project}"}
    told = asker.answered(1, Approval.allow(), "run_shell_command", **given)
    made = told["hookSpecificOutput"]["tool_input"]
    asker.hook("AfterTool", tool_name="run_shell_command", tool_input=made)
    assert asker.gate.problem() is None


def test_a_result_of_a_server_that_was_never_asked_about_ends_the_run(asker: Asker) -> None:
    asker.hook("SessionStart")
    asker.hook("AfterTool", tool_name="read_file", tool_input={"file_path": "a"})
    assert asker.gate.problem() is None
    asker.hook("AfterTool", tool_name="mcp_things_make", tool_input={"path": "a"})
    assert asker.gate.problem() == PASSED


def test_a_run_whose_folder_is_gone_is_ended(asker: Asker) -> None:
    """No hook can be started any more: they start there."""
    asker.hook("SessionStart")
    assert asker.gate.problem() is None
    asker.project.rename(asker.project.with_name("elsewhere"))
    assert asker.gate.problem() == MOVED
    asker.project.touch()
    assert asker.gate.problem() == MOVED


def test_words_come_with_the_next_result_of_the_main_agent(asker: Asker) -> None:
    queue = PromptQueue.of(asker.folder)
    asker.hook("SessionStart")
    asker.hook("SessionStart", session_id="started by a command")
    assert asker.hook("AfterTool", tool_name="glob") == {}
    word = queue.send_message("use the other one")
    asker.uses("5", "invoke_agent", agent_name="x")
    assert asker.call("invoke_agent", agent_name="x") == {}
    assert asker.hook("AfterTool", tool_name="glob") == {}
    told = asker.hook("AfterTool", tool_name="invoke_agent")
    assert told is not None
    assert "use the other one" in told["hookSpecificOutput"]["additionalContext"]
    delivered = queue.delivery(word)
    assert delivered is not None
    assert (delivered.tool_name, delivered.tool_use_id) == ("invoke_agent", "5")
    assert asker.hook("AfterTool", tool_name="invoke_agent") == {}


def test_the_next_prompt_is_sent_when_a_turn_has_ended(asker: Asker) -> None:
    queue = PromptQueue.of(asker.folder)
    asker.hook("SessionStart")
    queue.add_prompt("and then?")
    assert asker.hook("AfterAgent", session_id="started by a command") == {}
    assert asker.hook("AfterAgent") == denied("and then?")
    assert [each.text for each in queue.sent()] == ["and then?"]
    assert asker.hook("AfterAgent") == {}


def test_a_process_gets_three_more_prompts(asker: Asker) -> None:
    queue = PromptQueue.of(asker.folder)
    for number in range(5):
        queue.add_prompt(f"prompt {number}")
    handed_on = [asker.hook("AfterAgent") for _ in range(5)]
    assert handed_on == [*(denied(f"prompt {number}") for number in range(3)), {}, {}]
    assert [each.text for each in queue.prompts()] == ["prompt 3", "prompt 4"]


@pytest.mark.parametrize(
    ("commands", "goes_on"), TABLES["a process that the cli may take for a loop gets no prompt"]
)
def test_a_process_that_the_cli_may_take_for_a_loop_gets_no_prompt(
    asker: Asker, commands: list[str], goes_on: bool
) -> None:
    queue = PromptQueue.of(asker.folder)
    queue.add_prompt("and then?")
    for number, command in enumerate(commands):
        asker.uses(str(number), SHELL, command=command)
        asker.ends(str(number), "error")
    assert (asker.hook("AfterAgent") != {}) is goes_on
    assert len(queue.prompts()) == (0 if goes_on else 1)


@pytest.mark.parametrize(
    "prompt", ["read @a.txt", "@a.txt", "/review", "  /review now", "mail x@y.z"]
)
def test_what_the_cli_expands_starts_a_process_of_its_own(asker: Asker, prompt: str) -> None:
    queue = PromptQueue.of(asker.folder)
    queue.add_prompt(prompt)
    queue.add_prompt("and then?")
    assert asker.hook("AfterAgent") == {}
    assert [each.text for each in queue.prompts()] == [prompt, "and then?"]


def test_a_prompt_that_the_budget_does_not_cover_waits(asker: Asker) -> None:
    queue = PromptQueue.of(asker.folder)
    asker.hook("SessionStart")
    queue.add_prompt("and then?")
    asker.may_prompt = False
    assert asker.hook("AfterAgent") == {}
    assert [each.text for each in queue.prompts()] == ["and then?"]


def test_a_word_that_no_result_took_along_is_the_next_prompt(asker: Asker) -> None:
    queue = PromptQueue.of(asker.folder)
    asker.hook("SessionStart")
    queue.add_prompt("and then?")
    queue.send_message("use the other one")
    assert asker.hook("AfterAgent") == denied("use the other one")
    assert asker.hook("AfterTool", tool_name="glob") == {}
    assert asker.hook("AfterAgent") == denied("and then?")
    assert asker.hook("AfterAgent") == {}


def test_a_run_without_a_sign_of_life_is_ended(asker: Asker) -> None:
    assert asker.gate.problem() is None
    asker.says({"type": "init", "session_id": "s1"})
    assert asker.gate.problem() == UNGATED


def test_a_result_that_never_passed_ends_the_run(asker: Asker) -> None:
    asker.hook("SessionStart")
    asker.says({"type": "init"})
    asker.uses("1", "list_directory", dir_path=".")
    assert asker.call("list_directory", dir_path=".") == {}
    asker.ends("1")
    asker.uses("2", "list_directory", dir_path=".")
    assert asker.gate.problem() is None
    asker.ends("2", "error")
    assert asker.gate.problem() is None
    asker.uses("3", "list_directory", dir_path=".")
    asker.ends("3")
    assert asker.gate.problem() == PASSED


@pytest.mark.parametrize("by", ["sub-agent", "nested"])
def test_a_call_by_another_is_no_excuse_for_one_that_never_passed(asker: Asker, by: str) -> None:
    asker.hook("SessionStart")
    if by == "sub-agent":
        asker.uses("1", "invoke_agent", agent_name="generalist")
        asker.call("invoke_agent", agent_name="generalist")
    said = {"tool_name": "read_file", "tool_input": {"file_path": "a"}}
    session = "s1" if by == "sub-agent" else "s2"
    assert asker.hook("BeforeTool", session_id=session, **said) == {}
    asker.uses("2", "read_file", file_path="b")
    asker.ends("2")
    assert asker.gate.problem() == PASSED


def test_a_call_that_the_stream_does_not_tell_of_is_a_sub_agent_s(asker: Asker) -> None:
    use = {"type": "tool_use", "tool_name": "write_file", "tool_id": "7"}
    asker.says({**use, "parameters": {"file_path": "a", "content": "\ud800"}})
    asker.later("write_file", file_path="a", content="\ud800")
    assert (asker.question(1).tool_use_id, asker.question(1).subagent) == ("7", False)
    asker.later("write_file", file_path="a", content="\ud800")
    assert (asker.question(2).tool_use_id, asker.question(2).subagent) == (None, True)


def test_a_socket_that_can_t_be_made_keeps_the_run_from_starting(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    with pytest.raises(OSError, match="in use"):
        Asker(tmp_path)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_call_that_another_hook_changed_says_so(asker: Asker, when: str) -> None:
    """The question is no sub-agent's; a read that is changed later is written down."""
    asker.hook("SessionStart")
    given = {"file_path": "a", "content": "1"}
    use = {"type": "tool_use", "tool_id": "1", "tool_name": "write_file", "parameters": given}
    if when == "before":
        asker.says(use)
        asker.later("write_file", **{**given, "content": "other"})
        request = asker.question(1)
        assert (request.hooked, request.subagent) == (True, False)
        return
    asker.says({**use, "tool_name": "glob", "parameters": {"pattern": "*"}})
    asker.call("glob", pattern="*")
    asker.hook("AfterTool", tool_name="glob", tool_input={"pattern": "/etc/*"}, tool_response={})
    (found,) = asker.files.hooked_calls().values()
    assert found == HookedCall(tool_name="glob", arguments={"pattern": "/etc/*"}, tool_use_id="1")
