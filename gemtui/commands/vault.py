"""`gemtui vault`: gemtui's archive of sessions that Gemini CLI deletes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.agent.run_folder import RunFolder
from gemtui.commands.output import (
    fact_line,
    json_to_stdout,
    lines_to_stdout,
    note,
    progress,
    require_yes,
)
from gemtui.commands.session_choice import index_of_user, marks_of_user, session_named
from gemtui.commands.shared_options import (
    Moment,
    by_default,
    completions,
    json_option,
    project_option,
    yes_option,
)
from gemtui.errors import SessionNotFound
from gemtui.extension.status import INSTALL, HookState, extension_state
from gemtui.jsonout import fields, iso
from gemtui.kept.cleanup import SETTING, retention
from gemtui.kept.contents import (
    VaultStatus,
    contents,
    delete_from_vault,
    deletion_date_text,
    is_damaged_in_store,
    only_kept,
    removal,
    replaced_files,
    vault_status,
)
from gemtui.kept.restoring import Restored, restore_from_run
from gemtui.kept.restoring import restore_from_vault as put_back
from gemtui.kept.run_copies import backup_of, last_copies
from gemtui.kept.vault import keep_all, switch_off, turn_on
from gemtui.marks import Mark
from gemtui.paths import gemini_home, runs_dir
from gemtui.runs.listing import find_run
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import read_store
from gemtui.sessions.catalog.summary import Flag, Summary, id_start, named
from gemtui.system import Unported, why_not
from gemtui.text import clean_line, counted, ellipsis, relative, short_path, size

_TOLD = 20
"""The maximum number of sessions to list; --json lists all."""
_TITLE = 40


def _kept_ids(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return completions(
        ((session.id, clean_line(session.title)) for session in _status().kept), incomplete
    )


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def vault(ctx: click.Context, as_json: bool) -> None:
    """Keep sessions that Gemini CLI deletes.

    Gemini CLI deletes sessions that have not been used for 30 days, and some others. While the
    vault is on, each session file is also saved in gemtui's own folder, where it can be read and
    restored. Without a command, show which deleted sessions the vault has, and which will be
    deleted next.
    """
    by_default(ctx, status, as_json=as_json)


@vault.command()
@json_option
def status(as_json: bool) -> None:
    """Show which deleted sessions the vault has, and what Gemini CLI will delete next, and why."""
    state = _status()
    if as_json:
        json_to_stdout(
            {
                "vault": state.contents,
                "hook": state.hook,
                "kept": [session.id for session in state.kept],
                "setting": SETTING,
                "next": state.hits,
                "first": _first(state),
            }
        )
        return
    rows = _rows(state, datetime.now(UTC))
    lines_to_stdout(fact_line(name, clean_line(text)) for name, text in rows)


@vault.command()
@json_option
def on(as_json: bool) -> None:
    """Turn the vault on, so that all current and future sessions are saved."""
    turn_on()
    kept = keep_all(
        gemini_home(), told=lambda done, total: progress("saving", total, "files")(done)
    )
    if as_json:
        json_to_stdout({"on": True, "new": kept})
        return
    held = contents()
    note(f"the vault is on: {counted(held.files, 'file')} in {held.folder}")
    note(f"the vault takes up {size(held.own_bytes)}")
    if extension_state(os.environ).state is not HookState.READY:
        how = why_not(Unported.EXTENSION) or INSTALL
        note(f"sessions are saved while gemtui runs; to save them after every turn: {how}")


@vault.command()
@json_option
def off(as_json: bool) -> None:
    """Turn the vault off. Saved sessions are kept."""
    switch_off()
    held = contents()
    if as_json:
        json_to_stdout({"on": False})
        return
    note(
        f"the vault is off; {counted(held.kept, 'file')} that agents have deleted can still be read"
    )
    if held.files:
        note(
            f"nothing in {held.folder} was deleted: to delete sessions that only the vault has, "
            "use gemtui vault prune"
        )


@vault.command()
@click.argument("id", shell_complete=_kept_ids)
@json_option
def restore(id: str, as_json: bool) -> int:
    """Restore a session, so that Gemini CLI lists and resumes it again.

    The session is copied from the vault, or from a run that holds the only copy. Another
    conversation is never overwritten; a damaged file of the session is moved to the vault. A first
    line that is corrupt or missing is repaired, even without the vault. A session that Gemini CLI
    would delete again as too old is marked as used today. Exit code 1 if nothing was restored.
    """
    return restore_session(id, as_json=as_json)


@vault.command()
@click.option(
    "--before",
    metavar="DATE",
    type=Moment(),
    help="Delete only sessions last used before DATE, such as 90d.",
)
@project_option("Delete only sessions of this folder.")
@yes_option
@json_option
def prune(before: datetime | None, project: Path | None, yes: bool, as_json: bool) -> int:
    """Permanently delete sessions from the vault, after asking for confirmation.

    By default, everything that only the vault has is deleted: sessions that agents have deleted,
    states of its sessions that their files no longer contain, and the damaged files that a restore
    replaced. Exit code 1 if there is nothing to delete.
    """
    removed = removal(
        only_kept(_snapshot().sessions, project=project, before=before),
        replaced_files(gemini_home(), project=project, before=before),
    )
    if removed.names and not yes:
        now, marks = datetime.now(UTC), marks_of_user()
        lines = _headed("", [_about(session, marks, now) for session in removed.sessions])
        require_yes((clean_line(line) for _, line in lines), f"Permanently delete {removed}?")
    freed = delete_from_vault(removed)
    if as_json:
        json_to_stdout({"removed": list(map(str, removed.names)), "bytes": freed})
    elif removed.names:
        note(f"deleted {removed}")
    else:
        note("the vault has no matching deleted sessions")
    return 0 if removed.names else 1


def _first(found: VaultStatus) -> dict[str, Any] | None:
    if found.first is None:
        return None
    session, when = found.first
    return {"session": session.id, "from": iso(when)}


def _status() -> VaultStatus:
    hook = extension_state(os.environ).state is HookState.READY
    return vault_status(_snapshot(), os.environ, datetime.now(UTC), hook=hook)


def _rows(found: VaultStatus, now: datetime) -> Iterator[tuple[str, str]]:
    marks = marks_of_user()
    if found.contents.on or found.contents.files:
        yield from found.rows()
    else:
        yield "vault", "off: turn it on with gemtui vault on"
    if found.contents.on and not found.hook:
        how = why_not(Unported.EXTENSION) or f"install the extension: {INSTALL}"
        yield "", f"to save after every turn, {how}"
    kept = []
    for session in found.kept:
        damage = ": damaged in its place" if is_damaged_in_store(session) else ""
        kept.append(f"{_about(session, marks, now)}{damage}")
    yield from _headed("kept", kept or [_NOTHING])
    doomed = [f"{_about(hit.session, marks, now)}: {hit.words()}" for hit in found.listed]
    doomed += [
        f"{hit.session.path.name}: {hit.words()}" for hit in found.hits if hit.session.hidden
    ]
    yield from _headed("next", doomed or ["Gemini CLI would delete nothing at its next start"])
    if found.hits:
        yield "", "Gemini CLI will delete these when it next starts in their projects;"
    if found.first is not None:
        session, when = found.first
        yield "then", f"{_about(session, marks, now)}: {deletion_date_text(when)};"
    if found.hits or found.first is not None:
        settings = short_path(gemini_home() / "settings.json")
        yield "", f"to prevent that, set {SETTING} = false in {settings}"


_NOTHING = "no deleted sessions"


def _headed(name: str, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a row for each line: `name` in the first row only, and the line.

    If there are too many lines, the last row only says how many more there are.
    """
    for at, line in enumerate(lines[:_TOLD]):
        yield "" if at else name, line
    if len(lines) > _TOLD:
        yield "", f"and {len(lines) - _TOLD:,} more (--json has all)"


