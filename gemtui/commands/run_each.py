"""`gemtui run --each-model`, `--each-policy`: run a prompt in several worktrees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click

from gemtui.agent.gemini import GeminiRun
from gemtui.agent.options import AgentOptions
from gemtui.commands.output import note, stdout_encoding
from gemtui.commands.run import Stop, answer_in_terminal, report_before_run, show_all
from gemtui.commands.run_ask import AskingTerminal
from gemtui.commands.run_cli import RunArguments
from gemtui.commands.run_options import options_of, prompt_of
from gemtui.commands.run_show import Show, Writer
from gemtui.errors import GemtuiError
from gemtui.policy.file.policy_files import find_policy
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.listing import prune_runs
from gemtui.runs.worktrees import require_new
from gemtui.text import clean_line


@dataclass(frozen=True, slots=True)
class _Variant:
    """One of the parallel runs; `label` is the model or policy that only it uses."""

    label: str
    options: AgentOptions


def run(words: RunArguments) -> int:
    """Run the prompt once for each model or policy, all at the same time.

    The answers are printed one after another. Returns the first nonzero exit code, or 0. Raises
    click.UsageError, OptionError, PolicyNotFound, CliNotFound, OSError.
    """
    _check(words)
    options = replace(options_of(words.options), worktree=True)
    options.check()
    require_new(options)
    prompt, variants = prompt_of(words), list(_variants(words, options))
    terminal = AskingTerminal.open(as_json=words.as_json) if options.ask else None
    adapter = GeminiAdapter()
    prune_runs(adapter.runs)
    report_before_run(options)
    return asyncio.run(_run_all(adapter, prompt, variants, words, terminal))


def _check(words: RunArguments) -> None:
    if words.each_model and words.each_policy:
        raise click.UsageError("--each-model and --each-policy can't be combined: use only one of them")
    if words.fork or words.dry_run:
        other = "--fork" if words.fork else "--dry-run"
        raise click.UsageError(f"{other} works only for a single run: leave out --each-model and --each-policy")
    for name, given in (("model", words.each_model), ("policies", words.each_policy)):
        if given and name in words.options:
            option = "--model" if name == "model" else "--policy"
            raise click.UsageError(f"{option} and --each-{option[2:]} can't be combined")
    if "wait_for_quota" in words.options:
        raise click.UsageError("--wait-for-quota works only for a single run")


def _variants(words: RunArguments, options: AgentOptions) -> Iterator[_Variant]:
    for model in words.each_model:
        yield _Variant(model, replace(options, model=model))
    for name in words.each_policy:
        yield _Variant(name, replace(options, policies=(find_policy(name),)))


async def _run_all(
    adapter: GeminiAdapter, prompt: str, variants: list[_Variant], words: RunArguments, terminal: AskingTerminal | None
) -> int:
    def new_show() -> Show:
        return Show(as_json=words.as_json, quiet=words.quiet, fail_on_denied=words.fail_on_denied)

    stop, codes = Stop(new_show()), list[int]()
    writer = Writer(stop.now)
    begun: list[tuple[_Variant, GeminiRun]] = []
    with stop.on_signals():
        try:
            for each in variants:
                if stop.stopped.is_set():
                    break
                try:
                    run = await asyncio.to_thread(adapter.start, prompt, each.options)
                except (GemtuiError, OSError) as error:
                    note(f"{each.label}: not started: {error}")
                    codes.append(1)
                    continue
                stop.add_run(run)
                begun.append((each, run))
            for variant, run in begun:
                show = new_show()
                if not words.as_json:
                    head = clean_line(f"== {variant.label}: {_place(run)}")
                    await writer.write(f"{head}\n".encode(stdout_encoding(), "replace"))
                with answer_in_terminal(run, terminal):
                    await show_all(run, writer, show)
                codes.append(show.close(run.stderr()))
        finally:
            for _, run in begun:
                run.abort()
            await asyncio.gather(*(run.wait() for _, run in begun))
            await writer.close()
    return next((code for code in codes if code), 0)


def _place(run: GeminiRun) -> str:
    """Return the name of the worktree in which the run works."""
    about = (run.request.about or {}).get("worktree") or {}
    return about.get("name", Path(run.request.cwd).name)
