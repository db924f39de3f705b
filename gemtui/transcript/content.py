"""Parse a message's stored `content` into what the user typed and the CLI added.

Content is a string, a part, or a list of parts and strings (assets/gemini-cli.md#messages). If a
record has `displayContent`, it contains the typed text. Session context, hook context, replies to
tool calls, and the CLI's own feedback to the model are not prompts. Parts with `thought: true` are
not part of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import normpath
from typing import Any, NamedTuple

from gemtui.transcript.media import main_type, main_type_of_file
from gemtui.transcript.model import Thought
from gemtui.transcript.parts import Part, image_of, instant, objects, parts_of, string

_CONTEXT = re.compile(r"\s*<(session_context|hook_context)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_REFERENCED = "--- Content from referenced files ---"
_END = "--- End of content ---"
_FILE = re.compile(r"\s*Content from @?(.+?):\s*\Z")
_AT = re.compile(
    r'(?<!\\)@((?:"[^"]*"|\\.|[^ \t\n\r,;!?()\[\]{}.\\]|\.(?=[^ \t\n\r]))+)', re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_FEEDBACK = re.compile(
    r"System: Potential loop detected\. Details: .*\. Please take a step back and confirm you're "
    r"making forward progress\. If not, take a step back",
    re.DOTALL,
)
_SUBJECT = re.compile(r"\*\*(.*?)\*\*", re.DOTALL)


def text_of(content: object) -> str:
    """Return the answer in a model message: its text parts joined, without thoughts."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in parts_of(content) if not part.get("thought")]
    return "".join([text for text in texts if isinstance(text, str)])


def answer_text(content: object) -> str:
    """Return the answer in a model message, with any code the model ran as fenced blocks."""
    pieces: list[str] = []
    for part in parts_of(content):
        code, result = part.get("executableCode"), part.get("codeExecutionResult")
        if isinstance(code, dict):
            language = string(code.get("language")).lower()
            pieces.append(f"\n\n```{language}\n{string(code.get('code'))}\n```\n\n")
        elif isinstance(result, dict):
            pieces.append(f"\n\n```\n{string(result.get('output'))}\n```\n\n")
        elif not part.get("thought"):
            pieces.append(string(part.get("text")))
    return "".join(pieces)


def thoughts_of(record: Mapping[str, Any]) -> list[Thought]:
    """Return the thoughts in a model message.

    The CLI stores them in `thoughts`. A restored message may have them only as parts of its content
    (assets/gemini-cli.md#messages).
    """
    stored = objects(record.get("thoughts"))
    if not stored:
        thinking = [
            string(part.get("text"))
            for part in parts_of(record.get("content"))
            if part.get("thought")
        ]
        return [_thought_from_text(text) for text in thinking if text.strip()]
    return [
        Thought(
            subject=string(thought.get("subject")),
            description=string(thought.get("description")),
            time=instant(thought.get("timestamp")),
        )
        for thought in stored
    ]


def _thought_from_text(text: str) -> Thought:
    """Convert a model's `**Subject** description` to a thought, as the CLI does."""
    subject = _SUBJECT.search(text)
    if subject is None:
        return Thought(subject="", description=text.strip())
    description = text[: subject.start()] + text[subject.end() :]
    return Thought(subject=subject[1].strip(), description=description.strip())


class UserParts(NamedTuple):
    """The contents of a stored user record, separated by origin.

    `text`: what the user typed. `files`: (name, text) pairs, for files that the CLI appended and
    for hook context. `media`: parts with inlineData or fileData, each with the name the prompt
    gives it, or None if the name is unknown. `replies`: functionResponse objects. `context`:
    whether the record contains session context.
    """

    text: str = ""
    files: tuple[tuple[str, str], ...] = ()
    media: tuple[tuple[str | None, Part], ...] = ()
    replies: tuple[Part, ...] = ()
    context: bool = False

    @property
    def prompt(self) -> bool:
        """Whether the record contains something the user asked.

        Session context and tool replies don't count, nor do media in a record with replies, because
        they come from the tools.
        """
        return bool(self.text.strip() or (self.media and not self.replies))


