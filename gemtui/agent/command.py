"""Build a run's exact command: arguments, environment and private files.

Nothing is started or written here, so that the command can be shown to the user first. Only flags
the installed CLI knows are used. Permissions are passed in policy files and the turn limit in a
settings file, all of them written for this run only. If a run's options name a policy file with an
error, there is no command, because the CLI would drop the faulty part and continue without it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from gemtui.agent.detect import STREAM_JSON, Capabilities
from gemtui.agent.npm_shim import start_words
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import (
    PROMPT_TOO_LARGE,
    SETTINGS_FILE,
    Request,
    RunFolder,
    is_too_large,
)
from gemtui.agent.settings import SETTINGS_VARIABLE, CliSettings, admin_policy_files
from gemtui.agent.trust import TRUST_VALUES, TRUST_VARIABLE
from gemtui.agents import Agent
from gemtui.calls.git_repository import is_in_repository, may_hold_repository
from gemtui.errors import OptionError
from gemtui.files import path_exists
from gemtui.paths import current_folder, gemini_home
from gemtui.policy.file.levels import rules, unknown_tools
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import is_empty_folder
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Finding, Rule, Severity
from gemtui.policy.model.tool_catalog import ALIASES
from gemtui.processes import absolute_folders
from gemtui.text import Clean, clean_line, visible

PROMPT_FILE = "prompt.txt"
DENIES, ALLOWS = "policy-first.toml", "policy-last.toml"
GATE = "policy-gate.toml"
"""The policy file that lets the CLI make the calls that the user has approved.

Only runs that ask the user have one; the supervisor writes it.
"""

_LISTS = frozenset({"allowed-mcp-server-names", "extensions", "include-directories", "policy"})
"""Flags whose values the CLI splits at commas and strips of whitespace."""

ARGUMENT_LIMIT = 20_000 if sys.platform == "win32" else 100_000
"""The largest prompt, in bytes, to pass as an argument.

