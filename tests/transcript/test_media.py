"""Attached images and other binary content: names, types by bytes, sizes."""

from __future__ import annotations

import struct
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.sessions.read.conversation import message_on_line
from gemtui.transcript.media import (
    MediaDamaged,
    file_name_of,
    image_bytes,
    image_words,
    media_type,
    numbered,
    pixels,
)
from gemtui.transcript.model import Image
from gemtui.transcript.parts import image_of
from gemtui.transcript.tools import tool_call
from tests.rows import each_row
from tests.transcript.pictures import inline, png
from tests.transcript.raw_calls import raw_call

JPEG = b"".join(
    (
        b"\xff\xd8\xff\xe1" + struct.pack(">H", 60_000) + b"E" * 59_998,
        b"\xff\xdb" + struct.pack(">H", 4) + b"xx",
        b"\xff\xc0" + struct.pack(">HBHH", 11, 8, 480, 640) + b"\x01\x01\x11\0",
    )
)
WEBP = b"RIFF\0\0\0\0WEBP"


def image(data: bytes | str, mime: str = "image/png", **more: str) -> Image:
    found = image_of(inline(data, mime, **more))
    assert found is not None
    return found


def names(prompt: str, *parts: Any) -> list[str | None]:
    """What the media of a prompt are called."""
    record = {"type": "user", "content": [{"text": prompt}, *parts], "displayContent": prompt}
    message = message_on_line(orjson.dumps(record), "u")
    assert message is not None
    return [block.name for block in message.blocks if isinstance(block, Image)]


def test_the_name_in_the_prompt_type_pixels_and_size_are_told() -> None:
    picture = png()
    (block,) = numbered([image(picture, displayName="shot.png")])
    assert image_words(block) == f"shot.png, image/png, 64x48, {len(picture)} B"


def test_media_have_the_order_of_their_names_not_that_of_the_prompt() -> None:
    parts = [inline(png()), inline(b"%PDF-1.7", "application/pdf"), inline(png()), inline(png())]
    prompt = r"See @z.png, @b\ c.png and (@./Z.png). @d.pdf @notes.txt @z.png me@home"
    assert names(prompt, *parts) == ["Z.png", "d.pdf", "b c.png", "z.png"]


def test_where_it_is_not_certain_which_is_which_they_are_numbered() -> None:
    two = [inline(png()), inline(png())]
    assert names("@a.png @b.png @gone.png", *two) == ["image 1 of 2", "image 2 of 2"]
    assert names("@/tmp/a.png @b.png", *two) == ["image 1 of 2", "image 2 of 2"]
    assert names("look", inline(b"x", "application/zip"), two[0]) == ["file 1 of 2", "image 2 of 2"]
    assert names("look", inline(b"RIFF", "audio/wav")) == ["audio"]


def test_the_image_of_a_file_that_was_read_has_its_name() -> None:
    reply = {"functionResponse": {"response": {"output": "Binary content provided (1 item(s))."}}}
    args = {"file_path": "docs/shot.png"}
    call = tool_call(raw_call(args=args, result=[reply, inline(png())]))
    assert [each.name for each in call.images] == ["shot.png"]
    other = tool_call(raw_call(name="mcp_x_y", args=args, result=[reply, inline(png())]))
    assert [each.name for each in other.images] == ["image"]


@each_row(
    "data, area",
    [
        (png(7, 9), (7, 9)),
        (b"GIF89a" + struct.pack("<HH", 300, 20), (300, 20)),
        (JPEG, (640, 480)),
        (WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 80, 90), (80, 90)),
        (
            WEBP + b"VP8L" + bytes(4) + b"\x2f" + (79 | 89 << 14).to_bytes(4, "little") + bytes(5),
            (80, 90),
        ),
        (
            WEBP + b"VP8X" + bytes(8) + (79).to_bytes(3, "little") + (89).to_bytes(3, "little"),
            (80, 90),
        ),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"%PDF-1.4", None),
        (b"", None),
    ],
)
def test_pixels_are_told_by_the_first_bytes(data: bytes, area: tuple[int, int] | None) -> None:
    assert pixels(data) == area


@given(st.sampled_from((b"\xff\xd8\xff", b"GIF89a", WEBP + b"VP8X", png()[:8])), st.binary())
def test_what_is_no_real_picture_does_no_harm(start: bytes, rest: bytes) -> None:
    pixels(start + rest)
    image_words(image(start + rest))


def test_the_bytes_decide_what_it_is() -> None:
    page = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    assert media_type(page) is None
    assert "recorded as image/png, but its bytes say otherwise" in image_words(image(page))
    assert "image/png, recorded as application/pdf" in image_words(image(png(), "application/pdf"))
    assert "recorded" not in image_words(image(JPEG, "image/jpg"))


def test_only_the_first_bytes_of_a_large_one_are_decoded_to_name_it() -> None:
    large = image(png(2, 3) + bytes(300_000))
    broken = image(large.data[:-9] + "!!!!!")
    assert "image/png, 2x3, 300.1 kB" in image_words(large)
    assert "2x3" in image_words(broken)
    with pytest.raises(MediaDamaged, match="corrupt"):
        image_bytes(broken)


@each_row("data", ["QUJ", "not base64", "é" * 8, "QUJD\x1b[2J"])
def test_broken_data_is_said_and_decoded_to_nothing(data: str) -> None:
    assert "image/png, damaged" in image_words(image(data))
    with pytest.raises(MediaDamaged, match="corrupt"):
        image_bytes(image(data))


def test_of_an_address_alone_nothing_can_be_saved() -> None:
    part = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://x/v\x07"}}
    video = image_of(part)
    assert video is not None
    assert image_words(video) == "video/mp4, size unknown, https://x/v␇"
    with pytest.raises(MediaDamaged, match="its URL is https://x/v␇"):
        image_bytes(video)


@each_row(
    "name, data, file",
    [
        ("shot.png", png(), "shot.png"),
        ("sub/../../etc/SHOT.PNG", png(), "SHOT.PNG"),
        ("..\\..\\evil.exe", png(), "evil.png"),
        ("run.desktop", b"[Desktop Entry]", "run.bin"),
        ("-rf \x1b[2J\n.png", png(), "rf-2J-.png"),
        ("/", png(), "untitled.png"),
        ("n" * 5000, png(), "n" * 150 + ".png"),
        ("", JPEG, "image.jpg"),
    ],
)
def test_the_name_of_its_file_has_no_folder_and_the_suffix_of_what_it_is(
    name: str, data: bytes, file: str
) -> None:
    assert file_name_of(image(data, displayName=name)) == file
