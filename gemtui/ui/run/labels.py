"""Words about runs: their states, outcomes and options.

All functions here are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from textual.content import Content

from gemtui.agent.detect import Detected
from gemtui.agent.events import Init, Prompted, ToolResult
from gemtui.agent.options import (
    AgentOptions,
    OptionKind,
    RunOption,
    dollars_text,
    option_value,
    run_options,
    seconds_text,
)
from gemtui.agents import CAN, WORDS, Agent, Can
from gemtui.notify import Notification
from gemtui.paths import current_folder
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.ending import Status
from gemtui.text import clean, clean_line, counted, duration, ellipsis, short_path
from gemtui.transcript.model import Consent, ToolCall
from gemtui.transcript.tools import ToolKind, kind_of, target
from gemtui.transcript.writes import FileWrite, Letter, WriteStatus, totals
from gemtui.ui.draw.theme import Glyphs, Look
from gemtui.ui.kit.bars import key_line
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.run.live_run import LiveRun, Stage, ToolEnd
from gemtui.ui.transcript.card import call_state

if TYPE_CHECKING:
    from gemtui.ui.transcript.view import TranscriptView

WARN_AFTER = 60.0
"""The status line warns about missing output after this many seconds."""
_SILENT = 3.0
_MOST_LINES = 6
_LONG_REQUEST = 400
"""How many characters of a command or path the row of a call can show."""


def clock(seconds: float) -> str:
    """Format a duration in seconds as hours, minutes and seconds, such as `1:02:03`.

    The hours are left out if there are none: `0:41`.
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


ASK = "ask"
"""The name of Gemini CLI's default mode in runs that can ask the user."""
END_COLOURS = {
    Status.OK: "success",
    Status.WARNING: "warning",
    Status.REFUSED: "warning",
    Status.INCOMPLETE: "warning",
    Status.FAILED: "error",
    Status.INTERRUPTED: "warning",
    Status.TURN_LIMIT: "warning",
    Status.TIMEOUT: "error",
    Status.BUDGET: "warning",
}


_NAMED = 60
"""How many characters of a run's prompt are used to name the run in messages."""


def run_glyph(run: LiveRun, glyphs: Glyphs) -> str:
    """Return the symbol for a run's current state."""
    if run.waiting:
        return glyphs.ask
    if run.reports.kept_until is not None:
        return glyphs.ok
    return glyphs.running if run.outcome is None else status_glyph(run.outcome.status, glyphs)


def status_glyph(status: Status, glyphs: Glyphs) -> str:
    """Return the symbol for a finished run's status."""
    match status:
        case Status.OK:
            return glyphs.ok
        case Status.REFUSED:
            return glyphs.denied
        case Status.INTERRUPTED:
            return glyphs.interrupted
        case Status.FAILED | Status.TIMEOUT:
            return glyphs.failed
        case Status.WARNING | Status.INCOMPLETE | Status.TURN_LIMIT | Status.BUDGET:
            return glyphs.warning
    assert_never(status)


def run_state(run: LiveRun, glyphs: Glyphs) -> Content:
    """Return a run's state as a symbol and words, in the state's colour."""
    if run.stage is Stage.STOPPING:
        text = f"Stopping (SIGTERM){glyphs.ellipsis} press ctrl+c again to kill"
        return Content.styled(f"{glyphs.interrupted} {text}", "$text-warning")
    if run.stage is Stage.KILLING:
        return Content.styled(
            f"{glyphs.interrupted} Killing (SIGKILL){glyphs.ellipsis}", "$text-error"
        )
    if run.waiting:
        return Content.styled(f" {glyphs.ask} ask ", "bold reverse $text-warning")
    if run.reports.kept_until is not None:
        until = run.reports.kept_until.astimezone().strftime("%H:%M")
        text = f"{glyphs.ok} waits for your next prompt until {until}"
        return Content.styled(text, "$text-success")
    words, role = _work(run, glyphs), "accent"
    if run.outcome is not None:
        words, role = run.outcome.status.words, END_COLOURS[run.outcome.status]
    return Content.styled(f"{run_glyph(run, glyphs)} {words}", f"$text-{role}")


def _work(run: LiveRun, glyphs: Glyphs) -> str:
    """Return what an active run is doing: starting, waiting for the model, or running."""
    if run.newest is None:
        program = WORDS[run.run.request.agent].program
        return f"starting {program}{glyphs.ellipsis}"
    return "waiting for the model" if _awaits_model(run) else "running"


