"""Words and prompts for a run that goes on, in a file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gemtui.agent.prompt_queue import Delivered, PromptQueue
from gemtui.agent.run_folder import LARGEST_PROMPT, RunFolder


@pytest.fixture
def queue(tmp_path: Path) -> PromptQueue:
    return PromptQueue(PromptQueue.of(RunFolder.create(tmp_path, "run")).path, clock=lambda: 7)


def texts(queue: PromptQueue) -> list[str]:
    return [each.text for each in queue.prompts()]


def test_a_word_is_delivered_once(queue: PromptQueue) -> None:
    first, second = queue.send_message("faster"), queue.send_message("\0 \ud800 \x1b[31m")
    assert queue.messages() == [first, second]
    queue.record_delivery(first, "write_file", "t1")
    assert queue.delivery(first) == Delivered(at=7, tool_name="write_file", tool_use_id="t1")
    assert queue.delivery(second) is None
    queue.add_prompt("and then?")
    assert queue.undelivered() == 2
    with pytest.raises(FileExistsError):
        queue.record_delivery(first, "write_file", "t2")


def test_prompts_are_sent_in_their_order(queue: PromptQueue) -> None:
    ids = {name: queue.add_prompt(name).id for name in "abcd"}
    assert texts(queue) == ["a", "b", "c", "d"]
    assert queue.move(ids["d"], 0)
    assert queue.move(ids["a"], 2)
    assert texts(queue) == ["d", "b", "a", "c"]
    assert queue.edit(ids["b"], "B")
    assert queue.drop(ids["a"])
    assert not queue.drop(ids["a"])
    first = queue.send()
    assert first is not None
    assert (first.text, first.run) == ("d", "")
    assert not queue.edit(ids["d"], "too late")
    assert not queue.move(ids["d"], 0)
    second, third = queue.send(), queue.send()
    assert second is not None
    assert third is not None
    assert (second.text, third.text) == ("B", "c")
    assert queue.send() is None
    assert queue.sent() == [first, second, third]


def test_a_prompt_is_moved_often(queue: PromptQueue) -> None:
    ids = [queue.add_prompt(str(n)).id for n in range(3)]
    for _ in range(100):
        assert queue.move(ids[2], 1)
        assert queue.move(ids[1], 1)
    assert texts(queue) == ["0", "1", "2"]


def test_a_prompt_that_is_sent_and_dropped_at_once_is_one_of_both(queue: PromptQueue) -> None:
    with ThreadPoolExecutor(2) as pool:
        for n in range(50):
            id = queue.add_prompt(str(n)).id
            dropped, sent = pool.submit(queue.drop, id), pool.submit(queue.send)
            assert dropped.result() != (sent.result() is not None)
    assert queue.prompts() == []


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b'{"prompts": [{"id": 5}]}', b'{"messages": [{"text": "x", "number": 1}]}'],
)
def test_a_file_that_can_not_be_read_is_said_counted_and_left(
    queue: PromptQueue, damage: bytes
) -> None:
    queue.add_prompt("a")
    (file,) = queue.path.glob("*.json")
    file.write_bytes(damage)
    assert (texts(queue), queue.messages(), queue.undelivered()) == ([], [], 1)
    for change in (queue.add_prompt, queue.send_message, queue.drop):
        with pytest.raises(OSError, match="can't be read"):
            change("b")
    assert file.read_bytes() == damage


def test_a_prompt_waits_on_where_it_can_not_be_changed(queue: PromptQueue) -> None:
    prompt = queue.add_prompt("as it was")
    with pytest.raises(OSError, match="large"):
        queue.edit(prompt.id, "x" * (LARGEST_PROMPT + 1))
    assert queue.prompts() == [prompt]
    assert queue.drop(prompt.id)
    assert queue.undelivered() == 0


def test_what_could_not_be_read_is_not_taken(queue: PromptQueue) -> None:
    with pytest.raises(OSError, match="large"):
        queue.send_message("x" * (LARGEST_PROMPT + 1))
    with pytest.raises(OSError, match="large"):
        queue.add_prompt("x" * (LARGEST_PROMPT + 1))
    assert queue.undelivered() == 0


def test_a_prompt_that_is_sent_and_edited_at_once_is_sent_once(queue: PromptQueue) -> None:
    with ThreadPoolExecutor(2) as pool:
        for n in range(50):
            id = queue.add_prompt(str(n)).id
            edited, sent = pool.submit(queue.edit, id, f"{n}!"), pool.submit(queue.send)
            found = sent.result()
            assert found is not None
            assert found.text == (f"{n}!" if edited.result() else str(n))
            assert queue.send() is None
    assert len(queue.sent()) == 50


def test_two_who_move_and_change_lose_nothing(queue: PromptQueue) -> None:
    ids = [queue.add_prompt(str(n)).id for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(25):
            moves = [pool.submit(queue.move, id, at) for at, id in enumerate(reversed(ids))]
            edits = [pool.submit(queue.edit, id, str(n)) for n, id in enumerate(ids)]
            assert all(each.result() for each in (*moves, *edits))
            assert sorted(texts(queue)) == ["0", "1", "2", "3"]


def test_words_that_did_not_arrive_are_the_next_prompts(queue: PromptQueue) -> None:
    arrived, first, second = (queue.send_message(each) for each in ("arrived", "first", "second"))
    queue.record_delivery(arrived, "write_file", None)
    queue.add_prompt("then")
    assert queue.undelivered() == 3
    queue.messages_to_prompts()
    assert texts(queue) == ["first", "second", "then"]
    assert queue.messages() == [arrived]
    assert (first.number, second.number, queue.send_message("more").number) == (2, 3, 2)
    assert queue.undelivered() == 4
    sent = [queue.send() for _ in range(5)]
    assert [each and each.text for each in sent] == ["more", "first", "second", "then", None]
    assert queue.undelivered() == 0


def test_where_the_folder_is_gone_it_is_said(queue: PromptQueue) -> None:
    queue.path.parent.rmdir()
    for change in (queue.add_prompt, queue.send_message, queue.drop):
        with pytest.raises(OSError, match="No such file"):
            change("a")
    assert (queue.prompts(), queue.messages(), queue.undelivered()) == ([], [], 0)
