"""``commonplace workflow``: run workflows whose phases are intents, and look at what a file says before it runs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from commonplace.config.workflow import TIER, Phase, Workflow, load
from commonplace.domain.errors import InvalidInput
from commonplace.faces.cli.commands import Listed
from commonplace.faces.cli.exits import ATTENTION, OK
from commonplace.faces.cli.session import json_too
from commonplace.faces.cli.terminal import note, say, say_json

if TYPE_CHECKING:
    from commonplace.agents.workflow import Ended, Outcome


@click.group(cls=Listed)
def workflow() -> None:
    """Run workflows: phases that agents are assigned to, with the memory that each may use.

    Examples:
      commonplace workflow check launch.yml
      commonplace workflow run launch.yml --agents agents.py --input topic=pricing
    """


@workflow.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--agents", "modules", metavar="MODULE", multiple=True, help="A module or a .py file with @Agent classes."
)
@click.option(
    "--input", "inputs", metavar="NAME=TEXT", multiple=True, help="What every phase is told; may be repeated."
)
@click.option("--store", metavar="PATH", help="Another database than the one in the data folder.")
@json_too
def run(file: str, modules: tuple[str, ...], inputs: tuple[str, ...], store: str | None, as_json: bool) -> int:
    """Run a workflow: each phase as soon as those it depends on are done, several at once where they can.

    What a phase comes to goes to standard output, what happens to standard error.  A phase that fails does not stop
    the others, but those that depend on it are not run; the exit code is then 1.  Classes that the file or --agents
    names are imported, and their code runs on this machine.

    Examples:
      commonplace workflow run launch.yml
      commonplace workflow run launch.yml --agents shop.agents --input topic=pricing --json
    """
    described, told = load(file), dict(map(_pair, inputs))
    import asyncio  # noqa: PLC0415 - --help and check run nothing

    outcome = asyncio.run(_run(described, modules, told, store=store, as_json=as_json))
    if as_json:
        say_json(_outcome_json(outcome))
    return OK if outcome.completed else ATTENTION


async def _run(
    described: Workflow, modules: tuple[str, ...], inputs: dict[str, str], *, store: str | None, as_json: bool
) -> Outcome:
    from commonplace.agents import workflow as running  # noqa: PLC0415 - see run
    from commonplace.agents.intents import runner  # noqa: PLC0415
    from commonplace.agents.workflow_agents import agents_in  # noqa: PLC0415

    def told(seen: Phase | Ended) -> None:
        if isinstance(seen, Phase):
            note(f"{seen.name}: assigned to {seen.assign!r}")
        elif seen.completed and not as_json:
            say(f"{seen.phase}: {_shown(seen.result)}")
            sys.stdout.flush()  # the next phase may take long
        elif not seen.completed:
            note(f"{seen.phase} {_outcomes(seen)}")

    agents = [found for module in modules for found in agents_in(module, beside=described.file)]
    with runner(store) as work:
        return await running.run(described, work, agents=agents, inputs=inputs, watch=told)


def _outcomes(seen: Ended) -> str:
    return f"was left out: {seen.error}" if seen.outcome == "skipped" else f"{seen.outcome}: {seen.error}"


def _pair(said: str) -> tuple[str, str]:
    name, equals, text = said.partition("=")
    if not equals or not name.strip():
        raise InvalidInput(f"--input should be NAME=TEXT, not {said!r}")
    return name.strip(), text


def _shown(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(_plain(result), ensure_ascii=False)


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
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
    """A result as JSON can hold it: what is none of JSON's own is told as text."""
    try:
        return json.loads(json.dumps(result, ensure_ascii=False, default=str))
    except (TypeError, ValueError):  # keys that are no text, circles
        return str(result)


@workflow.command()
@click.argument("file", metavar="FILE")
@json_too
def check(file: str, as_json: bool) -> None:
    """Read a workflow and say what would run, in which order and with which memory; nothing is imported or run.

    Example:
      commonplace workflow check launch.yml
    """
    described = load(file)
    if as_json:
        say_json({"workflow": described.name, "waves": [list(wave) for wave in described.order()]})
        return
    for number, wave in enumerate(described.order(), start=1):
        for name in wave:
            say(f"{number}. {_line(described, described.phase(name))}")


def _line(described: Workflow, phase: Phase) -> str:
    tier = phase.memory.tier or described.memory.tier or TIER
    namespace = phase.memory.namespace or described.memory.namespace
    parts = [f"{phase.name}: {phase.assign}, {tier} memory" + (f" in {namespace}" if namespace else "")]
    if phase.depends_on:
        parts.append(f"after {', '.join(phase.depends_on)}")
    if phase.memory.handoff and (readers := described.dependents(phase.name)):
        parts.append(f"hands over to {', '.join(one.name for one in readers)}")
    return "; ".join(parts)