def typed(record: Mapping[str, Any]) -> UserParts:
    """Separate what the user typed in a record from what the CLI added to it.

    Never raises, whatever the record contains.
    """
    prompts: list[str] = []
    rest: list[str] = []
    files: list[tuple[str, str]] = []
    media: list[Part] = []
    replies: list[Part] = []
    context = False
    referenced = False
    for part in parts_of(record.get("content")):
        if isinstance(reply := part.get("functionResponse"), dict):
            replies.append(reply)
        elif "inlineData" in part or "fileData" in part:
            media.append(part)
        elif isinstance(text := part.get("text"), str) and not part.get("thought"):
            text, has_context, hooks = _without_context(text)
            context = context or has_context
            files += hooks
            referenced = referenced or _begins_references(text, prompts)
            (rest if referenced else prompts).append(text)
    text, tail = _cut_references("".join(prompts))
    if tail:
        rest.insert(0, tail)
    files += _referenced_files(rest)
    display = record.get("displayContent")
    if display:
        text = _without_context(text_of(display))[0] or text
    return UserParts(text, tuple(files), _named(media, text), tuple(replies), context)


def is_plain(text: str) -> bool:
    """Return whether the only text part of a user record is all typed by the user."""
    added = _REFERENCED in text or _CONTEXT.match(text) or _FEEDBACK.match(text)
    return not added


def is_feedback(record: Mapping[str, Any]) -> bool:
    """Return whether a user record is the CLI's own message to a model that repeats itself.

    It is no prompt, although the CLI stores it as one (assets/gemini-cli.md#loops).
    """
    return _FEEDBACK.match(text_of(record.get("content"))) is not None


def _without_context(text: str) -> tuple[str, bool, list[tuple[str, str]]]:
    """Split the leading context blocks off a string.

    Returns the remaining text, whether any block was session context, and the name and text of each
    hook context.
    """
    session = False
    hooks = []
    end = 0
    while (match := _CONTEXT.match(text, end)) is not None:
        if match[1] == "session_context":
            session = True
        else:
            hooks.append(("hook context", match[2].strip()))
        end = match.end()
    return text[end:], session, hooks


def _begins_references(text: str, texts_before: list[str]) -> bool:
    """Return whether a text part is the start of the files that the CLI appended.

    `text`: the part's text. `texts_before`: the texts of the parts before it.
    """
    begins = text.lstrip().startswith(_REFERENCED)
    return begins and (bool("".join(texts_before).strip()) or _END in text)


def _cut_references(text: str) -> tuple[str, str]:
    """Split a text part into the user's prompt and the files the CLI appended to it.

    If no files were appended to this part, the second string is empty.
    """
    at = text.find("\n" + _REFERENCED)
    return (text, "") if at < 0 or _END not in text[at:] else (text[:at], text[at:])


def _referenced_files(texts: list[str]) -> list[tuple[str, str]]:
    """Return the (name, text) of each file that follows "Content from @name:"."""
    files: list[tuple[str, str]] = []
    name = "referenced files"
    for text in texts:
        if text.strip() in (_REFERENCED, _END, ""):
            continue
        match = _FILE.match(text)
        if match is not None:
            name = match[1]
        else:
            files.append((name, text.removeprefix("\n")))
            name = "referenced files"
    return files


def _named(media: list[Part], text: str) -> tuple[tuple[str | None, Part], ...]:
    """Pair each media part with the @name of its file in the prompt, or with None.

    For each kind of media (images, sounds, ...), the names are assigned only if the prompt has as
    many names of such files as there are media. The CLI appends files in the order of their names
    (assets/gemini-cli.md#messages).
    """
    if not media:
        return ()
    asked = sorted({_path(name) for name in _AT.findall(text)})
    kinds = [main_type(image.mime_type) if (image := image_of(part)) else "" for part in media]
    names = {kind: iter(_names(asked, kind, kinds.count(kind))) for kind in kinds}
    return tuple([(next(names[kind]), part) for kind, part in zip(kinds, media, strict=True)])


def _names(asked: list[str], kind: str, number: int) -> list[str | None]:
    """Return the names, from `asked`, of `number` media of one kind.

    If they can't be assigned with certainty, every item is None. This is also the case if several
    names include one outside the project, because the media are sorted by absolute path.
    """
    names = [name for name in asked if main_type_of_file(name) == kind]
    outside = any(name.startswith(("/", "..", "~")) for name in names)
    if len(names) != number or (outside and number > 1):
        return [None] * number
    return [*names]


def _path(name: str) -> str:
    return normpath(_ESCAPED.sub(r"\1", name).strip('"'))