def _about(session: Summary, marks: Mapping[str, Mark], now: datetime) -> str:
    title = ellipsis(clean_line(named(session, marks).title), _TITLE)
    return f"{clean_line(id_start(session.id))}  {relative(session.when, now):>3}  {title}"


def restore_session(id: str, *, by_run: bool = False, as_json: bool) -> int:
    """Restore a session's missing files from the vault, or from a run's backup.

    Returns 1 if no file was missing. `by_run`: `id` may also be a run's id. Raises SessionNotFound,
    SessionAmbiguous, RunNotFound, RunAmbiguous, RestoreFailed, OSError.
    """
    keeper, now = _keeper_of(id, by_run=by_run), datetime.now(UTC)
    rule_of = partial(retention, os.environ)
    if isinstance(keeper, RunFolder):
        kept = backup_of(keeper)
        ids = {"session": None if kept is None else kept.session_id, "run": keeper.id}
        outcome = restore_from_run(keeper, rule_of, now)
    else:
        ids = {"session": keeper.id, "run": None}
        outcome = put_back(keeper, gemini_home(), rule_of(keeper.folder), now)
    if as_json:
        restored = fields(outcome, "removed", "replaced", "renewed", restored="paths")
        json_to_stdout({**ids, **restored, "in_the_way": list(outcome.in_the_way)})
    else:
        _say(outcome)
    return 0 if outcome.paths else 1


def _keeper_of(id: str, *, by_run: bool) -> Summary | RunFolder:
    """Return the session to restore, or the folder of the run that has its only copy.

    `by_run`: `id` may also be a run's id. If several runs have a copy of the session, the folder of
    the newest run is returned.
    """
    folder = runs_dir()
    copies = [copy for copy in last_copies(folder) if copy.is_named(id)]
    lost = copies[0].folder if len({copy.session_id for copy in copies}) == 1 else None
    if by_run:
        return lost or find_run(folder, id).folder
    try:
        session = session_named(id)
    except SessionNotFound:
        if lost is None:
            raise
        return lost
    return session if lost is None or Flag.KEPT in session.flags else lost


def _say(done: Restored) -> None:
    for path in done.paths:
        note(f"restored {path}")
    if done.replaced is not None:
        note(f"the file that was there is now {done.replaced}")
    for path in done.removed:
        note(
            f"removed {path}, because Gemini CLI would have deleted the session along with it; "
            "the vault has a copy"
        )
    if done.renewed:
        note(
            "marked the session as used today, because Gemini CLI would have deleted it as too old"
        )
    for path, copy in done.in_the_way.items():
        note(f"{path} contains less than {copy}: move {path.name} away, then restore again")
    if not done.paths and not done.in_the_way:
        note("this run has no copies of missing files")


def _snapshot() -> Snapshot:
    with index_of_user() as index:
        return read_store(index)