def _is_expected_silence(run: LiveRun) -> bool:
    """Return whether the status already says what a run without output waits for."""
    return _is_calling(run) or run.newest is None or _awaits_model(run)


def _is_calling(run: LiveRun) -> bool:
    """Return whether tool calls are running or wait for the user; there is no output meanwhile."""
    return bool(run.waiting or run.ends()[ToolEnd.RUNNING])


def _awaits_model(run: LiveRun) -> bool:
    """Return whether it is the model's turn, and it has not begun to answer."""
    asked = isinstance(run.newest, Init | Prompted | ToolResult)
    return asked and not run.ends()[ToolEnd.RUNNING]


def end_notice(run: LiveRun) -> Notification:
    """Return the desktop notification for a finished run, including its outcome."""
    how = "done" if run.outcome is None else run.outcome.status.words
    return run_notice(run, f"run ended: {how}")


def question_notice(run: LiveRun) -> Notification:
    """Return the desktop notification for a run that asks for approval."""
    return run_notice(run, f"needs approval for {run.waiting[-1].request.tool_name[:_NAMED]}")


def run_notice(run: LiveRun, what: str) -> Notification:
    """Return a desktop notification about a run.

    Its body is `what`, followed by the start of the run's prompt.
    """
    title = clean_line(f"gemtui: {run.cwd.name}")
    return Notification(title=title, text=clean_line(f"{what}: {run.prompt[:_NAMED]}"))


def status_parts(run: LiveRun, glyphs: Glyphs, now: datetime) -> Iterator[Content]:
    """Yield the parts of a run's status line, most important first.

    These are the state, the elapsed time unless the run waits for the user, how long there has been
    no output, the counts of failed and denied tool calls, the turns, the messages not read yet, and
    the queued prompts.
    """
    elapsed = "" if run.waiting or run.reports.kept_until else f" {clock(run.elapsed(now))}"
    yield Content.assemble(run_state(run, glyphs), elapsed)
    if run.alive and run.reports.first_checkpoint:
        yield Content.styled(clean_line(run.reports.first_checkpoint), "$text-accent")
    elif run.works and run.seconds_since_event() >= WARN_AFTER and not _is_calling(run):
        parts = (
            f"{glyphs.warning} no output for {clock(run.seconds_since_event())}; may be retrying"
        )
        yield Content.styled(parts, "$text-warning")
    elif run.works and run.seconds_since_event() >= _SILENT and not _is_expected_silence(run):
        yield Content.styled(f"no output for {clock(run.seconds_since_event())}", "dim")
    if run.alive and run.reports.retry:
        yield Content.styled(clean_line(run.reports.retry), "$text-warning")
    if run.reports.unprotected:
        yield Content.styled(f"{glyphs.warning} no checkpoints", "$text-warning")
    ends = run.ends()
    for end in (ToolEnd.DENIED, ToolEnd.REFUSED):
        if ends[end]:
            yield Content.styled(f"{glyphs.denied} {ends[end]} {end}", "$text-warning")
    failed = ends[ToolEnd.FAILED]
    if failed:
        yield Content.styled(f"{glyphs.failed} {failed} failed", "$text-error")
    yield Content(counted(run.answers(), "turn"))
    waits = sum(delivered is None for _, delivered in run.queue_state.messages)
    if waits and run.alive:
        yield Content.styled(f"{counted(waits, 'message')} not read yet", "$text-accent")
    queued = len(run.queue_state.prompts)
    if queued:
        word, role = ("waiting", "warning") if run.over else ("queued", "accent")
        yield Content.styled(f"{queued} {word}", f"$text-{role}")


def ending_text(run: LiveRun, glyphs: Glyphs) -> Content | None:
    """Return words on how a run ended: a heading, then details and advice.

    Returns None if the run is active or was successful.
    """
    outcome = run.outcome
    if outcome is None or outcome.status is Status.OK:
        return None
    lines = [_stopped(run)] if outcome.status is Status.INTERRUPTED else []
    if not outcome.by_mode:
        details = (line for line in outcome.detail.split("\n") if line.strip())
        lines += [f"  {line}" for line in details][:_MOST_LINES]
        lines += [f"What you can do: {'; '.join(outcome.ways_out)}."] if outcome.ways_out else []
    lines += [held_prompts_text(run)] if run.queue_state.prompts and run.over else []
    lines += [f"{counted(run.misread, 'output line')} not understood"] if run.misread else []
    heading = f"{run_glyph(run, glyphs)} {clean_line(outcome.headline)}"
    styled = Content.styled(heading, f"bold $text-{END_COLOURS[outcome.status]}")
    agent = run.run.request.agent
    offers = [_offer(_is_default(run), glyphs, agent)] if outcome.by_mode else []
    others = [Content(clean(line)) for line in (*lines, *run.notes)]
    return Content("\n").join([styled, *offers, *others])


