"""``commonplace workflow``: run workflows whose phases are intents, and look at what a file says before it runs."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from commonplace.cli.commands import Group
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.session import json_option
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.intents.workflow_dialect import TIER, Phase, Workflow, load
from commonplace.model.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from commonplace.intents.workflow import PhaseEnd, RunStart, WorkflowOutcome

T = TypeVar("T")


@click.group(cls=Group)
def workflow() -> None:
    """Run workflows: phases that agents are assigned to, with the memory that each may use.

    Examples:
      commonplace workflow check launch.yml
      commonplace workflow run launch.yml --agents agents.py --input topic=pricing
      commonplace workflow run launch.yml --agents agents.py --resume
    """


@workflow.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--agents", "modules", metavar="MODULE", multiple=True, help="A module or a .py file with @Agent classes."
)
@click.option(
    "--input", "inputs", metavar="NAME=TEXT", multiple=True, help="An input for every phase; may be repeated."
)
@click.option(
    "--resume",
    metavar="[RUN]",
    is_flag=False,
    flag_value="",
    help="Resume a run that did not complete (default: the newest).",
)
@click.option("--store", metavar="PATH", help="Use this database instead of the one in the data folder.")
@json_option
def run(
    file: str,
    *,
    modules: tuple[str, ...],
    inputs: tuple[str, ...],
    resume: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Run a workflow: each phase as soon as those it depends on have completed, several at once.

    Results of phases go to standard output, progress to standard error.  A phase that fails does not stop the others,
    but those that depend on it are skipped; the exit code is then 1.  If a run does not complete, the command that
    resumes it is printed: completed phases are not run again.  Classes that the file or --agents names are imported,
    and their code runs on this machine.

    Examples:
      commonplace workflow run launch.yml
      commonplace workflow run launch.yml --agents shop.agents --input topic=pricing --json
      commonplace workflow run launch.yml --agents shop.agents --resume
    """
    described, given = load(file), dict(map(_pair, inputs))
    known: list[RunStart] = []
    try:
        outcome = _ran(_run(described, modules, given, store=store, as_json=as_json, resume=resume, known=known))
    except (KeyboardInterrupt, StoreError):
        for one in known:
            print_note(f"to resume it: {_again(file, modules, store, one.run)}")
        raise
    if as_json:
        print_json(_outcome_json(outcome))
    if not outcome.completed:
        print_note(f"to resume it: {_again(file, modules, store, outcome.run)}")
    return OK if outcome.completed else ATTENTION


