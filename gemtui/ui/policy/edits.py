"""Pure functions that edit a policy's rules; each returns a new document.

They all raise PolicyError if the file is locked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gemtui.errors import PolicyError
from gemtui.policy.edit.document import Document
from gemtui.policy.model.rules import Decision, Rule
from gemtui.policy.words import decision_word
from gemtui.text import counted
from gemtui.ui.rules.draft import move_rule

FIRST_PRIORITY = 100
NEW_RULE = Rule(decision=Decision.ALLOW, priority=FIRST_PRIORITY)


class EditedDocument(NamedTuple):
    """The result of an edit.

    `what`: a description of the edit, for undo. `place`: the index of the edited rule; None if
    there is none, as after a deletion. `description`: a message about effects that can't be seen in
    the table of rules.
    """

    document: Document
    what: str
    place: int | None
    description: str = ""


Make = Callable[[Document], EditedDocument | None]
"""A function that returns an edited document, or None to change nothing."""


def add(document: Document, rule: Rule) -> EditedDocument:
    """Append a rule to the document."""
    changed = document.add(rule)
    return EditedDocument(changed, "add a rule", len(changed.rules) - 1)


def add_all(document: Document, rules: Sequence[Rule]) -> EditedDocument:
    """Append rules to the document."""
    for rule in rules:
        document = document.add(rule)
    what = counted(len(rules), "rule")
    message = f"Added {what}, not saved yet."
    return EditedDocument(document, f"add {what}", len(document.rules) - 1, message)


def add_missing(document: Document, rules: Sequence[Rule]) -> EditedDocument | None:
    """Append the rules that the document doesn't contain yet.

    Returns None if it contains them all.
    """
    missing = document.missing_rules(rules)
    return add_all(document, missing) if missing else None


def replace_rule(document: Document, place: int, rule: Rule) -> EditedDocument:
    """Replace the rule at index `place`."""
    return EditedDocument(document.replace(place, rule), f"change rule {place + 1}", place)


def edit_from_form(seen: Document, place: int | None, rule: Rule) -> Make:
    """Return an edit that applies what the user entered in a form.

    `seen`: the document when the form was opened. `place`: the index in `seen` of the rule to
    change; None adds `rule` instead. The edit finds the rule even if it has been moved since then,
    and raises PolicyError if it has been removed or changed.
    """
    if place is None:
        return lambda document: add(document, rule)
    text = seen.rules[place].text

    def change(document: Document) -> EditedDocument:
        texts = [entry.text for entry in document.rules]
        if texts[place : place + 1] == [text]:
            return replace_rule(document, place, rule)
        if text in texts:
            return replace_rule(document, texts.index(text), rule)
        raise PolicyError(_OTHERWISE)

    return change


def edit_by_index(seen: Document, make: Make) -> Make:
    """Return an edit like `make`, protected against changes made in the meantime.

    `make` refers to rules by index, so the returned edit raises PolicyError if the document to edit
    is no longer `seen`.
    """

    def change(document: Document) -> EditedDocument | None:
        if document is not seen:
            raise PolicyError(_OTHERWISE)
        return make(document)

    return change


_OTHERWISE = "That rule has changed in the meantime. Check it, then try again."


def duplicate(document: Document, place: int) -> EditedDocument:
    """Insert a copy of a rule right after it."""
    return EditedDocument(document.duplicate(place), f"duplicate rule {place + 1}", place + 1)


def remove_rule(document: Document, place: int) -> EditedDocument:
    """Remove a rule."""
    return EditedDocument(document.remove(place), f"delete rule {place + 1}", None)


def switch(document: Document, place: int) -> EditedDocument:
    """Turn a rule off or back on."""
    on = not document.rules[place].enabled
    what = f"turn rule {place + 1} {'on' if on else 'off'}"
    return EditedDocument(document.enable(place, on), what, place)


def move(document: Document, place: int, other: int, *, above: bool) -> EditedDocument | None:
    """Move the rule at index `place` past the one at `other`.

    `above`: move it directly above the rule `other`; otherwise directly below. Returns None if one
    of the two rules can't be read.
    """
    found = move_rule(document, place, other, above=above)
    if found is None:
        return None
    said = ""
    if found.priority is not None:
        side = "below" if above else "above"
        said = f"Priority changed to {found.priority}, to match the rule {side} it."
    lowered, passed = document.rules[place].rule, document.rules[other].rule
    if (
        not above
        and lowered
        and passed
        and lowered.decision is Decision.DENY is not passed.decision
    ):
        warning = (
            f"Warning: the {decision_word(passed.decision)} rule above it now takes precedence."
        )
        said = f"{warning} {said}".rstrip()
    return EditedDocument(found.document, f"move rule {place + 1}", found.place, said)
