"""Screens that close with an answer, and screens that ask: a burst of keys acts only once.

A screen with many keys is made of parts: each has the state of one subject and what its keys do.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.worker import Worker

DIALOG = "dialog"
"""The group of the workers in which a screen asks something."""
LOW = [(0, "-low"), (18, "-high"), (30, "-tall")]
"""From how many rows on a screen has room for more than what it is about, and for long texts."""


class AnsweringScreen(Screen[ScreenResultType]):
    """Closes with the first answer it gets; it goes once nothing stands over it.

    A burst of keys may answer twice, and a worker may answer while something else is shown. Keys
    that come before it has its widgets, its focus and its cursor wait for them.
    """

    _answer: tuple[ScreenResultType | None] | None = None
    asked = 0.0
    """Of a question when it was made, on the clock of events."""
    takes_keys = False
    """Whether there is something here that takes keys; until then they wait."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with `result`, unless there is an answer already."""
        if self._answer is None:
            self._answer = (result,)
        return self._go()

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    async def _dispatch_message(self, message: Message) -> None:
        """What its widgets still say, once it has its answer, is for nobody."""
        if self._answer is None or message.control is None:
            await super()._dispatch_message(message)

    @on(events.ScreenResume)
    def _uncovered(self) -> None:
        self.app.call_later(setattr, self, "takes_keys", True)  # behind what asks for the focus
        if self._answer is not None:
            self._go()

    def _go(self) -> AwaitComplete:
        if self._answer is not None and not self.is_mounted:
            self.call_later(self._go)
        elif self._answer is not None and self.is_active:
            self.workers.cancel_node(self)
            return super().dismiss(self._answer[0])
        return AwaitComplete()


class DialogScreen(ModalScreen[ScreenResultType], AnsweringScreen[ScreenResultType]):
    """A dialog over the screen that asks."""


class DialogGuardScreen(AnsweringScreen[ScreenResultType]):
    """No key acts on it while a dialog opens, or while the answer of one is taken.

    Keys that come in one burst would act here, though they were meant for the dialog.
    """

    VERTICAL_BREAKPOINTS = LOW
    _part_of: Mapping[str, ScreenPart] = MappingProxyType({})
    """The part that has an action."""

    def add_parts(self, *parts: ScreenPart) -> None:
        """Let the keys of this screen reach the actions of these parts."""
        actions = [(part, name) for part in parts for name in dir(part) if name[:7] == "action_"]
        self._part_of = {name[7:]: part for part, name in actions}
        for part, name in actions:
            setattr(self, name, getattr(part, name))

    def can(self, action: str) -> bool:
        """Return whether a key does something now; the part that has the action decides."""
        part = self._part_of.get(action)
        return part is None or part.can(action)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is done while a dialog opens."""
        del parameters
        return not self.is_mounted or (not self.asking and self.can(action))

    @property
    def asking(self) -> bool:
        """Whether a dialog opens, or its answer is taken."""
        mine = (each for each in self.workers if each.node is self and each.group == DIALOG)
        return self.is_active and any(not each.is_finished for each in mine)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What a dialog was for is done: keys act again."""
        if event.worker.group == DIALOG and event.worker.is_finished:
            self.refresh_bindings()


class ScreenPart:
    """One subject of a screen: its state, and the `action_*` methods of its keys."""

    screen: DialogGuardScreen[Any]

    def can(self, action: str) -> bool:
        """Return whether the key of one of its actions does something now."""
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
    """Make a part's method run as a worker of its screen, as Textual's `work` does in widgets."""

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
    """Make a part's method ask in a dialog: until it ends, no key acts on its screen."""
    return background(DIALOG, exclusive=True)(method)