def _is_default(run: LiveRun) -> bool:
    """Return whether a run had the mode from which one key leads to `ask`."""
    return run.run.request.about.get("approval_mode") in (None, ApprovalMode.DEFAULT)


def _offer(is_default: bool, glyphs: Glyphs, agent: Agent) -> Content:
    """Return words on how to be asked before calls.

    `is_default`: whether the mode is that before `ask`.
    """
    key = BY_ID["prompt.mode"].footer(ascii=glyphs.ascii) if is_default else f"/mode {ASK}"
    how = ", with gemtui's extension" if agent is Agent.GEMINI else ""
    words = f" asks you before each change{how}."
    return Content.assemble((key, "bold $text-accent"), words)


def no_run(
    folder: Path,
    others: Sequence[Path],
    problem: str | None,
    glyphs: Glyphs,
    *,
    offers_extension: bool,
) -> Content:
    """Return the words for a pane without a run.

    `folder`: where the next run will start. `others`: the folders of the active runs. `problem`:
    why no run can be started, or None. `offers_extension`: whether to tell how to be asked before
    calls, although gemtui's extension is not installed.
    """
    lines = [Content.styled(clean_line(f"New run in {short_path(folder)}"), "bold"), Content("")]
    if others:
        lines += [Content(active_runs_text(others)), Content("")]
    if problem:
        warning = f"{glyphs.warning} {clean_line(problem)}"
        lines += [Content.styled(warning, "$text-warning"), Content("")]
        options, sessions = BY_ID["run.options"].footer(), BY_ID["app.sessions"].footer()
        instead = f"If another agent is installed, choose it with {options}."
        lines += [Content(f"{instead} You can still read sessions ({sessions})."), Content("")]
    else:
        lines += [Content("Type a prompt below and press enter to start."), Content("")]
        if offers_extension:
            lines += [_offer(True, glyphs, Agent.GEMINI), Content("")]
    ids = ("run.options", "run.command", "run.from_file", "run.runs")
    return Content("\n").join([*lines, *(key_line(id, glyphs) for id in ids)])


def active_runs_text(folders: Sequence[Path]) -> str:
    """Return a sentence about active runs that aren't on screen, with the key that lists them.

    `folders`: the folder of each run.
    """
    where = " and ".join(dict.fromkeys(map(short_path, folders)))
    active = "1 run is" if len(folders) == 1 else f"{len(folders)} runs are"
    return clean_line(
        f"{active} active in {where}. Press {BY_ID['run.runs'].footer()} to choose one."
    )


def cli_words(cli: Detected, agent: Agent) -> Content:
    """Return the version of the agent that the next run uses, as text for the header."""
    words = WORDS[agent]
    version = f"{words.command} {cli.version}" if cli.version else f"no {words.program}"
    return Content.styled(clean_line(version), "dim")


QUEUED = "Queued. It will be sent when this turn ends without an error (ctrl+r shows the queue)."
SAID_NOW = "On the way: read with the next tool result, or when the turn ends."
UNHEARD = "Only runs with “Ask me” on can be messaged while they work. Press enter to queue it."


def held_prompts_text(run: LiveRun) -> str:
    """Return a message about the prompts that were still queued when their run ended."""
    waits = run.queue_state.prompts
    which = "1 queued prompt" if len(waits) == 1 else f"{len(waits)} queued prompts"
    why = f" not sent, because {run.held}" if run.held else ""
    first = ellipsis(clean_line(waits[0].text[:_NAMED]), _NAMED - 1)
    return f"{clean_line(which + why)} (ctrl+r opens the queue): {first}"


def prompt_words(run: LiveRun | None, options: AgentOptions) -> str:
    """Return words that say what pressing enter in the prompt field will do.

    `run`: the run on screen. `options`: those of the next run.
    """
    if run is not None and run.accepts_messages:
        return "prompt: enter queues it for the next turn, ctrl+s sends it now"
    if run is not None and run.works:
        return "prompt: enter queues it until the run ends"
    goes_on = run is not None and (run.reports.kept_until is not None or run.goes_on_with(options))
    session = options.resume or (run.session if run is not None and goes_on else None)
    if session is not None:
        return clean_line(f"prompt: enter continues session {session[:8]}")
    return "prompt: enter starts a run"


