"""Binary content by its name: `[image/png, 2.1 kB, dot.png]`."""

from __future__ import annotations

from gemtui.text import Clean, size
from gemtui.transcript.model import Image
from gemtui.ui.render.lines import flat, own


def image_words(image: Image) -> Clean:
    """What is known of it: type, size, name or address."""
    facts = [flat(image.mime_type[:100]) or "unknown type"]
    if image.size is not None:
        facts.append(size(image.size))
    if name := image.name or image.uri:
        facts.append(flat(name[:400]))
    return own(f"[{', '.join(facts)}]")
