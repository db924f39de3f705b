"""A real CLI whose runs can ask."""

from __future__ import annotations

import pytest

from tests.gated import put_hooks
from tests.real_cli import GeminiCli


@pytest.fixture
def gated(gemini: GeminiCli, remembered_help: None) -> GeminiCli:
    """The CLI with gemtui's hooks."""
    put_hooks(gemini)
    return gemini
