"""Open, save, create, rename and delete policy files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from watchfiles import Change, awatch

from gemtui.errors import GemtuiError, PolicyChanged, PolicyError, message_of
from gemtui.files import path_exists
from gemtui.policy.edit import store
from gemtui.policy.edit.document import Document
from gemtui.policy.edit.store import OpenedPolicy, Origin, PolicyFile, open_policy
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import policy_files
from gemtui.policy.model.rules import Tier
from gemtui.runs.effective_policy import effective_policy
from gemtui.text import clean_line, short_path
from gemtui.ui.kit.app_base import DialogScreen
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList, Static
from gemtui.ui.kit.dialogs import AskScreen, Choice, ChooseScreen, confirm
from gemtui.ui.kit.editor import edit_file as edit_file
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.rules.draft import Draft, PolicyContext

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


SUGGESTED = "work"
"""The name suggested for a new policy."""


def relevant_policies(folder: Path) -> tuple[PolicyFile, ...]:
    """Return all policy files that can affect a run in `folder`, gemtui's own first.

    Blocking: reads files.
    """
    found = effective_policy(workspace=folder).settings
    return store.list_policies(found.policy_paths(folder), found.admin_policies(folder))


def policy_context(opened: OpenedPolicy | None, folder: Path) -> PolicyContext:
    """Return everything that affects decisions in `folder` besides the opened policy.

    This means the other policy files and the settings. `opened`: None means that the policy has no
    file yet. Blocking: reads files.
    """
    found = effective_policy(workspace=folder)
    files = [each for path in found.files for each in policy_files(path)]
    if opened is None or opened.file.path not in files:
        return PolicyContext(before=found.policy, setup=found.setup, problems=found.problems)
    at = files.index(opened.file.path)
    admin = Policy.load(found.admin, tier=Tier.ADMIN)
    return PolicyContext(
        before=Policy.load(files[:at]),
        after=Policy.load(files[at + 1 :]) + admin,
        setup=replace(found.setup, gemini_only=found.setup.gemini_only - {str(files[at])}),
        problems=found.problems,
    )


async def load(app: AppBase, file: Path | PolicyFile) -> OpenedPolicy | None:
    """Read a policy file; if that fails, tell the user why and return None."""
    with app.reporting():
        return await asyncio.to_thread(store.open_policy, file)
    return None


async def save_draft(app: AppBase, draft: Draft) -> bool:
    """Save the draft, and return whether that worked.

    The user is asked for a name if the draft has none, and for confirmation if the file isn't one
    of gemtui's own.
    """
    opened = draft.opened
    if opened is None:
        return await create_policy(app, draft, draft.document.text)
    if opened.file.read_only:
        app.show_message(f"{draft.name} can't be saved: {opened.file.read_only}", problem=True)
        return False
    if not draft.changed and not draft.moved_on and path_exists(opened.file.path):
        app.show_message("Nothing to save: the file is unchanged.")
        return True
    if opened.file.origin is not Origin.OURS and not await _on_purpose(app, opened.file):
        return False
    return await _write(app, draft, opened, draft.document, force=False)


async def _on_purpose(app: AppBase, file: PolicyFile) -> bool:
    answer = await app.push_screen_wait(
        ChooseScreen(
            clean_line(f"Save {file.path.name}?"),
            (
                clean_line(short_path(file.path)),
                "",
                "Gemini CLI loads this file in every session, not only in runs that",
                "gemtui starts. The old version is kept next to it as .bak.",
            ),
            (Choice("no", "Don't save"), Choice("yes", "Save it")),
        )
    )
    return answer == "yes"


async def _write(
    app: AppBase, draft: Draft, opened: OpenedPolicy, document: Document, *, force: bool
) -> bool:
    try:
        saved = await asyncio.to_thread(store.save_policy, opened, document, force=force)
    except PolicyChanged:
        return await _changed(app, draft, opened, document)
    except (PolicyError, OSError) as error:
        app.show_message(f"The policy was not saved: {message_of(error)}", problem=True)
        return False
    draft.wrote(saved)
    app.show_message(_saved_text(saved.file))
    return True


def _saved_text(file: PolicyFile) -> str:
    """Return a message that a policy is saved, and how to use one that applies to no run yet."""
    if file.origin is not Origin.OURS:
        return f"Saved: {short_path(file.path)}"
    return f"Saved: {short_path(file.path)}. Press {BY_ID['policy.run'].footer()} to run with it."


async def _changed(app: AppBase, draft: Draft, opened: OpenedPolicy, document: Document) -> bool:
    """Let the user choose whether to keep the draft or the file.

    This is for a file that was changed or deleted after it was opened. Returns whether the draft
    was saved.
    """
    keep = Choice("keep", "Keep editing", "nothing is written")
    if path_exists(opened.file.path):
        head, said = "The file has changed on disk", "Another program changed it."
        reload = Choice("reload", "Reload it", "press u to get your changes back")
        write = Choice("write", "Overwrite it", "with the text shown here")
        choices = [keep, reload, write]
    else:
        head, said = "The file was deleted", "Another program deleted it."
        choices = [keep, Choice("write", "Save it again", "with the text shown here")]
    lines = (clean_line(short_path(opened.file.path)), said)
    answer = await app.push_screen_wait(ChooseScreen(head, lines, choices))
    if answer == "write":
        return await _write(app, draft, opened, document, force=True)
    if answer == "reload":
        fresh = await load(app, opened.file)
        if fresh is not None:
            draft.read(fresh)
    return False


def _name_problem(name: str) -> str:
    """Return why a policy can't have this name, or "" if it can.

    Only an empty name is reported here; other problems are reported when the policy is created.
    """
    return "" if name.strip() else "Enter a name for the policy."


async def create_policy(app: AppBase, draft: Draft, text: str) -> bool:
    """Create one of gemtui's policies with this text; return False if cancelled.

    The user is asked for a name until one is valid.
    """
    name = SUGGESTED
    while True:
        asked = await app.push_screen_wait(
            AskScreen("Name for the policy", value=name, problem=_name_problem)
        )
        if asked is None:
            return False
        name = asked.strip()
        with app.reporting():
            opened = await asyncio.to_thread(store.create, name, text)
            draft.wrote(opened)
            app.show_message(_saved_text(opened.file))
            return True


async def ask_new_name(app: AppBase, file: PolicyFile) -> Path | None:
    """Ask for a new name and rename one of gemtui's policies.

    Returns its new path; None if the user cancels or renaming fails.
    """
    asked = await app.push_screen_wait(
        AskScreen(clean_line(f"New name for {file.name}"), value=file.name, problem=_name_problem)
    )
    if asked is None or asked.strip() == file.name:
        return None
    with app.reporting():
        return await asyncio.to_thread(store.rename_policy, file.path, asked.strip())
    return None


async def confirm_deletion(app: AppBase, file: PolicyFile) -> bool:
    """Delete one of gemtui's policies if the user confirms.

    Returns whether it was deleted.
    """
    if file.origin is not Origin.OURS:
        app.show_message("Only policies created with gemtui can be deleted here.", problem=True)
        return False
    lines = [clean_line(short_path(file.path)), "This can't be undone."]
    question, name = "Delete this policy?", clean_line(file.name)
    if not await confirm(app, question, name, lines, yes="Delete", no="Keep"):
        return False
    with app.reporting():
        await asyncio.to_thread(store.delete_policy, file.path)
        app.show_message(f"Deleted: {file.name}")
        return True
    return False


async def may_close(app: AppBase, draft: Draft, *, leaving: str) -> bool:
    """Return whether the draft may be closed; ask the user about unsaved changes.

    `leaving`: what happens next, as a verb, such as "quit".
    """
    if not draft.changed:
        return True
    answer = await app.push_screen_wait(
        ChooseScreen(
            clean_line(f"{draft.name} has unsaved changes"),
            (),
            (
                Choice("stay", "Stay", "keep editing"),
                Choice("save", f"Save and {leaving}"),
                Choice("drop", f"{leaving.capitalize()}", "the changes are lost"),
            ),
        )
    )
    if answer == "save":
        return await save_draft(app, draft)
    return answer == "drop"


async def ask_before_run(app: AppBase, draft: Draft) -> str | None:
    """Ask whether a run should use the draft, or the file without unsaved changes.

    Returns "save" if the draft is to be saved first, "saved" if the file is to be used without the
    changes, and None if the user cancels.
    """
    return await app.push_screen_wait(
        ChooseScreen(
            clean_line(f"{draft.name} has unsaved changes"),
            ("Runs use the saved file, without your unsaved changes.",),
            (
                Choice("save", "Save and run"),
                Choice("saved", "Run", "with the saved file"),
            ),
        )
    )


async def save_to_run(app: AppBase) -> bool:
    """Ask whether to save a policy that has no file yet.

    A run can't use it unless it is saved.
    """
    return await confirm(
        app,
        "Save the new policy?",
        "A run can only use a saved policy.",
        yes="Save and run",
        no="Go back",
    )


def edit_saved(app: AppBase, draft: Draft) -> None:
    """Open the saved file in the user's editor, unless the draft has unsaved changes."""
    if draft.opened is None or draft.changed:
        app.show_message("Save the policy first, because the editor opens the saved file.")
    else:
        edit_file(app, str(draft.opened.file.path), None, None)


