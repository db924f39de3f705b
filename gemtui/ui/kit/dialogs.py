"""General-purpose dialogs: choose an option or theme, confirm an action, fill in fields.

In a dialog with fields, enter submits them all, and esc closes the dialog but keeps what was typed.
What may be typed as the name of a new file is decided here too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from textual import events, on
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ScreenResultType
from textual.widget import Widget

from gemtui.files import is_folder, path_exists, resolved
from gemtui.paths import current_folder, typed_path
from gemtui.text import clean, clean_line, visible_line
from gemtui.ui.kit.app_base import DialogScreen, FieldValues
from gemtui.ui.kit.clean_widgets import (
    Button,
    Dialog,
    Entered,
    Input,
    Label,
    Option,
    OptionList,
    Static,
)
from gemtui.ui.kit.filtering import matcher
from gemtui.ui.kit.keys import BY_ID, Where, bindings

if TYPE_CHECKING:
    from textual.widgets import TextArea


class Choice(NamedTuple):
    """An option to choose from: its id, its label and an explanation."""

    id: str
    label: str
    meaning: str = ""


def _row(choice: Choice) -> Content:
    return Content.assemble((choice.label, "bold"), "  ", (choice.meaning, "dim"))


class ChooseScreen(DialogScreen[str]):
    """A dialog that returns the id of the chosen option, or None.

    `about`: lines of text to show above the options. `at`: the index of the option on which the
    cursor starts. `filters`: whether a field above the options filters them while the user types.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(
        self,
        question: str,
        about: Sequence[str],
        choices: Sequence[Choice],
        *,
        at: int = 0,
        filters: bool = False,
    ) -> None:
        super().__init__()
        self._filters, self._text = filters, ""
        self.asked = Message().time
        self._question, self._about, self._choices, self._at = question, about, choices, at

    def compose(self) -> ComposeResult:
        with Dialog(self._question, "enter choose   esc close"):
            if self._about:
                yield Static(Content("\n").join(map(Content, (*self._about, ""))))
            if self._filters:
                yield Horizontal(Static("/"), Input(), classes="search")
            id = "filtered" if self._filters else None
            yield OptionList(*self._options(self._choices), id=id)

    def _options(self, choices: Sequence[Choice]) -> list[Option]:
        return [Option(_row(choice), id=choice.id) for choice in choices]

    @property
    def _offered(self) -> OptionList:
        return self.query_one(OptionList)

    def on_mount(self) -> None:
        """Focus the field or the options, so that keys work right away."""
        self._offered.highlighted = self._at
        self.query_one(Input if self._filters else OptionList).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._filter(event.value)

    def _filter(self, text: str) -> None:
        if text == self._text:
            return
        self._text = text
        matches = matcher(text)
        matching = [choice for choice in self._choices if matches(" ".join(choice[1:]))]
        self._offered.set_options(self._options(matching))
        self._offered.highlighted = 0 if matching else None

    def on_key(self, event: events.Key) -> None:
        """Move the cursor of the options while the field has the focus."""
        pages = {"pagedown": 1, "pageup": -1}
        if self._offered.has_focus:
            return
        if event.key == "down":
            self._offered.action_cursor_down()
        elif event.key == "up":
            self._offered.action_cursor_up()
        elif event.key in pages:
            self._offered.action_page(pages[event.key])

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        self._filter(event.value)  # the message about the change may still be on its way
        self._offered.action_select()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)


class ThemeScreen(DialogScreen[str]):
    """A dialog that returns the chosen theme.

    Esc restores the old theme and returns None.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, before: str) -> None:
        super().__init__()
        self._before = before

    def compose(self) -> ComposeResult:
        """Yield the list of themes: gemtui's own first, then Textual's."""
        names = sorted(self.app.available_themes, key=lambda name: (not _ours(name), name))
        with Dialog("Theme", "enter apply   esc keep the old theme"):
            yield OptionList(*(Option(clean_line(name), id=name) for name in names))

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = options.get_option_index(self._before)

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_id is not None:
            self.app.theme = event.option_id

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_close(self) -> None:
        self.app.theme = self._before
        self.dismiss(None)


def _ours(name: str) -> bool:
    return name.startswith("gemtui")


class _QuestionScreen(DialogScreen[bool]):
    """A dialog that returns True only if the user confirms.

    The focus starts on the other button, so pressing enter doesn't confirm.
    """

    AUTO_FOCUS = "#no"
    _key = ""

    def __init__(
        self, question: str, about: str, lines: Sequence[str], *, yes: str, no: str
    ) -> None:
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
                yield Button(f"{self._no} (n)", id="no")
                yield Button(f"{self._yes} ({self._key})", id="yes", variant="error")

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
    app: App[Any], question: str, about: str, lines: Sequence[str] = (), *, yes: str, no: str
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


KEPT = "What you typed is kept. Open this again to continue."


BACK = "What you typed before has been restored. Press esc to discard it."


DISCARDED = "What you typed has been discarded."


class FieldScreen(DialogScreen[ScreenResultType]):
    """A dialog with fields that remembers what was typed if it is closed with esc.

    `subject`: what the dialog is about. Dialogs of one class whose fields start with the same
    values need different subjects, so that one doesn't restore what was typed into another.
    """

    TAKES_TEXT = True

    def __init__(self, *, subject: str = "") -> None:
        super().__init__()
        self._subject = subject
        self._shown = self._typed = False
        self._began: FieldValues = ()
        self._restored: FieldValues | None = None

    @abstractmethod
    def action_take(self) -> object:
        """Close the dialog and return its fields' values, if they are valid."""

    @on(Input.Submitted)
    @on(Entered)
    def _take_by_enter(self) -> None:
        self.action_take()

    # --- drafts ---------------------------------------------------------------------------------

    @on(events.ScreenResume)
    def _restore_soon(self) -> None:
        self.app.call_later(self._restore)  # before the screen accepts keys

    def _restore(self) -> None:
        """Restore the values that were typed before this dialog was last closed.

        Runs once, as soon as the dialog is shown.
        """
        if self._shown or not self.is_attached:
            return
        self._shown, self._began = True, self._field_values()
        self._restored = self.gemtui.drafts.pop(self._draft_key, None)
        if self._restored is not None:
            for field, value in zip(self._fields(), self._restored, strict=True):
                setattr(field, _attribute(field), value)
            self.gemtui.show_message(BACK)

    @on(Input.Changed)
    def _note_typing(self, event: Input.Changed) -> None:
        """Record that the user has typed, unless the dialog itself has changed the field."""
        self._typed = self._typed or event.input.has_focus

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Record that the user has typed into a text area.

        This method doesn't use `@on`, because that would import `TextArea` here.
        """
        self._typed = self._typed or event.text_area.has_focus

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with `result`, unless the dialog already has an answer.

        If `result` is None, the typed values are kept as a draft for next time. A draft that was
        restored but not edited is discarded.
        """
        if self._answer is None and self._shown and result is None:
            values = self._field_values()
            if self._typed and values not in (self._began, self._restored):
                self.gemtui.drafts[self._draft_key] = values
                self.app.call_later(self.gemtui.show_message, KEPT)
            elif self._restored is not None:
                self.app.call_later(self.gemtui.show_message, DISCARDED)
        return super().dismiss(result)

    @property
    def _draft_key(self) -> tuple[object, ...]:
        return type(self).__name__, self._subject, self._began

    def _fields(self) -> list[Widget]:
        return list(self.query("Input, TextArea, Tick, Select").results(Widget))

    def _field_values(self) -> FieldValues:
        return tuple(getattr(field, _attribute(field)) for field in self._fields())


