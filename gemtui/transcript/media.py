"""Determine the type, dimensions, and file name of media from their bytes.

The description in the record is untrusted and may be wrong, so the first bytes decide. Only those
are decoded, unless all bytes are needed.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from msgspec.structs import replace

from gemtui.errors import GemtuiError
from gemtui.text import Clean, clean_line, file_name
from gemtui.text import size as readable_size
from gemtui.transcript.model import LONGEST_LABEL, Block, Image, ToolCall

_HEAD = 128 * 1024
"""Number of base64 characters to decode for inspection.

It is large because a JPEG's dimensions may come late in the file.
"""


class MediaType(NamedTuple):
    """A type of binary content, and the suffix of its files, including the dot."""

    mime: str
    suffix: str


_MAGIC = tuple(
    (re.compile(pattern, re.DOTALL), MediaType(mime, suffix))
    for pattern, mime, suffix in (
        (rb"\x89PNG\r\n\x1a\n", "image/png", ".png"),
        (rb"\xff\xd8\xff", "image/jpeg", ".jpg"),
        (rb"GIF8[79]a", "image/gif", ".gif"),
        (rb"RIFF....WEBP", "image/webp", ".webp"),
        (rb"BM.{4}\0{4}", "image/bmp", ".bmp"),
        (rb"II\*\0|MM\0\*", "image/tiff", ".tiff"),
        (rb".{4}ftypavi[fs]", "image/avif", ".avif"),
        (rb".{4}ftyp(?:hei[cfmsx]|mif1)", "image/heic", ".heic"),
        (rb"%PDF-", "application/pdf", ".pdf"),
        (rb"RIFF....WAVE", "audio/wav", ".wav"),
        (rb"ID3|\xff[\xf2\xf3\xfa\xfb]", "audio/mpeg", ".mp3"),
        (rb"\xff[\xf0\xf1\xf8\xf9]", "audio/aac", ".aac"),
        (rb"fLaC", "audio/flac", ".flac"),
        (rb"OggS", "audio/ogg", ".ogg"),
        (rb"FORM....AIF[FC]", "audio/aiff", ".aiff"),
        (rb".{4}ftypM4A", "audio/mp4", ".m4a"),
        (rb".{4}ftypqt", "video/quicktime", ".mov"),
        (rb".{4}ftyp", "video/mp4", ".mp4"),
        (rb"\x1aE\xdf\xa3", "video/webm", ".webm"),
        (rb"RIFF....AVI ", "video/x-msvideo", ".avi"),
    )
)
_KNOWN = frozenset(kind.mime for _, kind in _MAGIC)
_OTHER_NAMES = {
    "image/jpg": "image/jpeg",
    "image/heif": "image/heic",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-aiff": "audio/aiff",
}


_MAIN_TYPES = {kind.suffix: kind.mime.partition("/")[0] for _, kind in _MAGIC}
_MAIN_TYPES |= dict.fromkeys((".jpeg", ".tif", ".heif"), "image")


class MediaDamaged(GemtuiError):
    """Raised if binary content is not stored or can't be decoded.

    The message says which of the two it is.
    """


def media_type(data: bytes) -> MediaType | None:
    """Return the type of an image, sound, video, or PDF from its first bytes.

    Returns None for anything else.
    """
    return next((kind for magic, kind in _MAGIC if magic.match(data)), None)


def main_type(mime: str) -> str:
    """Return the first half of a media type, such as `image` for `image/png`."""
    return mime.partition("/")[0].lower()


def main_type_of_file(name: str) -> str:
    """Return the main type of a media file by its suffix; "" for other files."""
    return _MAIN_TYPES.get(PurePath(name).suffix.lower(), "")


def stored_images(block: Block | None) -> tuple[Image, ...]:
    """Return a block's images whose content is stored."""
    match block:
        case Image():
            images: Sequence[Image] = (block,)
        case ToolCall():
            images = block.images
        case _:
            return ()
    return tuple(image for image in images if image.data)


def image_bytes(image: Image) -> bytes:
    """Return the decoded content of an image or other media.

    Raises MediaDamaged if the content is not stored or can't be decoded.
    """
    if not image.data:
        where = f": its URL is {clean_line(image.uri)}" if image.uri else ""
        raise MediaDamaged(f"Only the attachment's name is stored, not its contents{where}")
    try:
        return binascii.a2b_base64("".join(image.data.split()), strict_mode=True)
    except ValueError as error:
        raise MediaDamaged(
            f"The attachment's data is corrupt and can't be decoded ({error})"
        ) from None


