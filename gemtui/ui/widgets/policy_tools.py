"""The decision on each tool under the policy as it stands, headless and interactive."""

from __future__ import annotations

from textual.widgets import Static

from gemtui.ui.policies import Draft


class PolicyTools(Static):
    """A row per tool; the pane calls `show` after every change."""

    def show(self, draft: Draft) -> None:
        """Say how it stands; what takes long is decided in a worker."""
        del draft
