"""Screens with a header and a footer; those with many keys consist of parts.

A part has the state of one subject of its screen, and the actions of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial, wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from textual.app import ComposeResult
from textual.screen import ScreenResultType
from textual.widget import Widget
from textual.worker import Worker

from gemtui.ui.kit.bars import BarLine, FooterLine
from gemtui.ui.kit.dialog_guard import DIALOG, LOW, AnsweringScreen

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


_ACTION = "action_"
"""Prefix of the methods that Textual calls for keys."""


class FullScreen(AnsweringScreen[ScreenResultType]):
    """A screen of title, body, status line and keys, from top to bottom."""

    @property
    def gemtui(self) -> AppBase:
        """The app, typed."""
        return cast("AppBase", self.app)

    def framed(self, *body: Widget) -> ComposeResult:
        """Yield the widgets of a screen with this body."""
        mark = self.gemtui.glyphs.ellipsis
        yield BarLine(id="header", mark=mark)
        yield from body
        yield BarLine(id="status", mark=mark)
        yield FooterLine(ascii=self.gemtui.config.ascii)

    @property
    def header(self) -> BarLine:
        """The header."""
        return self.query_one("#header", BarLine)

    @property
    def status(self) -> BarLine:
        """The status line."""
        return self.query_one("#status", BarLine)


class DialogGuardScreen(FullScreen[ScreenResultType]):
    """A screen that ignores keys while one of its dialogs opens or is being handled.

    Keys of one burst would act here, although they were meant for the dialog.
    """

    VERTICAL_BREAKPOINTS = LOW
    _part_of: Mapping[str, ScreenPart] = MappingProxyType({})
    """The part of each action."""

    def add_parts(self, *parts: ScreenPart) -> None:
        """Register parts, whose actions the keys of this screen can call."""
        found = {name: part for part in parts for name in dir(part) if name.startswith(_ACTION)}
        self._part_of = {name.removeprefix(_ACTION): part for name, part in found.items()}
        for name, part in found.items():
            setattr(self, name, getattr(part, name))

    def can(self, action: str) -> bool:
        """Return whether an action is available now, as decided by its part."""
        part = self._part_of.get(action)
        return part is None or part.can(action)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable all actions while a dialog opens."""
        del parameters
        return not self.is_mounted or (not self.asking and self.can(action))

    @property
    def asking(self) -> bool:
        """Whether a dialog is opening, or its answer is being handled."""
        mine = (each for each in self.workers if each.node is self and each.group == DIALOG)
        return self.is_active and any(not each.is_finished for each in mine)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Enable keys again after a dialog's worker has finished."""
        if event.worker.group == DIALOG and event.worker.is_finished:
            self.refresh_bindings()


class ScreenPart:
    """One subject of a screen: its state, and the `action_*` methods of its keys."""

    screen: DialogGuardScreen[Any]

    def can(self, action: str) -> bool:
        """Return whether one of its actions is available now."""
        del action
        return True


Part = TypeVar("Part", bound=ScreenPart)
Args = ParamSpec("Args")
Result = TypeVar("Result")
_Method = Callable[Concatenate[Part, Args], Coroutine[Any, Any, Result]]
_Begin = Callable[Concatenate[Part, Args], Worker[Result]]


def background(
    group: str, *, exclusive: bool = False
) -> Callable[[_Method[Part, Args, Result]], _Begin[Part, Args, Result]]:
    """Make a part's method run as a worker of its screen, as Textual's `work` does."""

    def decorate(method: _Method[Part, Args, Result]) -> _Begin[Part, Args, Result]:
        @wraps(method)
        def begin(part: Part, /, *args: Args.args, **kwargs: Args.kwargs) -> Worker[Result]:
            return part.screen.run_worker(
                partial(method, part, *args, **kwargs),
                name=method.__name__,
                group=group,
                exclusive=exclusive,
            )

        return begin

    return decorate


def dialog(method: _Method[Part, Args, Result]) -> _Begin[Part, Args, Result]:
    """Make a part's method a dialog: until it ends, no key acts on its screen."""
    return background(DIALOG, exclusive=True)(method)