Linux allows 131,071 for each; Windows 32,767 for a whole command, where quotes count twice.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Everything a command depends on, apart from the options.

    * `cli`: the program. `capabilities`: the features of its command line.
    * `environ`: this process's environment.
    * `user_policies`: the user's policy folder, or the paths in the setting `policyPaths`. Runs
      have to pass these again because `--policy` replaces them.
    * `settings`: the CLI's settings, including those of the run's folder.
    * `system_settings`: the machine's settings. A run has to repeat these in its own settings file
      because that file replaces the machine's.
    * `settings_unread`: why the CLI would ignore the run's settings file; None if the CLI reads it.
    * `problems`: what the user should know about this machine before any run.
    """

    cli: Path
    capabilities: Capabilities
    environ: Mapping[str, str]
    user_policies: tuple[Path, ...] = ()
    settings: CliSettings = field(default_factory=lambda: CliSettings((), gemini_home()))
    system_settings: Mapping[str, Any] | None = None
    settings_unread: str | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The exact command of a run, not yet started.

    * `environ`: variables to add to the environment.
    * `files`: maps names of files in the run's folder to their contents.
    * `secrets`: the names of the files to remove when the run ends.
    * `stdin`: whether the prompt is in a file that is passed on stdin. `pipe`: whether stdin is a
      pipe instead, through which the run's gate sends prompts.
    * `turn_limit`: the number of turns after which gemtui ends the run. Set if the CLI ignores the
      run's settings, and always for a limit of 0, because older versions treat 0 as no limit.
    * `ask`: whether the run asks the user. A copied command line can't ask, so it denies the calls
      gemtui would ask about.
    * `notes`: what the user should know.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    files: Mapping[str, str]
    secrets: tuple[str, ...]
    stdin: bool
    session_id: str | None
    notes: tuple[str, ...]
    turn_limit: int | None = None
    ask: bool = False
    pipe: bool = False

    def script(self, prompt: str | None, folder: Path, cwd: Path) -> Iterator[Clean]:
        """Yield the lines of a script that does the same as the run, but unsupervised.

        The lines are for bash or zsh. `folder`: the run's folder, which the script creates. If
        `prompt` is None, the script reads the prompt from `prompt.txt` in the folder where it is
        executed.
        """
        for remark in (*self.notes, *([UNASKED] if self.ask else [])):
            yield Clean(f"# {clean_line(remark)}")
        files = dict(self.files)
        if self.stdin and prompt is not None:
            files[PROMPT_FILE] = prompt
        if files:
            yield Clean(f"mkdir -p -m 700 {quoted(str(folder))}")
        for name, text in files.items():
            yield Clean(f"printf %s {quoted(text)} > {quoted(str(folder / name))}")
        stdin = str(Path(PROMPT_FILE) if prompt is None else folder / PROMPT_FILE)
        yield Clean(f"cd {quoted(str(cwd))} &&")
        argv = _without_gate(self.argv)
        yield _words(self.environ, argv, stdin if self.stdin else "/dev/null")


def rerun_line(request: Request, folder: RunFolder) -> Clean:
    """Return the bash or zsh line that repeats a run in a new session.

    The line reads the prompt and the policies from the run's folder. It leaves out the settings,
    because they are removed when a run ends; therefore the turn limit is missing, and the default
    mode is passed as a flag. It also leaves out the session the run resumed, because nothing would
    protect that session.
    """
    environ = {name: value for name, value in request.environ.items() if name != SETTINGS_VARIABLE}
    ours = ("--session-id=", "--resume=")
    argv = [word for word in _without_gate(request.argv) if not word.startswith(ours)]
    if request.about.get("approval_mode") == ApprovalMode.DEFAULT:
        named = f"--approval-mode={ApprovalMode.DEFAULT}"
        argv += [named] if named not in argv else []
    stdin = str(folder.prompt) if request.stdin else "/dev/null"
    return Clean(f"cd {quoted(request.cwd)} && {_words(environ, argv, stdin)}")


UNASKED = "this command can't ask you: calls that need your approval are denied"


def _without_gate(argv: Iterable[str]) -> list[str]:
    """Return the arguments without the policy file that lets approved calls pass.

    Use this for command lines that the user copies, because these can't ask for approval.
    """
    return [word for word in argv if not (word.startswith("--policy=") and Path(word).name == GATE)]


def _words(environ: Mapping[str, str], argv: Iterable[str], stdin: str) -> Clean:
    added = (f"{name}={quoted(value)}" for name, value in environ.items())
    return Clean(" ".join((*added, *map(quoted, argv), "<", quoted(stdin))))


_OUTSIDE_ASCII = re.compile(r"[^ -~]")


def quoted(word: str) -> Clean:
    """Quote a word for bash or zsh, writing invisible characters as `$'…'` escapes."""
    if visible(word) == word:
        return Clean(shlex.quote(word))
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return Clean("$'" + _OUTSIDE_ASCII.sub(_escape, escaped) + "'")


def _escape(match: re.Match[str]) -> str:
    """Return the matched character as byte escapes, which work in every locale."""
    raw = "\udc80" <= match[0] <= "\udcff"  # a byte of a file name that is not UTF-8
    data = match[0].encode("utf-8", "surrogateescape" if raw else "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


def command_of(
    prompt: str, options: AgentOptions, machine: Machine, *, folder: Path, session_id: str | None
) -> Command:
    """Return the command that runs `prompt` with `options`.

    `folder`: where the command's files will be written. `session_id`: the id for the new session,
    if the CLI accepts one; None lets the CLI choose. Raises OptionError for options that contradict
    each other, for options this CLI has no flag for, and for a prompt that it would cut, and
    CliNotFound as `start_words`.
    """
    options.check()
    if is_too_large(prompt):
        raise OptionError(PROMPT_TOO_LARGE)
    capabilities = machine.capabilities
    warnings = policy_warnings(options.policies, options.approval_mode)
    ruled = rules(options.tools)
    files = _policy_files(ruled, options, machine)
    settings = machine.settings_unread is None
    if settings:
        files[SETTINGS_FILE] = _settings_text(options, machine)
    named = None if options.resume or not capabilities.supports("session-id") else session_id
    argv = [f"--output-format={STREAM_JSON}", *_mode(options, machine)]
    if options.model:
        argv.append(f"--model={options.model}")
    if options.sandbox:
        argv.append("--sandbox")
    argv += _policies(options, machine, files, folder)
    argv += [f"--include-directories={path}" for path in options.include_directories]
    argv += [f"--extensions={name}" for name in options.extensions]
    argv += [f"--allowed-mcp-server-names={name}" for name in options.mcp_servers]
    argv += _session(options, capabilities, named)
    _check_words(argv, capabilities)
    if options.prompt_in_argv:
        if len(prompt.encode("utf-8", "surrogatepass")) > ARGUMENT_LIMIT:
            raise OptionError(
                f"the prompt is longer than {ARGUMENT_LIMIT:,} bytes: pass it on stdin"
            )
        argv.append(f"--prompt={prompt}")
    at_home = errors_in_user_policies([path for path in machine.user_policies if path_exists(path)])
    return Command(
        argv=(*start_words(machine.cli, machine.environ), *argv),
        environ=_environ(options, machine, folder),
        files=files,
        secrets=(SETTINGS_FILE,) if settings else (),
        stdin=not options.prompt_in_argv,
        session_id=options.resume or named,
        notes=(*_notes(options, machine, ruled), *warnings, *at_home),
        turn_limit=options.max_turns if options.max_turns == 0 or not settings else None,
        ask=options.asks,
    )


def _check_words(argv: Sequence[str], cli: Capabilities) -> None:
    """Raise OptionError for an argument the CLI would reject or misread.

    `cli`: the features of the installed CLI.
    """
    for word in argv:
        flag, _, value = word.removeprefix("--").partition("=")
        if not cli.supports(flag):
            raise OptionError(f"this version of Gemini CLI has no option --{flag}: update it")
        if flag in _LISTS and ("," in value or value != value.strip()):
            raise OptionError(
                f"--{flag}: {value!r} contains a comma or starts or ends with a space, so Gemini "
                "CLI would misread it: rename it"
            )


def require_text(prompt: str, command: Command, cwd: Path) -> None:
    """Raise OptionError if the prompt, command or folder has unusable characters.

    They must be valid UTF-8, because a run's record is UTF-8 (file names, for example, need not
    be). The command and the folder must not contain NUL characters either, because the operating
    system can't pass these to a process.
    """
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise OptionError(
            f"the prompt is not valid UTF-8 (character {error.start + 1}): convert it to UTF-8"
        ) from None
    variables = (f"{name}={value}" for name, value in command.environ.items())
    for text in (f"cwd: {cwd}", *command.argv, *variables):
        if _UNSAYABLE.search(text):
            raise OptionError(f"{text!a} is not valid UTF-8 or contains a NUL character: rename it")


_UNSAYABLE = re.compile("[\0\ud800-\udfff]")


def _mode(options: AgentOptions, machine: Machine) -> list[str]:
    """Return the flag that sets the approval mode, as a list; empty if none is needed.

    No flag is needed if the options set no mode. The default mode needs no flag either if the
    options set no permission levels and the CLI reads the run's settings file, which then sets the
    mode and overrides the user's settings. `--yolo` is never used, because the CLI rejects it in
    combination with this flag. Raises OptionError if the CLI doesn't have the mode.
    """
    mode = options.approval_mode
    settled = options.permissions is None and machine.settings_unread is None
    if mode is None or (mode is ApprovalMode.DEFAULT and settled):
        return []
    if mode.value not in machine.capabilities.approval_modes:
        raise OptionError(
            f"this version of Gemini CLI has no approval mode {mode.value}: update it"
        )
    return [f"--approval-mode={mode.value}"]


def _session(options: AgentOptions, cli: Capabilities, session_id: str | None) -> list[str]:
    if not options.resume:
        return [f"--session-id={session_id}"] if session_id else []
    if not cli.supports("resume"):
        raise OptionError("this version of Gemini CLI can't resume a session: update it")
    return [f"--resume={options.resume}"]


# --- tools -----------------------------------------------------------------------------------


def _policy_files(ruled: Sequence[Rule], options: AgentOptions, machine: Machine) -> dict[str, str]:
    """Map the names of the policy files written for this run to their contents.

    `ruled`: the rules that come from the options.
    """
    policies = (*filter(path_exists, machine.user_policies), *options.policies)
    environ = {**machine.environ, **options.environment}
    if denies_options(options, ruled, policies, machine.settings, environ):
        ruled = [*ruled, DENY_OPTION]
    return rule_files(ruled)


def rule_files(ruled: Sequence[Rule]) -> dict[str, str]:
    """Map the names of the policy files that hold a run's own rules to their contents.

    Rules that deny or ask go into the first file and those that allow into the last one, because
    the first rule wins a tie.
    """
    allows = [rule for rule in ruled if rule.decision is Decision.ALLOW]
    others = [rule for rule in ruled if rule.decision is not Decision.ALLOW]
    pairs = ((DENIES, others), (ALLOWS, allows))
    return {name: rules_to_toml(part) for name, part in pairs if part}


def _policies(
    options: AgentOptions, machine: Machine, files: Mapping[str, str], folder: Path
) -> Iterable[str]:
    """Return the `--policy` flags, with the user's files between gemtui's two files.

    gemtui's first file denies and its second one allows. The user's policies have to be passed
    explicitly because `--policy` replaces the user's policy folder. See
    assets/gemini-cli.md#policy-files.
    """
    paths = list[Path]()
    if DENIES in files:
        paths.append(folder / DENIES)
    if options.asks:
        paths.append(folder / GATE)
    named = [path.absolute() for path in options.policies]
    last = [folder / ALLOWS] if ALLOWS in files else []
    if not paths and not named and not last:
        return []
    paths += filter(path_exists, machine.user_policies)
    return [f"--policy={path}" for path in (*paths, *named, *last)]


# --- settings and environment ------------------------------------------------------------------


def _settings_text(options: AgentOptions, machine: Machine) -> str:
    """Return the machine's settings, overridden by this run's settings.

    See assets/gemini-cli.md#settings.
    """
    ours: dict[str, Any] = {
        "general": {"sessionRetention": {"enabled": False}, "enableAutoUpdate": False}
    }
    if options.approval_mode is ApprovalMode.DEFAULT:
        ours["general"]["defaultApprovalMode"] = "default"
    if options.max_turns is not None:
        ours["model"] = {"maxSessionTurns": options.max_turns}
    merged = _merged(dict(machine.system_settings or {}), ours)
    return orjson.dumps(merged, option=orjson.OPT_INDENT_2).decode()


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in over.items():
        below = base.get(name)
        if isinstance(below, dict) and isinstance(value, Mapping):
            base[name] = _merged(dict(below), value)
        else:
            base[name] = value
    return base


def _environ(options: AgentOptions, machine: Machine, folder: Path) -> dict[str, str]:
    """Return the variables to add to the CLI's environment.

    A trust variable that is already set is kept, unless its value has no effect on the CLI. The
    variable that names the run's settings file is set only if the CLI reads that file; otherwise it
    would only hide the machine's settings. `PATH` loses its relative entries, from which the CLI
    would start programs of the run's folder, even as Node.js.
    """
    added = dict(options.environment)
    environ = {**machine.environ, **added}
    path = os.pathsep.join(absolute_folders(environ))
    if path != environ.get("PATH", path):
        added["PATH"] = path
    if machine.settings_unread is None:
        added[SETTINGS_VARIABLE] = str(folder / SETTINGS_FILE)
    if options.trust and environ.get(TRUST_VARIABLE) not in TRUST_VALUES:
        added[TRUST_VARIABLE] = "true"
    return added


def _notes(options: AgentOptions, machine: Machine, ruled: Sequence[Rule]) -> Iterable[str]:
    yield from machine.problems
    if any(rule.decision is Decision.ASK_USER for rule in ruled) and not options.asks:
        yield "headless runs can't ask, so “ask” means deny, except for safe shell commands"
    for name in unknown_tools(options.tools):
        yield (
            f"gemtui knows no tool called {name!r}: the name has no effect unless your Gemini CLI "
            "has such a tool"
        )
    if options.tools.asks_unnamed:
        yield (
            "no approval mode is set, so file writes, shell commands and network access need "
            "approval unless the run's options allow them"
        )
    if options.approval_mode is ApprovalMode.PLAN and _requests_allow(options):
        yield (
            "in plan mode, options that allow tools have no effect, because they would permit "
            "writes and shell commands"
        )
    if machine.settings_unread is not None:
        yield from _unread_notes(options, machine.settings_unread)


def _unread_notes(options: AgentOptions, why: str) -> Iterable[str]:
    """Yield a note for each of the run's settings that the CLI won't read.

    The note says what gemtui does instead. `why`: why the CLI ignores the run's settings file.
    """
    if options.max_turns is not None:
        yield (
            f"gemtui itself counts turns and stops the run after {options.max_turns}, because {why}"
        )
    if options.resume:
        yield (
            "Gemini CLI's session cleanup can't be turned off for this run and may delete the "
            f"resumed session, so gemtui keeps a copy and restores it after the run ({why})"
        )


def _requests_allow(options: AgentOptions) -> bool:
    levels = options.permissions
    allowed = levels is not None and "allow" in (
        levels.file_write,
        levels.shell_execute,
        levels.network_access,
    )
    return allowed or bool(options.approved_tools)


# --- errors in policy files -----------------------------------------------------------------------


_SHOWN = 3


def policy_warnings(
    policies: Sequence[Path], mode: ApprovalMode | None, agent: Agent = Agent.GEMINI
) -> tuple[str, ...]:
    """Return the first few warnings about these policy files, and how to see the rest.

    `mode`: the run's approval mode; warnings about other modes are left out. `agent`: whose run it
    is; that Gemini CLI has no tool with some name is only a warning for any other. Raises
    OptionError if a file contains an error, which is something that the CLI would drop or ignore.
    """
    findings = [finding for finding in _findings(policies) if finding.mode in (None, mode)]
    errors = [
        finding
        for finding in findings
        if finding.severity is Severity.ERROR and (finding.kind is None or agent is Agent.GEMINI)
    ]
    if errors:
        raise OptionError(f"policies: {finding_words(errors[0])}{_more(errors[1:])}")
    shown, rest = findings[:_SHOWN], findings[_SHOWN:]
    more = (f"there are more warnings about the policies{_more(rest)}",) if rest else ()
    return (*map(finding_words, shown), *more)


def errors_in_user_policies(policies: Sequence[Path]) -> Iterator[str]:
    """Yield one line about errors in the user's own policy files, if there are any.

    The line describes the first error and says how many more there are. Every session loads these
    files, so the run starts anyway. An empty folder is an error only if a run's options name it.
    """
    findings = _findings([path for path in policies if not is_empty_folder(path)])
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        more = _more(errors[1:])
        yield f"in your own policies, which every session loads: {finding_words(errors[0])}{more}"


def finding_words(finding: Finding) -> str:
    """Format a finding as one line: file, rule, field, problem and suggestion."""
    position = f", rule {finding.rule}" if finding.rule else ""
    field = f", {finding.field}" if finding.field else ""
    way_out = f": {finding.way_out}" if finding.way_out else ""
    return f"{finding.file}{position}{field}: {finding.message}{way_out}"


def _findings(policies: Sequence[Path]) -> Sequence[Finding]:
    """Check policy files, and return all findings.

    The checks are imported lazily, because often there is no file to check.
    """
    if not policies:
        return ()
    from gemtui.policy.check.check_policy import check_files

    return check_files(policies)


def _more(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    files = " ".join(dict.fromkeys(str(finding.file) for finding in findings))
    return f" ({len(findings)} more: gemtui policy check {files})"


# --- searches that pass options to git -----------------------------------------------------------
#
# Gemini CLI hands a pattern that begins with `-` to git grep as an option, which can run any
# program. A run that may execute any command without asking gains nothing by that. In any other
# run, such a search would get around restrictions imposed by the mode, the options, the policies or
# the settings.

_SHELL = frozenset({"run_shell_command", "*"})
_LIMITS = ("allowed", "confirmationRequired", "core", "exclude")
"""Settings in the table `tools` that may restrict which commands can be run.