def file_name_of(image: Image) -> str:
    """Return a safe file name for binary content, with the suffix for its actual type.

    Content of unknown type gets the suffix `.bin`.
    """
    kind = media_type(_head(image) or b"")
    stem = file_name(re.split(r"[/\\]", image.name or "image")[-1])
    suffix = kind.suffix if kind else ".bin"
    return stem if stem.lower().endswith(suffix) else file_name(stem.rsplit(".", 1)[0]) + suffix


def image_words(image: Image) -> Clean:
    """Describe media in words: name, type, dimensions in pixels, size, and address."""
    head = _head(image)
    size = "size unknown" if image.size is None else readable_size(image.size)
    area = pixels(head or b"")
    shown = f"{area[0]}x{area[1]}" if area else ""
    facts = (image.name, _type_words(image, head), shown, size, image.uri)
    return clean_line(", ".join(word[:LONGEST_LABEL] for word in facts if word))


def image_text(image: Image) -> str:
    """Return the recorded text that `image_words` shows, each part on a line; raw and untrusted."""
    facts = (image.name, image.mime_type, image.uri)
    return "\n".join(word[:LONGEST_LABEL] for word in facts if word)


def numbered(images: Sequence[Image]) -> tuple[Image, ...]:
    """Name unnamed images by position: `image 1 of 2`, or just `image`."""
    return tuple(
        image if image.name or image.uri else replace(image, name=_by_place(image, number, images))
        for number, image in enumerate(images, 1)
    )


def _by_place(image: Image, number: int, images: Sequence[Image]) -> str:
    kind = main_type(image.mime_type)
    word = kind if kind in ("image", "audio", "video") else "file"
    return f"{word} {number} of {len(images)}" if len(images) > 1 else word


def _head(image: Image) -> bytes | None:
    """Return the first bytes of binary content.

    Returns b"" if the content is not stored, and None if it can't be decoded from base64.
    """
    start = "".join(image.data[:_HEAD].split())
    if len(image.data) > _HEAD:
        start = start[: len(start) // 4 * 4]
    try:
        return binascii.a2b_base64(start, strict_mode=True) if start else b""
    except ValueError:
        return None


def _type_words(image: Image, head: bytes | None) -> str:
    """Return the recorded type, and the actual type if the bytes show a different one."""
    label = image.mime_type[:LONGEST_LABEL] or "type unknown"
    if head is None:
        return f"{label}, damaged"
    recorded = _OTHER_NAMES.get(label.lower(), label.lower())
    kind = media_type(head)
    if kind is not None:
        return label if kind.mime == recorded else f"{kind.mime}, recorded as {label}"
    return (
        f"recorded as {label}, but its bytes say otherwise"
        if head and recorded in _KNOWN
        else label
    )


# --- pixels --------------------------------------------------------------------------------------


def pixels(head: bytes) -> tuple[int, int] | None:
    """Return the width and height of a PNG, GIF, WebP, or JPEG from its first bytes.

    Returns None if they can't be determined.
    """
    kind = media_type(head)
    match kind.suffix if kind else "":
        case ".png" if len(head) >= 24:
            return _number(head[16:20]), _number(head[20:24])
        case ".gif" if len(head) >= 10:
            return _little(head[6:8]), _little(head[8:10])
        case ".webp" if len(head) >= 30:
            return _webp(head)
        case ".jpg":
            return next(_frames(head), None)
        case _:
            return None


def _webp(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8 ":
            return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
        case b"VP8L":
            bits = _little(head[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return _little(head[24:27]) + 1, _little(head[27:30]) + 1
        case _:
            return None


def _frames(head: bytes) -> Iterator[tuple[int, int]]:
    """Yield the (width, height) in each frame header of a JPEG."""
    at = 2
    while len(head) >= at + 9 and head[at] == 0xFF:
        kind = head[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            yield _number(head[at + 7 : at + 9]), _number(head[at + 5 : at + 7])
        at += 2 + _number(head[at + 2 : at + 4])


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