def position(view: TranscriptView, glyphs: Glyphs) -> Iterator[str]:
    """Yield words about the state of the transcript view, most important first.

    They say why the last jump failed, whether the view follows new output, and how many matches the
    search has found.
    """
    if view.word:
        yield view.word
    yield f"{glyphs.newer} following" if view.following else ""
    if view.found.query:
        yield str(view.found)


def _stopped(run: LiveRun) -> str:
    ended = run.exit
    if ended is None:
        return "Everything received before the stop is kept."
    how = "Stopped by SIGTERM."
    if any(question.consent is Consent.STOPPED for question in run.questions):
        how = "Stopped by you."
    elif ended.killed:
        how = "The run did not stop on SIGTERM and was killed (SIGKILL)."
    others = ended.ended_others
    more = (
        f" {counted(others, 'leftover process', 'leftover processes')} stopped too."
        if others
        else ""
    )
    return f"{how}{more} The answer so far and the finished writes are kept."


def mode_word(options: AgentOptions, usual: ApprovalMode) -> str:
    """Return the name of the next run's mode.

    `usual`: the mode of a run whose options set none. Gemini CLI's default mode is called `ask` if
    the run can ask the user; otherwise calls that need approval are denied, and it is called
    `default`.
    """
    mode = options.approval_mode or usual
    return ASK if mode is ApprovalMode.DEFAULT and options.ask else mode.value


def option_words(options: AgentOptions) -> Content:
    """Return the next run's options as one line."""
    needed, unusual = option_parts(options)
    folder = Content(short_path(options.cwd or current_folder()))
    return Content("  ").join([*needed, *unusual, folder])


def option_parts(
    options: AgentOptions, usual: ApprovalMode = ApprovalMode.DEFAULT, taken_away: int = 0
) -> tuple[list[Content], list[Content]]:
    """Return words for the next run's options, without its folder.

    The result has two lists: those that are always shown, and unusual ones, most important first.
    Dangerous options are highlighted. `usual`: the mode that applies if the options don't set one.
    `taken_away`: how many of the project's settings turn off confirmations.
    """
    model = options.model or ("auto" if options.agent is Agent.GEMINI else "")
    needed = [Content(clean_line(f"model {model}"))] if model else []
    word = mode_word(options, usual)
    of_settings = options.approval_mode is None and word not in (ASK, ApprovalMode.DEFAULT)
    mode = Content(f"mode {word}{' (settings)' * of_settings}{_asks_by(options, word)}")
    danger = any(
        option.dangerous(options.approval_mode)
        for option in run_options()
        if option.name == "approval_mode"
    )
    needed.append(mode.stylize(_LOUD) if danger else mode)
    needed += [Content.styled(clean_line(text), _LOUD) for text in permissive_options(options)]
    if taken_away:
        turn = f"{counted(taken_away, 'setting')} here turn{'s' * (taken_away == 1)}"
        needed.append(Content.styled(f"{turn} off confirmations", _LOUD))
    others = unusual_options(options, but="ask" if word == ASK else "")
    return needed, [Content(clean_line(text)) for text in others]


def _asks_by(options: AgentOptions, word: str) -> str:
    """Return who decides what is asked, for the mode `ask` of an agent that decides it itself."""
    asks_itself = word == ASK and Can.CHANGE not in CAN[options.agent]
    return f" (by {WORDS[options.agent].program})" if asks_itself else ""


def remembered_text(options: AgentOptions) -> str:
    """Return a message that a folder's remembered options have been loaded."""
    model = [f"model {options.model}"] if options.model else []
    word = mode_word(options, ApprovalMode.DEFAULT)
    mode = [f"mode {word}"] if options.approval_mode or word == ASK else []
    rest = unusual_options(options, but="ask" if word == ASK else "")
    defaults = f"all {WORDS[options.agent].program} defaults"
    values = ", ".join([*model, *mode, *rest]) or defaults
    return clean_line(f"Remembered for this folder: {values}")


_LOUD = "bold $text-warning"
ASKS_BY_RULES = "asks only where a rule says so"
"""Shown for a run in the mode `yolo` that asks: the mode itself asks about nothing."""


