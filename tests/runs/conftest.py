"""A real CLI whose runs can ask."""

from __future__ import annotations

import pytest

from tests.gated import put_hooks
from tests.real_cli import GeminiCli


@pytest.fixture
def gated(
    gemini: GeminiCli, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> GeminiCli:
    """The CLI with gemtui's hooks; what its --help says is remembered between the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytestconfig.cache.mkdir("gemtui-cache")))
    put_hooks(gemini)
    return gemini
