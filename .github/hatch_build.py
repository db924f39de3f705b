"""How packages are built: with the manual's pages, and with a README that needs no checkout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_CHECKOUT = re.compile(r"<!-- checkout -->\n.*?<!-- end of checkout -->\n+", re.DOTALL)
"""Matches what concerns only a checkout."""
_PUBLISHED = re.compile(r"<!-- published\n(.*?)-->\n", re.DOTALL)
"""Matches what stands in a checkout's place; it is a comment in the README itself."""
_PICTURE = re.compile(r"^!\[.*\n+", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\((?!https:)[^)]*\)")


class Readme(MetadataHookInterface):
    """Puts the README into the metadata without links and pictures that lead to a checkout."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field `readme`."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = _PUBLISHED.sub(r"\1", _CHECKOUT.sub("", text))
        text = _LINK.sub(r"\1", _PICTURE.sub("", text))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class Manual(BuildHookInterface[Any]):
    """Puts the pages that `gemtui help` shows into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the pages; an editable installation (`version`) finds them in the checkout."""
        if version != "editable":
            for page in Path(self.root, "assets").glob("*.md"):
                build_data["force_include"][str(page)] = f"gemtui/manual/{page.name}"
