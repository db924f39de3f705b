"""What can be done to a policy's rules: each gives the new document and what to say; pure.

All raise PolicyError for a file that is locked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gemtui.errors import PolicyError
from gemtui.policy.edit.document import Document
from gemtui.policy.model.rules import Decision, Rule
from gemtui.text import counted
from gemtui.ui.policy.levels import SimplePolicy, written
from gemtui.ui.rules.draft import moved

FIRST_PRIORITY = 100
NEW_RULE = Rule(decision=Decision.ALLOW, priority=FIRST_PRIORITY)


class Edit(NamedTuple):
    """A new document. `what`: was done; `place`: of the rule it was done to, None = none is left.

    `said`: what a person may not see from the table.
    """

    document: Document
    what: str
    place: int | None
    said: str = ""


Make = Callable[[Document], Edit | None]
"""Makes a change of the document as it is by then; None = there is none."""


def add(document: Document, rule: Rule) -> Edit:
    """A new rule, the last of the file."""
    changed = document.add(rule)
    return Edit(changed, "add a rule", len(changed.rules) - 1)


def add_all(document: Document, rules: Sequence[Rule]) -> Edit:
    """New rules, the last of the file."""
    for rule in rules:
        document = document.add(rule)
    what = counted(len(rules), "rule")
    said = f"Added {what}, not saved yet."
    return Edit(document, f"add {what}", len(document.rules) - 1, said)


def replace_rule(document: Document, place: int, rule: Rule) -> Edit:
    """Another form of a rule."""
    return Edit(document.replace(place, rule), f"change rule {place + 1}", place)


def filled_in(seen: Document, place: int | None, rule: Rule) -> Make:
    """What a form says: a new rule, or another form of the one at `place` of `seen`.

    That rule is changed wherever it stands by then; the change raises PolicyError where something
    else has taken it away or changed it.
    """
    if place is None:
        return lambda document: add(document, rule)
    text = seen.rules[place].text

    def change(document: Document) -> Edit:
        texts = [entry.text for entry in document.rules]
        if texts[place : place + 1] == [text]:
            return replace_rule(document, place, rule)
        if text in texts:
            return replace_rule(document, texts.index(text), rule)
        raise PolicyError("That rule is no longer as it was: look, then do it again.")

    return change


def duplicate(document: Document, place: int) -> Edit:
    """The same rule again, right after it."""
    return Edit(document.duplicate(place), f"duplicate rule {place + 1}", place + 1)


def remove(document: Document, place: int) -> Edit:
    """Without a rule."""
    return Edit(document.remove(place), f"delete rule {place + 1}", None)


def switch(document: Document, place: int) -> Edit:
    """A rule off, or on again."""
    on = not document.rules[place].enabled
    what = f"switch rule {place + 1} {'on' if on else 'off'}"
    return Edit(document.enable(place, on), what, place)


def move(document: Document, place: int, other: int, *, above: bool) -> Edit | None:
    """A rule past another one, as the table shows them; None where that can't be."""
    found = moved(document, place, other, above=above)
    if found is None:
        return None
    said = ""
    if found.priority is not None:
        side = "before" if above else "after"
        said = f"It has priority {found.priority} now, as the rule that it stands {side}."
    return Edit(found.document, f"move rule {place + 1}", found.place, said)


def set_levels(document: Document, simple: SimplePolicy, what: str) -> Edit:
    """Other levels or lists. Raises OptionError for a name that no tool can have."""
    return Edit(written(document, simple), what, None)
