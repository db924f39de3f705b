"""General-purpose dialogs: choose an option, confirm an action or enter text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ScreenResultType
from textual.widget import Widget

from gemtui.text import Clean, clean, visible_line
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Button, Dialog, Input, Label, Option, OptionList, Static
from gemtui.ui.kit.dialog_guard import LOW, DialogScreen
from gemtui.ui.kit.field_screen import FieldScreen
from gemtui.ui.kit.keys import BY_ID, Where, bindings


class Choice(NamedTuple):
    """An option to choose from: its id, its label and an explanation."""

    id: str
    label: Clean
    meaning: Clean = Clean("")


class ChooseScreen(DialogScreen[str]):
    """A dialog that returns the id of the chosen option, or None.

    `about`: lines of text to show above the options. `at`: the index of the option on which the
    cursor starts.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, question: Clean, about: Sequence[Clean], choices: Sequence[Choice], *, at: int = 0) -> None:
        super().__init__()
        self.asked = Message().time
        self._question, self._about, self._choices, self._at = question, about, choices, at

    def compose(self) -> ComposeResult:
        with Dialog(self._question, own("enter choose   esc close")):
            if self._about:
                yield Static(Content("\n").join(map(Content, (*self._about, Clean("")))))
            yield OptionList(*(Option(_row(choice), id=choice.id) for choice in self._choices))

    def on_mount(self) -> None:
        """Focus the options, so that the arrow keys work right away."""
        offered = self.query_one(OptionList)
        offered.highlighted = self._at
        offered.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)


def _row(choice: Choice) -> Content:
    return Content.assemble((choice.label, "bold"), "  ", (choice.meaning, "dim"))


def at_most(lines: Sequence[Clean], most: int) -> Sequence[Clean]:
    """Return the first `most` lines, plus a line like "and 3 more" if there are more."""
    rest = len(lines) - most
    return lines if rest <= 0 else [*lines[:most], own(f"and {rest:,} more")]


def left_alone(left: Sequence[str]) -> str:
    """Return a sentence that names the items that were left unchanged.

    Only the first three are named. `left`: one string for each item, with the reason.
    """
    more = f" and {len(left) - 3} more" if len(left) > 3 else ""
    return f"Left alone: {'; '.join(left[:3])}{more}"


class _QuestionScreen(DialogScreen[bool]):
    """A dialog that returns True only if the user confirms.

    The focus starts on the other button, so pressing enter doesn't confirm.
    """

    AUTO_FOCUS = "#no"
    VERTICAL_BREAKPOINTS = LOW
    _key = ""

    def __init__(self, question: Clean, about: Clean, lines: Sequence[Clean], *, yes: str, no: str) -> None:
        super().__init__()
        self.asked = Message().time
        self._question, self._about, self._lines = question, about, lines
        self._yes, self._no = yes, no

    def compose(self) -> ComposeResult:
        with Dialog(self._question):
            yield Label(Content.styled(self._about, "bold"))
            with VerticalScroll(can_focus=False, id="about"):
                yield Static(Content("\n").join(map(Content, self._lines)))
            with Horizontal(classes="buttons"):
                yield Button(own(f"{self._no} (n)"), id="no")
                yield Button(own(f"{self._yes} ({self._key})"), id="yes", variant="error")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_confirm(self) -> None:
        self.dismiss(True)

    def action_close(self) -> None:
        self.dismiss(False)


class ConfirmScreen(_QuestionScreen):
    """A dialog that returns True only if the user confirms with a key or the button.

    Its explanation can be scrolled.
    """

    BINDINGS = bindings(Where.CONFIRM)
    _key = BY_ID["confirm.confirm"].footer()

    def action_scroll_about(self, pages: int) -> None:
        """Scroll the explanation by one page; a negative number scrolls up."""
        about = self.query_one("#about")
        (about.scroll_page_down if pages > 0 else about.scroll_page_up)(animate=False)


async def confirm(
    app: App[Any], question: Clean, about: Clean, lines: Sequence[Clean] = (), *, yes: str, no: str
) -> bool:
    """Ask a question in a `ConfirmScreen`; return True only if the user confirms.

    `about`: the sentence in bold above the explanation. `lines`: the explanation. `yes`, `no`: the
    labels of the buttons.
    """
    asked = ConfirmScreen(question, about, lines, yes=yes, no=no)
    return await app.push_screen_wait(asked) is True


class ConfirmForGoodScreen(_QuestionScreen):
    """A confirmation dialog for an action that can't be undone.

    It has a confirmation key of its own, because users may press the usual one out of habit.
    """

    BINDINGS = bindings(Where.CONFIRM_FOR_GOOD)
    _key = BY_ID["confirm_for_good.confirm"].footer()


def labelled(label: str, field: Widget) -> Horizontal:
    """Return a form's row: a label followed by its field."""
    return Horizontal(Label(own(label)), field, classes="row")


def fact(name: str, value: Clean) -> Horizontal:
    """Return a dialog's row that shows a name and its value."""
    return Horizontal(Label(own(name)), Static(value), classes="fact")


class FormScreen(FieldScreen[ScreenResultType]):
    """A dialog with fields and two buttons: one applies their values, one cancels."""

    def buttons(self, take: str = "Apply") -> ComposeResult:
        """Yield the two buttons; to be called at the end of `compose`.

        `take`: the label of the button that applies the values.
        """
        with Horizontal(classes="buttons"):
            yield Button(own("Close (esc)"), id="no")
            yield Button(own(f"{take} (ctrl+s)"), id="yes", variant="primary")

    @on(Button.Pressed, "#no")
    def _no_pressed(self) -> None:
        self.action_close()

    @on(Button.Pressed, "#yes")
    def _yes_pressed(self) -> None:
        self.action_take()


class AskScreen(FieldScreen[str]):
    """A dialog that returns the text the user entered, or None.

    `problem`: a function that takes the entered text and returns why it is invalid, or "" if it is
    valid.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, question: Clean, *, value: str, problem: Callable[[str], str], subject: str = "") -> None:
        super().__init__(subject=f"{question} {subject}")
        self._question, self._value, self._problem = question, value, problem

    def compose(self) -> ComposeResult:
        with Dialog(self._question, own("enter continue   esc close")):
            yield Input(visible_line(self._value))
            yield Label(id="problem")

    def action_take(self) -> None:
        text = self.query_one(Input).value
        problem = self._problem(text)
        self.query_one("#problem", Label).update(clean(problem))
        if not problem:
            self.dismiss(text)
