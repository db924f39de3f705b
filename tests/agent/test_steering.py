"""Words and prompts for a run that goes on, as files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gemtui.agent.run_folder import RunFolder
from gemtui.agent.steering import LARGEST, Delivered, Steering


@pytest.fixture
def steering(tmp_path: Path) -> Steering:
    return Steering(Steering.of(RunFolder.create(tmp_path, "run")).path, clock=lambda: 7)


def texts(steering: Steering) -> list[str]:
    return [each.text for each in steering.prompts()]


def test_a_word_is_delivered_once(steering: Steering) -> None:
    first, second = steering.send_message("faster"), steering.send_message("\0 \ud800 \x1b[31m")
    assert steering.words() == [first, second]
    steering.record_delivery(first, "write_file", "t1")
    assert steering.delivery(first) == Delivered(at=7, tool_name="write_file", tool_use_id="t1")
    assert steering.delivery(second) is None
    steering.queue("and then?")
    assert steering.undelivered() == 2
    with pytest.raises(FileExistsError):
        steering.record_delivery(first, "write_file", "t2")


def test_prompts_are_sent_in_their_order(steering: Steering) -> None:
    ids = {name: steering.queue(name).id for name in "abcd"}
    assert texts(steering) == ["a", "b", "c", "d"]
    assert steering.move(ids["d"], 0)
    assert steering.move(ids["a"], 2)
    assert texts(steering) == ["d", "b", "a", "c"]
    assert steering.edit(ids["b"], "B")
    assert steering.drop(ids["a"])
    assert not steering.drop(ids["a"])
    first = steering.send()
    assert first is not None
    assert (first.text, first.run) == ("d", "")
    assert not steering.edit(ids["d"], "too late")
    assert not steering.move(ids["d"], 0)
    second, third = steering.send(), steering.send()
    assert second is not None
    assert third is not None
    assert (second.text, third.text) == ("B", "c")
    assert steering.send() is None
    assert steering.sent() == [first, second, third]


def test_a_prompt_is_moved_often(steering: Steering) -> None:
    ids = [steering.queue(str(n)).id for n in range(3)]
    for _ in range(100):
        assert steering.move(ids[2], 1)
        assert steering.move(ids[1], 1)
    assert texts(steering) == ["0", "1", "2"]


def test_a_prompt_that_is_sent_and_dropped_at_once_is_one_of_both(steering: Steering) -> None:
    with ThreadPoolExecutor(2) as pool:
        for n in range(50):
            id = steering.queue(str(n)).id
            dropped, sent = pool.submit(steering.drop, id), pool.submit(steering.send)
            assert dropped.result() != (sent.result() is not None)
    assert steering.prompts() == []


def test_what_is_none_of_it_is_not_read(steering: Steering) -> None:
    steering.queue("a")
    (steering.path / "next-000001-00000000.json").write_text("{")
    (steering.path / "word-1.json").write_text('{"text": 5}')
    assert texts(steering) == ["a"]
    assert steering.words() == []
    sent = steering.send()
    assert sent is not None
    assert sent.text == "a"


def test_a_prompt_waits_on_where_it_can_not_be_changed(steering: Steering) -> None:
    prompt = steering.queue("as it was")
    with pytest.raises(OSError, match="large"):
        steering.edit(prompt.id, "x" * LARGEST)
    assert steering.prompts() == [prompt]
    assert steering.drop(prompt.id)
    assert list(steering.path.glob("next*")) == []


def test_what_could_not_be_read_is_not_taken(steering: Steering) -> None:
    with pytest.raises(OSError, match="large"):
        steering.send_message("x" * LARGEST)
    with pytest.raises(OSError, match="large"):
        steering.queue("x" * LARGEST)
    assert steering.undelivered() == 0


def test_a_time_that_no_calendar_has_is_none(steering: Steering) -> None:
    word = steering.send_message("faster")
    told = steering.path / "delivered-1.json"
    for at in (10**18, -1):
        told.write_text(f'{{"at": {at}}}')
        assert steering.delivery(word) is None


def test_a_prompt_that_is_sent_and_edited_at_once_is_sent_once(steering: Steering) -> None:
    with ThreadPoolExecutor(2) as pool:
        for n in range(50):
            id = steering.queue(str(n)).id
            edited, sent = pool.submit(steering.edit, id, f"{n}!"), pool.submit(steering.send)
            found = sent.result()
            assert found is not None
            assert found.text == (f"{n}!" if edited.result() else str(n))
            assert steering.send() is None
    assert len(steering.sent()) == 50


def test_two_who_move_and_change_lose_nothing(steering: Steering) -> None:
    ids = [steering.queue(str(n)).id for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(25):
            moves = [pool.submit(steering.move, id, at) for at, id in enumerate(reversed(ids))]
            edits = [pool.submit(steering.edit, id, str(n)) for n, id in enumerate(ids)]
            assert all(each.result() for each in (*moves, *edits))
            assert sorted(texts(steering)) == ["0", "1", "2", "3"]


def test_words_that_did_not_arrive_are_the_next_prompts(steering: Steering) -> None:
    arrived, first, second = (
        steering.send_message(each) for each in ("arrived", "first", "second")
    )
    steering.record_delivery(arrived, "write_file", None)
    steering.queue("then")
    assert steering.undelivered() == 3
    steering.words_to_prompts()
    assert texts(steering) == ["first", "second", "then"]
    assert steering.words() == [arrived]
    assert (first.number, second.number, steering.send_message("more").number) == (2, 3, 2)
    assert steering.undelivered() == 4
    sent = [steering.send() for _ in range(5)]
    assert [each and each.text for each in sent] == ["more", "first", "second", "then", None]
    assert steering.undelivered() == 0


def test_where_the_folder_is_gone_it_is_said(steering: Steering) -> None:
    steering.path.parent.rmdir()
    for change in (steering.queue, steering.send_message, steering.drop):
        with pytest.raises(OSError, match="No such file"):
            change("a")
    assert (steering.prompts(), steering.words(), steering.undelivered()) == ([], [], 0)