SETTLED = 50
"""Milliseconds without further writes before a change to a file is reported."""


async def watch_file(file: PolicyFile) -> AsyncGenerator[OpenedPolicy]:
    """Yield the file's contents now, and again each time it has been written.

    They are yielded at the start because the file may have changed since the caller read it. While
    the file is missing or can't be read, nothing is yielded. The generator ends if the file's
    folder can't be watched.
    """
    stop = asyncio.Event()
    name = file.path.name

    def concerns(_change: Change, changed: str) -> bool:
        return Path(changed).name == name

    if (fresh := await asyncio.to_thread(_read, file)) is not None:
        yield fresh
    try:
        changes = awatch(
            file.path.parent,
            watch_filter=concerns,
            recursive=False,
            step=SETTLED,
            stop_event=stop,
            ignore_permission_denied=True,
        )
        async with aclosing(changes) as batches:
            async for _ in batches:
                if (fresh := await asyncio.to_thread(_read, file)) is not None:
                    yield fresh
    except (OSError, RuntimeError):  # RuntimeError: raised by watchfiles
        return
    finally:
        stop.set()


def _read(file: PolicyFile) -> OpenedPolicy | None:
    try:
        return open_policy(file)
    except (GemtuiError, OSError):
        return None


_ORIGINS = {
    Origin.OURS: "Your gemtui policies",
    Origin.USER: "Gemini CLI's own folder (used in every session)",
    Origin.SETTINGS: "Listed in Gemini CLI's settings",
    Origin.ADMIN: "Set by the administrator",
}


