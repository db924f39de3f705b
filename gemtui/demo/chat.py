"""One session of the demo, told turn by turn and written as the CLI writes it."""

from __future__ import annotations

import json
import os
import random
import uuid
from datetime import datetime, timedelta
from pathlib import Path

from gemtui.demo.workspace import Call, Json, Workspace

CONTEXT_ID = "d04923d38bb0f6017037e74183378ef4"
_SYSTEM_PROMPT = 6800
"""Tokens that every request carries before the conversation."""


class Chat:
    """A session in the making, with a clock of its own.

    `seed` decides ids and pauses, so that the same story is written the same way each time.
    """

    def __init__(
        self,
        work: Workspace,
        seed: str,
        *,
        start: datetime,
        model: str = "gemini-2.5-pro",
        kind: str = "main",
    ) -> None:
        self.work, self.model = work, model
        self._random = random.Random(seed)
        self.id = self._uuid()
        self.start = self.clock = start
        self._lines: list[Json] = []
        self._messages: list[Json] = []
        self._read = _SYSTEM_PROMPT
        self._cached = 0
        self._header: Json = {
            "sessionId": self.id,
            "projectHash": work.hash,
            "startTime": self.time,
            "lastUpdated": self.time,
            "kind": kind,
        }
        if kind == "subagent":
            self._header["directories"] = [str(work.root)]
        else:
            self._messages.append(self._context())

    # --- telling -------------------------------------------------------------------------------

    def ask(self, text: str, *more: Json, shown: bool = False, pause: float | None = None) -> str:
        """A person types a prompt; `more`: parts that the CLI puts behind it.

        `shown`: the record says apart what was typed (`displayContent`). Returns the message's id.
        """
        self._wait(self._random.uniform(20, 90) if pause is None else pause)
        record = self._message("user", [{"text": text}, *more])
        if shown:
            record["displayContent"] = [{"text": text}]
        self._read += len(json.dumps(record)) // 4
        self._log(record)
        return str(record["id"])

    def say(self, text: str, *calls: Call, thoughts: tuple[str, ...] = ()) -> None:
        """The model answers: thoughts ("subject: description"), text, then parallel calls."""
        self._wait(self._random.uniform(2, 9))
        record = self._answer(text, calls, thoughts)
        self._log(record)
        if calls:
            ids = self._call_ids(calls)
            self._wait(max(call.seconds for call in calls))
            self._ended(record, ids, calls)

    def note(self, text: str, *, kind: str = "info") -> None:
        """The CLI itself says something."""
        self._log(self._message(kind, text))

    def rewind(self, to: str) -> None:
        """A person goes back to before a message (`/rewind`)."""
        self._wait(30)
        at = next(place for place, each in enumerate(self._messages) if each["id"] == to)
        self._lines.append({"$rewindTo": to})
        del self._messages[at:]
        self._reset()

    def fail(self, text: str) -> None:
        """A prompt on which the API gave an error: the CLI takes it out again."""
        self.ask(text)
        del self._messages[-1]
        self._wait(2)
        self._reset()

    def call_it(self, summary: str) -> None:
        """What an interactive start writes as the session's title."""
        self._header["summary"] = summary
        self._lines.append({"$set": {"summary": summary, "memoryScratchpad": {"version": 1}}})

    # --- writing -------------------------------------------------------------------------------

    def write(self, chats: Path, *, name: str | None = None) -> Path:
        """A `.jsonl` log (0.39 and later) in a `chats` folder; `name` for a subagent's."""
        text = "".join(map(as_line, self._opening() + self._lines))
        return self._file(chats, f"{name or self._name()}.jsonl", text)

    def _opening(self) -> list[Json]:
        """What stands in a log before the first prompt."""
        head = self._header | {"lastUpdated": self._header["startTime"]}
        head.pop("summary", None)
        context = [each for each in self._messages[:1] if each["id"] == CONTEXT_ID]
        if not context:
            return [head]
        return [head, {"$set": {"messages": context, "lastUpdated": head["startTime"]}}]

    def write_old(self, chats: Path, *, before_0_30: bool = False) -> Path:
        """A legacy object (0.4 to 0.38): no session context, no tool replies."""
        said = [each for each in self._messages if each["id"] != CONTEXT_ID and not _reply(each)]
        whole = self._header | {"lastUpdated": self.time, "messages": said}
        if before_0_30:
            whole["messages"] = _as_before_0_30(said)
            del whole["kind"]
        return self._file(
            chats, f"{self._name()}.json", json.dumps(whole, indent=2, ensure_ascii=False)
        )

    def checkpoint(self, folder: Path, tag: str) -> Path:
        """What `/chat save` writes: the conversation in the API's form."""
        roles = {"user": "user", "gemini": "model"}
        history = [
            {"role": roles[each["type"]], "parts": _parts(each)}
            for each in self._messages
            if each["type"] in roles
        ]
        whole = {"history": history, "authType": "oauth-personal"}
        return self._file(folder, f"checkpoint-{tag}.json", json.dumps(whole, indent=2))

    def ghost(self, chats: Path, when: datetime) -> Path:
        """What a resume leaves behind: the same id, nothing but the context."""
        again = Chat(self.work, "ghost", start=when, model=self.model)
        again.id = again._header["sessionId"] = self.id
        return again.write(chats)

    def _name(self) -> str:
        return f"session-{self.start:%Y-%m-%dT%H-%M}-{self.id[:8]}"

    def _file(self, folder: Path, name: str, text: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text(text, encoding="utf-8", newline="\n")
        stamp = self.clock.timestamp()
        os.utime(path, (stamp, stamp))
        return path

    # --- records -------------------------------------------------------------------------------

    @property
    def time(self) -> str:
        """The clock as the CLI writes times."""
        return self.clock.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.clock.microsecond // 1000:03}Z"

    def _wait(self, seconds: float) -> None:
        self.clock += timedelta(seconds=seconds)

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _message(self, kind: str, content: object) -> Json:
        return {"id": self._uuid(), "timestamp": self.time, "type": kind, "content": content}

    def _context(self) -> Json:
        root, home = self.work.root, self.work.root.parent.parent
        text = (
            "<session_context>\nThis is the Gemini CLI. We are setting up the context for our "
            f"chat.\nToday's date is {self.clock:%A, %B %d, %Y} (formatted according to the "
            "user's locale).\nMy operating system is: linux\nThe project's temporary directory "
            f"is: {home}/.gemini/tmp/{self.work.slug}\n- **Workspace Directories:**\n  - {root}\n"
            "- **Directory Structure:**\n\nShowing up to 200 items (files + folders).\n\n"
            f"{root}/\n{self.work.tree()}\n\n\n</session_context>"
        )
        return self._message("user", [{"text": text}]) | {"id": CONTEXT_ID}

    def _answer(self, text: str, calls: tuple[Call, ...], thoughts: tuple[str, ...]) -> Json:
        record = self._message("gemini", text)
        record["thoughts"] = [self._thought(thought) for thought in thoughts]
        record["tokens"] = self._tokens(text, calls, thoughts)
        record["model"] = self.model
        return record

    def _thought(self, thought: str) -> Json:
        subject, _, description = thought.partition(": ")
        return {"subject": subject, "description": description, "timestamp": self.time}

    def _tokens(self, text: str, calls: tuple[Call, ...], thoughts: tuple[str, ...]) -> Json:
        output = (len(text) + sum(len(json.dumps(call.args)) for call in calls)) // 4 + 8
        thinking = sum(len(thought) for thought in thoughts) * 3
        tokens = {
            "input": self._read,
            "output": output,
            "cached": self._cached,
            "thoughts": thinking,
            "tool": 0,
            "total": self._read + output + thinking,
        }
        self._cached = self._read * 9 // 10
        self._read += output
        return tokens

    def _ended(self, record: Json, ids: list[str], calls: tuple[Call, ...]) -> None:
        """The calls of an answer have come back."""
        entries = [call.entry(id, self.time) for id, call in zip(ids, calls, strict=True)]
        self._again(record | {"toolCalls": entries})
        replies = [call.reply(id) for id, call in zip(ids, calls, strict=True)]
        self._read += len(json.dumps(replies)) // 4
        self._log(self._message("user", replies))

    def _call_ids(self, calls: tuple[Call, ...]) -> list[str]:
        return [self._call_id(call.name, place) for place, call in enumerate(calls)]

    def _call_id(self, name: str, place: int) -> str:
        stamp = f"{self.clock.timestamp() * 1000:.0f}"
        return f"{name}_{stamp}_{place}" if self.work.old else f"{name}__{name}_{stamp}_{place}"

    def _log(self, record: Json) -> None:
        self._messages.append(record)
        self._lines += [record, {"$set": {"lastUpdated": self.time}}]

    def _again(self, record: Json) -> None:
        """Assistant messages are written again when their tool calls have ended."""
        self._messages[-1] = record
        self._lines.append(record)

    def _reset(self) -> None:
        messages = [_restored(each) for each in self._messages]
        self._lines.append({"$set": {"messages": messages, "lastUpdated": self.time}})


def as_line(value: Json) -> str:
    """One line of a log."""
    return f"{json.dumps(value, ensure_ascii=False)}\n"


def _reply(record: Json) -> bool:
    return record["type"] == "user" and "functionResponse" in record["content"][0]


def _as_before_0_30(records: list[Json]) -> list[Json]:
    """Prompts are strings, and calls of silent answers stand in the answer before them."""
    merged: list[Json] = []
    for record in records:
        content = record["content"]
        if isinstance(content, list):
            record = record | {"content": content[0]["text"]}
        elif not content and merged and "toolCalls" in merged[-1]:
            calls = [*merged[-1]["toolCalls"], *record["toolCalls"]]
            merged[-1] = merged[-1] | {"toolCalls": calls}
            continue
        merged.append(record)
    return merged


def _restored(record: Json) -> Json:
    """An answer in a `$set.messages`: its content is a list of parts."""
    return record | {"content": _parts(record)} if record["type"] == "gemini" else record


def _parts(record: Json) -> list[Json]:
    content = record["content"]
    said: list[Json] = [{"text": content}] if content else []
    calls = record.get("toolCalls", ())
    asked = [{"functionCall": {k: call[k] for k in ("name", "args", "id")}} for call in calls]
    return [*said, *asked] if isinstance(content, str) else list(content)
