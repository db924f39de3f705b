"""The policy pane: rules, what they become, what they mean, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from gemtui.ui.keys import Where, bindings
from gemtui.ui.policies import Draft
from gemtui.ui.widgets.lines import FooterLine, Line
from gemtui.ui.widgets.policy_tools import PolicyTools

if TYPE_CHECKING:
    from gemtui.ui.app import GemtuiApp


class PolicyScreen(Screen[None]):
    """One policy at a time is edited: `draft`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.POLICY, Where.RULES)

    def __init__(self) -> None:
        super().__init__()
        self.draft = Draft()

    @property
    def gemtui(self) -> GemtuiApp:
        """The app, as ours."""
        return cast("GemtuiApp", self.app)

    def compose(self) -> ComposeResult:
        """Header, rules and side, status, footer."""
        glyphs = self.gemtui.glyphs
        yield Line(id="header", mark=glyphs.ellipsis)
        with Horizontal(id="policy-panes"), Vertical(id="policy-main"):
            yield PolicyTools(id="policy-tools")
        yield Line(id="status", mark=glyphs.ellipsis)
        yield FooterLine(ascii=glyphs.name == "ascii")

    def on_mount(self) -> None:
        """Say where we are."""
        self.query_one("#header", Line).say(self.gemtui.tabs("app.policies"))