def _ran(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end; the first Ctrl-C or SIGTERM ends it in order, the second at once."""
    import asyncio  # noqa: PLC0415 - --help and check run nothing

    async def run_until_sigterm() -> T:
        main, loop = asyncio.current_task(), asyncio.get_running_loop()

        def stop(_number: int, _frame: object) -> None:
            if main is None or main.cancelling():
                raise KeyboardInterrupt
            main.cancel()
            loop.call_soon_threadsafe(lambda: None)  # it may sleep

        before = signal.signal(signal.SIGTERM, stop)
        try:
            return await work
        finally:
            signal.signal(signal.SIGTERM, before)

    try:
        return asyncio.run(run_until_sigterm())  # which knows Ctrl-C
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _again(file: str, modules: tuple[str, ...], store: str | None, run: str) -> str:
    """Return the command that resumes a run, without the address of a database, which may hold a password."""
    wide = click.get_current_context().find_root().params.get("store")
    before = ["--store", _place(wide)] if wide else []
    options = [word for module in modules for word in ("--agents", module)]
    options += ["--store", _place(store)] if store else []
    return shlex.join(["commonplace", *before, "workflow", "run", file, *options, "--resume", run])


def _place(store: str) -> str:
    return "ADDRESS" if "://" in store else store


async def _run(
    described: Workflow,
    modules: tuple[str, ...],
    inputs: dict[str, str],
    *,
    store: str | None,
    as_json: bool,
    resume: str | None,
    known: list[RunStart],
) -> WorkflowOutcome:
    from commonplace.intents import workflow as running  # noqa: PLC0415 - see _ran
    from commonplace.intents.assignments import runner  # noqa: PLC0415
    from commonplace.intents.workflow_agents import agents_in  # noqa: PLC0415

    def report(seen: Phase | PhaseEnd) -> None:
        if isinstance(seen, Phase):
            print_note(f"{seen.name}: assigned to {seen.assign!r}")
            return
        if not seen.completed:
            print_note(f"{seen.phase} {_outcomes(seen)}")
            return
        if seen.carried:
            print_note(f"{seen.phase}: completed before")
        if not as_json:
            print_text(f"{seen.phase}: {_render(seen.result)}")
            sys.stdout.flush()  # the next phase may take long

    def note_start(seen: RunStart) -> None:
        known.append(seen)
        for name, reason in seen.again.items():
            print_note(f"{name} runs again: {reason}")

    agents = [found for module in modules for found in agents_in(module, workflow_file=described.file)]
    with runner(store) as work:
        return await running.run_workflow(
            described, work, agents=agents, inputs=inputs, watch=report, resume=resume, started=note_start
        )


def _outcomes(seen: PhaseEnd) -> str:
    return f"was left out: {seen.error}" if seen.outcome == "skipped" else f"{seen.outcome}: {seen.error}"


def _pair(argument: str) -> tuple[str, str]:
    name, equals, text = argument.partition("=")
    if not equals or not name.strip():
        raise InvalidInput(f"--input should be NAME=TEXT, not {argument!r}")
    return name.strip(), text


def _render(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(_plain(result), ensure_ascii=False)


def _outcome_json(outcome: WorkflowOutcome) -> dict[str, Any]:
    phases = {
        one.phase: {
            "agent": one.agent,
            "outcome": one.outcome,
            "result": _plain(one.result),
            "error": one.error or None,
        }
        for one in outcome.phases.values()
    }
    return {"workflow": outcome.workflow, "run": outcome.run, "completed": outcome.completed, "phases": phases}


def _plain(result: Any) -> Any:
    """Return a result as JSON; values of other types become text."""
    try:
        return json.loads(json.dumps(result, ensure_ascii=False, default=str), parse_constant=str)  # NaN, Infinity
    except (TypeError, ValueError):  # keys that are no text, circles
        return str(result)


@workflow.command()
@click.argument("file", metavar="FILE")
@click.argument("run_id", metavar="[RUN]", default="")
@click.option("--store", metavar="PATH", help="Use this database instead of the one in the data folder.")
@json_option
def cancel(file: str, run_id: str, store: str | None, as_json: bool) -> None:
    """Cancel a run that did not complete (default: the newest).

    Its open working memory is archived as at the end of a phase.  The run cannot be resumed afterwards.

    Example:
      commonplace workflow cancel launch.yml
    """
    described = load(file)
    from commonplace.intents.assignments import runner  # noqa: PLC0415 - see _ran
    from commonplace.intents.workflow_progress import resume_run  # noqa: PLC0415

    with runner(store) as work:
        progress = resume_run(work.intents, described, run=run_id, inputs=None)
        progress.cancel()
    if as_json:
        print_json({"workflow": described.name, "run": progress.run, "outcome": "cancelled"})
    else:
        print_text(f"cancelled {progress.run}")


@workflow.command()
@click.argument("file", metavar="FILE")
@json_option
def check(file: str, as_json: bool) -> None:
    """Check a workflow and print its phases in order, with their memory. Nothing is imported or run.

    Example:
      commonplace workflow check launch.yml
    """
    described = load(file)
    if as_json:
        print_json({"workflow": described.name, "waves": [list(wave) for wave in described.order()]})
        return
    for number, wave in enumerate(described.order(), start=1):
        for name in wave:
            print_text(f"{number}. {_line(described, described.phase(name))}")


def _line(described: Workflow, phase: Phase) -> str:
    tier = phase.memory.tier or described.memory.tier or TIER
    namespace = phase.memory.namespace or described.memory.namespace
    parts = [f"{phase.name}: {phase.assign}, {tier} memory" + (f" in {namespace}" if namespace else "")]
    if phase.depends_on:
        parts.append(f"after {', '.join(phase.depends_on)}")
    if phase.memory.handoff and (readers := described.dependents(phase.name)):
        parts.append(f"hands over to {', '.join(one.name for one in readers)}")
    return "; ".join(parts)