def permissive_options(options: AgentOptions) -> Iterator[str]:
    """Yield words for the options that are dangerous.

    These let commands run without asking, or trust the folder.
    """
    for option in run_options():
        if option.brief and option.dangerous(value := option_value(options, option.name)):
            yield _brief(option, value)


def unusual_options(options: AgentOptions, *, but: str = "") -> Iterator[str]:
    """Yield words for the options that differ from their defaults.

    The model, the mode, the folder, dangerous options, and the option named `but` are left out,
    because they are shown elsewhere.
    """
    for option in run_options():
        if option.name == but:
            continue
        value = option_value(options, option.name)
        means = not option.needs or option_value(options, option.needs)
        if not (option.brief and means and value != option.default) or option.dangerous(value):
            continue
        asks_by_rules = option.name == "ask" and options.approval_mode is ApprovalMode.YOLO
        yield ASKS_BY_RULES if asks_by_rules else _brief(option, value)


def _brief(option: RunOption, value: Any) -> str:
    """Return short words for an option with its value, for the prompt's frame."""
    if option.unit:
        count = counted(value if isinstance(value, int) else len(value), option.unit)
    elif option.kind is OptionKind.SECONDS:
        count = seconds_text(value)
    elif option.kind is OptionKind.DOLLARS:
        count = dollars_text(value)
    elif option.kind is OptionKind.PATHS:
        count = ", ".join(path.stem for path in value)
    else:
        count = str(value)
    return option.brief.format(count)


_LETTERS = {
    Letter.CREATED: "$text-success",
    Letter.MODIFIED: "$text-success",
    Letter.DELETED: "$text-error",
    Letter.UNKNOWN: "$text-warning",
}


def call_row(call: ToolCall, look: Look) -> Content:
    """Return a row for a finished call: how it ended, what was asked for, and its duration."""
    sign, word, role = call_state(call, look)
    name = "$" if kind_of(call.name) is ToolKind.SHELL else call.name
    asked = target(call).strip()[:_LONG_REQUEST].replace("\n", look.glyphs.line_end)
    code = f"exit {call.exit_code}" if call.exit_code else word
    lasted = duration(call.duration) if call.duration is not None else ""
    style = f"$text-{role}"
    parts = ((sign, style), (code, style), (name, "bold"), (asked, ""), (lasted, "dim"))
    return Content(" ").join(Content.styled(text, style) for text, style in parts if text)


def write_row(
    write: FileWrite,
    root: Path,
    glyphs: Glyphs,
    *,
    asked: Set[str] = frozenset(),
    queued: Set[str] = frozenset(),
) -> Content:
    """Return a row for the list of changed files.

    `root`: the folder that paths are shown relative to. `asked`: ids of the calls that are waiting
    for the user's answer. `queued`: ids of the calls that can't start before those are answered.
    """
    in_turn = write.written is WriteStatus.PENDING and not queued.isdisjoint(write.calls)
    waits = write.written is WriteStatus.PENDING and not asked.isdisjoint(write.calls)
    path = write.path.relative_to(root) if write.path.is_relative_to(root) else write.path
    match write.written:
        case WriteStatus.YES:
            sign, style = write.letter.value, _LETTERS[write.letter]
        case WriteStatus.PENDING if waits:
            sign, style = glyphs.ask, "$text-warning"
        case WriteStatus.PENDING:
            sign, style = glyphs.running, "$text-accent"
        case WriteStatus.FAILED:
            sign, style = glyphs.failed, "$text-error"
        case WriteStatus.UNCONFIRMED:
            sign, style = glyphs.ask, "$text-warning"
    note_style = "dim" if write.written is WriteStatus.YES else style
    parts: list[tuple[str, str]] = [(sign, style), (clean_line(str(path)), "")]
    for number in write.numbers:
        style = "$text-success" if number.startswith("+") else "$text-error"
        parts.append((number.replace("-", glyphs.removed), style))
    parts.append(("asked" if waits else "queued" if in_turn else write.words, note_style))
    return Content(" ").join(Content.styled(text, look) for text, look in parts if text)


def write_totals(run: LiveRun, glyphs: Glyphs) -> str:
    """Return a summary of the changed files, such as `3 files +26 −4`.

    Returns "" if there are none.
    """
    text = totals(run.files.rows).words(glyphs.removed)
    if not run.files.more:
        return text
    return f"at least {text}" if text else "changed files unknown"
