"""The messages and queued prompts of a run that is still working."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from gemtui.agent.prompt_queue import Delivered, NextPrompt, PromptQueue, RunMessage
from gemtui.transcript.model import Author, Message, Outline, Text, Transcript, outline
from gemtui.transcript.rows import insert_row, of_rows, rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """A snapshot of a run's messages and its queued prompts.

    `messages`: each message with its delivery, which is None if it hasn't been delivered yet.
    """

    messages: tuple[tuple[RunMessage, Delivered | None], ...] = ()
    prompts: tuple[NextPrompt, ...] = ()

    @property
    def undelivered(self) -> tuple[str, ...]:
        """The messages and prompts that have not reached the agent, as text, in order."""
        words = (word.text for word, delivered in self.messages if delivered is None)
        return (*words, *(prompt.text for prompt in self.prompts))


def load_queue(queue: PromptQueue) -> QueueState:
    """Read the messages and queued prompts from their files."""
    words = tuple((word, queue.delivery(word)) for word in queue.messages())
    return QueueState(messages=words, prompts=tuple(queue.prompts()))


def with_messages(transcript: Transcript, state: QueueState, made: dict[int, tuple[Outline, Message]]) -> Transcript:
    """Return a transcript with the user's messages inserted where they were delivered.

    `made`: a cache to pass to each call; maps the numbers of messages to what was inserted for
    them.
    """
    here = [(word, at) for word, at in state.messages if at is not None]
    if not here:
        return transcript
    rows = rows_of(transcript)
    for word, delivered in here:
        if word.number not in made:
            message = Message(
                id=f"word-{word.number}",
                author=Author.USER,
                blocks=(Text(text=word.text),),
                time=datetime.fromtimestamp(delivered.at / 1000, UTC),
            )
            made[word.number] = outline(message), message
        insert_row(rows, made[word.number])
    return of_rows(transcript, rows)