class FileAction(StrEnum):
    """The actions in the list of policy files."""

    OPEN = "open"
    NEW = "new"
    RENAME = "rename"
    DELETE = "delete"


class FileChoice(NamedTuple):
    """An action and the policy file that the user has chosen for it (None for a new one)."""

    what: FileAction
    file: PolicyFile | None = None


class PolicyFilesScreen(DialogScreen[FileChoice]):
    """A dialog with all policy files; it returns the user's choice, or None.

    `current`: the path of the file being edited, which is marked.
    """

    BINDINGS = bindings(Where.POLICY_FILES)

    def __init__(self, files: Sequence[PolicyFile], current: Path | None) -> None:
        super().__init__()
        self._files, self._current = files, current

    def compose(self) -> ComposeResult:
        with Dialog("Policies", "enter open  n new  r rename  d delete  esc close"):
            if not self._files:
                yield Static("No policies yet. Press n to create one.")
            yield OptionList(*self._options())

    def _options(self) -> Iterator[Option]:
        origin: Origin | None = None
        for at, file in enumerate(self._files):
            if file.origin is not origin:
                origin = file.origin
                yield Option(Content.styled(_ORIGINS[origin], "bold"), disabled=True)
            yield Option(self._row(file), id=str(at))

    def _row(self, file: PolicyFile) -> Content:
        here = "open now  " if file.path == self._current else ""
        why = f"  {file.read_only}" if file.read_only else ""
        return Content.assemble(
            f"  {clean_line(file.name):<20} ",
            (here, "$text-accent"),
            (clean_line(f"{short_path(file.path)}{why}"), "dim"),
        )

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.focus()
        paths = [file.path for file in self._files]
        if self._current in paths:
            options.highlighted = options.get_option_index(str(paths.index(self._current)))
        else:
            options.action_first()

    @property
    def _chosen(self) -> PolicyFile | None:
        option = self.query_one(OptionList).highlighted_option
        return None if option is None or option.id is None else self._files[int(option.id)]

    @on(OptionList.OptionSelected)
    def _opened(self) -> None:
        self.dismiss(FileChoice(FileAction.OPEN, self._chosen))

    def action_new(self) -> None:
        self.dismiss(FileChoice(FileAction.NEW))

    def action_ask(self, what: str) -> None:
        if self._chosen is not None:
            self.dismiss(FileChoice(FileAction(what), self._chosen))