See assets/gemini-cli.md#settings-as-rules.
"""
_SEARCH: Final = "grep_search"
_NAMES: Final = frozenset((_SEARCH, *(old for old, name in ALIASES.items() if name == _SEARCH)))
OPTION_REASON: Final = (
    "Gemini CLI hands a pattern that begins with `-` to git grep as an option, which can run a "
    "program. Write its first character as `[-]`."
)
"""The message to the model that says why such a search is denied."""
DENY_OPTION: Final = Rule(
    tools=(_SEARCH,),
    decision=Decision.DENY,
    priority=999,
    args_pattern='"pattern":"-',
    deny_message=OPTION_REASON,
)


def denies_options(
    options: AgentOptions,
    ruled: Sequence[Rule],
    policies: Iterable[Path],
    settings: CliSettings,
    environ: Mapping[str, str],
) -> bool:
    """Return whether the run's own policy must deny searches that pass options.

    The first of these rules that applies decides:

    1. If the run's options restrict commands, it must.
    2. If the options name neither rules nor policy files, it need not: gemtui writes no policy for
       such a run, whose searches are as safe as in Gemini CLI itself.
    3. If the run may execute any command without asking, it need not.
    4. If the run may search in a git repository, it must. Elsewhere, searches run no program.

    `ruled`: the rules that come from the run's options. `policies`: the run's other policy files.
    `settings`: the CLI's settings. `environ`: the CLI's environment.
    """
    if _restricts_commands(ruled):
        return True
    if not ruled and not options.policies:
        return False
    allowed = any(not _SHELL.isdisjoint(rule.tools) for rule in ruled)
    if allowed or options.approval_mode is ApprovalMode.YOLO:
        cwd = options.cwd or current_folder()
        admin = admin_policy_files(settings.admin_policies(cwd))
        limited = any(settings.get("tools", name) is not None for name in _LIMITS)
        if not limited and not _restricts_commands(Policy.load([*policies, *admin]).rules):
            return False
    return _may_search_with_git(options, settings, environ)


def _restricts_commands(rules: Iterable[Rule]) -> bool:
    return any(
        rule.decision is not Decision.ALLOW and not _SHELL.isdisjoint(rule.tools) for rule in rules
    )


def _may_search_with_git(
    options: AgentOptions, settings: CliSettings, environ: Mapping[str, str]
) -> bool:
    cwd = options.cwd or current_folder()
    folders = (cwd, *options.include_directories, *settings.added_folders(cwd))
    temporary = gemini_home(environ)
    return is_in_repository(temporary) or any(map(may_hold_repository, folders))


def is_option_search(call: Call) -> bool:
    """Return whether git grep would treat the call's search pattern as an option."""
    return is_search(call) and str(call.args.get("pattern", "")).startswith("-")


def is_search(call: Call) -> bool:
    """Return whether a call uses the tool that searches in files."""
    return call.tool in _NAMES
