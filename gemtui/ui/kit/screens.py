"""Screens with a header and a footer, and the parts that implement a large screen's keys."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.screen import ScreenResultType
from textual.widget import Widget
from textual.worker import ResultType, Worker, WorkerState, WorkType

from gemtui.errors import message_of
from gemtui.text import one_line
from gemtui.ui.kit.app_base import AnsweringScreen
from gemtui.ui.kit.bars import BarLine, FooterLine
from gemtui.ui.kit.reading import Reading

DIALOG = "dialog"
"""The group of the workers that open dialogs."""


class KeyPart:
    """A part of a screen or widget: some state, and the key actions that use it.

    The actions are methods named `action_*`.
    """

    def can(self, action: str) -> bool:
        """Return whether one of this part's actions is available now."""
        del action
        return True

    def only_says_why(self, action: str) -> bool:
        """Return whether the action's key would now only explain why it doesn't work."""
        del action
        return False


class HasParts:
    """Mixin for a screen or widget whose parts implement its actions."""

    _part_of: Mapping[str, KeyPart] = MappingProxyType({})
    """The part that implements each action, by the action's name."""

    def add_parts(self, *parts: KeyPart) -> None:
        """Add parts, so that the screen's or widget's keys can call their actions.

        To be called once, with all parts.
        """
        parts_by_action = {
            name: part for part in parts for name in dir(part) if name.startswith("action_")
        }
        self._part_of = {
            name.removeprefix("action_"): part for name, part in parts_by_action.items()
        }
        for name, part in parts_by_action.items():
            setattr(self, name, getattr(part, name))

    def can(self, action: str) -> bool:
        """Return whether an action is available now, according to its part.

        An action that no part implements is always available.
        """
        part = self._part_of.get(action)
        return part is None or part.can(action)

    def only_says_why(self, action: str) -> bool:
        """Return whether the action's key would now only explain why it doesn't work.

        Such keys are left out of the footer.
        """
        part = self._part_of.get(action)
        return part is not None and part.only_says_why(action)


class FullScreen(HasParts, AnsweringScreen[ScreenResultType]):
    """A screen with a header, a body, a status line and a footer.

    It ignores keys while a dialog opens or its answer is handled: keys that were typed quickly and
    meant for the dialog would act on this screen.
    """

    HAS_STATUS: ClassVar[bool] = True
    """Whether there is a status line; without one, messages appear at the bottom."""
    _began_to_ask = 0.0
    _readings: Mapping[str, Reading] = MappingProxyType({})

    def begin_reading(self, name: str = "read", *, every: float = 0.0) -> Reading:
        """Start a `Reading`, which handles work on a background thread.

        Earlier work with the same name is stopped. The work also stops when the screen closes.
        `every`: the minimum number of seconds between two partial results.
        """
        if name in self._readings:
            self._readings[name].stop()
        reading = Reading(lambda: self.query("#header"), every=every)
        self._readings = {**self._readings, name: reading}
        return reading

    @on(events.Unmount)
    def _stop_readings(self) -> None:
        for reading in self._readings.values():
            reading.stop()

    def show_status(self, *words: str) -> None:
        """Show these words in the status line, most important first, leaving out ""."""
        self.status.show_parts([Content(one_line(word)) for word in words])

    def framed(self, *body: Widget) -> ComposeResult:
        """Yield a screen's widgets: the header, `body`, the status line and the footer."""
        yield BarLine(id="header")
        yield from body
        if self.HAS_STATUS:
            yield BarLine(id="status")
        yield FooterLine()

    @property
    def is_open(self) -> bool:
        """Whether the screen is still open; if it isn't, late results must not be shown."""
        return self.app.is_running and self.is_attached

    @property
    def header(self) -> BarLine:
        """The header."""
        return self.query_one("#header", BarLine)

    @property
    def header_room(self) -> int:
        """How many cells the header has, even before it is laid out for a new size."""
        return self.size.width - self.header.gutter.width

    @property
    def status(self) -> BarLine:
        """The status line."""
        return self.query_one("#status", BarLine)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action's key works: not if it is unavailable, or in a dialog.

        The screen part that implements the action says whether it is available. No key works while
        a dialog is opening or its answer is being handled.
        """
        del parameters
        return not self.is_mounted or (not self.asking and self.can(action))

    def run_worker(
        self,
        work: WorkType[ResultType],
        name: str | None = "",
        group: str = "default",
        *args: Any,
        **options: Any,
    ) -> Worker[ResultType]:
        """Run work in the background; if it may open a dialog, record when it started."""
        if group == DIALOG and name not in self.RARELY_ASKS:
            self._began_to_ask = Message().time
        return super().run_worker(work, name, group, *args, **options)

    @property
    def asking_since(self) -> float:
        """When the current dialog started to open, or 0 if there is none.

        A dialog is current until its answer has been handled. The time is on the clock that
        Textual's events use.
        """
        expected = any(worker.name not in self.RARELY_ASKS for worker in self._dialog_workers())
        return self._began_to_ask if expected else 0.0

    @property
    def asking(self) -> bool:
        """Whether a dialog is opening or its answer is still being handled."""
        return any(self._dialog_workers())

    def _dialog_workers(self) -> Iterator[Worker[Any]]:
        """Yield the workers that may open a dialog on this screen, if it is on top."""
        for worker in self.workers if self.is_active else ():
            if worker.node is self and worker.group == DIALOG and not worker.is_finished:
                yield worker

    def action_next_part(self) -> None:
        self.focus_next()

    def action_previous_part(self) -> None:
        self.focus_previous()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker.group == DIALOG and event.worker.is_finished:
            self.refresh_bindings()
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None and self.query("#status"):
            self.show_status(message_of(error))  # instead of "reading"


Guarded = TypeVar("Guarded", bound=FullScreen[Any])


class ScreenPart(KeyPart, Generic[Guarded]):
    """A part of a screen: the state and the key actions for one topic."""

    def __init__(self, screen: Guarded) -> None:
        self.screen = screen


PartT = TypeVar("PartT", bound=ScreenPart[Any])


Args = ParamSpec("Args")


Result = TypeVar("Result")


_Method = Callable[Concatenate[PartT, Args], Coroutine[Any, Any, Result]]


_Begin = Callable[Concatenate[PartT, Args], Worker[Result]]


def background(
    group: str, *, exclusive: bool = False
) -> Callable[[_Method[PartT, Args, Result]], _Begin[PartT, Args, Result]]:
    """Return a decorator that runs a screen part's method as a worker of the screen.

    `group`, `exclusive`: see Textual's `work` decorator.
    """

    def decorate(method: _Method[PartT, Args, Result]) -> _Begin[PartT, Args, Result]:
        @wraps(method)
        def begin(part: PartT, /, *args: Args.args, **kwargs: Args.kwargs) -> Worker[Result]:
            screen: FullScreen[Any] = part.screen
            return screen.run_worker(
                partial(method, part, *args, **kwargs),
                name=method.__name__,
                group=group,
                exclusive=exclusive,
            )

        return begin

    return decorate


def dialog(method: _Method[PartT, Args, Result]) -> _Begin[PartT, Args, Result]:
    """Decorate a screen part's method that opens a dialog.

    The method runs as a worker, and the part's screen ignores keys until the method has ended.
    """
    return background(DIALOG, exclusive=True)(method)