def _attribute(field: Widget) -> str:
    return "value" if hasattr(field, "value") else "text"


class AskScreen(FieldScreen[str]):
    """A dialog that returns the text the user entered, or None.

    `problem`: a function that takes the entered text and returns why it is invalid, or "" if it is
    valid.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(
        self, question: str, *, value: str, problem: Callable[[str], str], subject: str = ""
    ) -> None:
        super().__init__(subject=f"{question} {subject}")
        self._question, self._value, self._problem = question, value, problem

    def compose(self) -> ComposeResult:
        with Dialog(self._question, "enter continue   esc close"):
            yield Input(visible_line(self._value))
            yield Label(id="problem")

    def action_take(self) -> None:
        text = self.query_one(Input).value
        problem = self._problem(text)
        self.query_one("#problem", Label).update(clean(problem))
        if not problem:
            self.dismiss(text)


class FormScreen(FieldScreen[ScreenResultType]):
    """A dialog with fields and two buttons: one applies their values, one cancels."""

    def buttons(self, take: str = "Apply") -> ComposeResult:
        """Yield the two buttons; to be called at the end of `compose`.

        `take`: the label of the button that applies the values.
        """
        with Horizontal(classes="buttons"):
            yield Button("Close (esc)", id="no")
            yield Button(f"{take} (ctrl+s)", id="yes", variant="primary")

    @on(Button.Pressed, "#no")
    def _no_pressed(self) -> None:
        self.action_close()

    @on(Button.Pressed, "#yes")
    def _yes_pressed(self) -> None:
        self.action_take()


def labelled(label: str, field: Widget) -> Horizontal:
    """Return a form's row: a label followed by its field."""
    return Horizontal(Label(label), field, classes="row")


def fact(name: str, value: str | Content) -> Horizontal:
    """Return a dialog's row that shows a name and its value."""
    return Horizontal(Label(name), Static(value), classes="fact")


def at_most(lines: Sequence[str], most: int) -> Sequence[str]:
    """Return the first `most` lines, plus a line like "and 3 more" if there are more."""
    rest = len(lines) - most
    return lines if rest <= 0 else [*lines[:most], f"and {rest:,} more"]


def left_alone(left: Sequence[str]) -> str:
    """Return a sentence that names the items that were left unchanged.

    Only the first three are named. `left`: one string for each item, with the reason.
    """
    more = f" and {len(left) - 3} more" if len(left) > 3 else ""
    return f"Left alone: {'; '.join(left[:3])}{more}"


def new_file_path(name: str) -> Path:
    """Return the path for a typed name, which may be relative to the current folder."""
    return current_folder() / typed_path(name.strip())


def free_name(stem: str, suffix: str) -> str:
    """Return a name for a new file, with a number between stem and suffix if needed."""
    for number in range(1, 1000):
        more = f"-{number}" if number > 1 else ""
        name = f"{stem}{more}{suffix}"
        if not path_exists(new_file_path(name)):
            return name
    return stem + suffix


def file_name_problem(name: str, *, forbidden: Path, folder: bool = False) -> str:
    """Return why no file can be created under this name, or "" if one can.

    `forbidden`: Gemini CLI's folder, with symlinks resolved; gemtui must not write there. `folder`:
    whether the name is for a folder, which may already exist.
    """
    path = new_file_path(name)
    if not name.strip():
        return f"Enter a {'folder' if folder else 'file'} name."
    if is_folder(path) and not folder:
        return "That is a folder. Enter a file in it."
    if path_exists(path) and not is_folder(path):
        return "That file already exists. Choose another name."
    if not is_folder(path.parent):
        return "That folder does not exist."
    if resolved(path).is_relative_to(forbidden):
        return "That folder belongs to Gemini CLI. Choose another one."
    return ""
