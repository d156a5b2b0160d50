"""``commonplace pipeline``: run pipelines whose agents remember, and see or delete what they have learned."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from commonplace.app import BACKUPS
from commonplace.ci.dialect import AgentStep, Pipeline, Step, load
from commonplace.ci.registry import PipelineRegistry, PipelineSummary, open_registry
from commonplace.cli.commands import Group
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.session import F, confirm, json_option
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.config.paths import home
from commonplace.engine.rendering import iso
from commonplace.model.records import Record
from commonplace.text.cleaning import one_line, plural

MEMORY_LIMIT = 50
PENDING = "a reader still holds old bytes of the database; `commonplace doctor --fix` empties them"


@click.group(cls=Group)
def pipeline() -> None:
    """Run pipelines whose agents remember from one run to the next.

    An agent has the memory that its `memory` block gives it, by the pipeline's name and its own; no other sees it.

    Examples:
      commonplace pipeline run release.yml
      commonplace pipeline memory release reviewer
    """


def _store_option(command: F) -> F:
    """Give a command ``--store``."""
    return click.option("--store", metavar="PATH", help="Use this database instead of the one in the data folder.")(
        command
    )


@pipeline.command()
@click.argument("file", metavar="FILE")
@click.option("--job", metavar="JOB", help="Run only this job (default: all, one after the other).")
@click.option("--allow-tasks", is_flag=True, help="Let `task` steps run their commands on this machine.")
@_store_option
def run(file: str, job: str | None, allow_tasks: bool, store: str | None) -> int:
    """Run a pipeline: the agents of its jobs, one after the other, each with its own memory.

    What an agent says at last goes to standard output, what it does with its memory to standard error, a line for each
    call.  The first step that fails ends the run; what was saved until then stays saved.

    Examples:
      commonplace pipeline run release.yml
      commonplace pipeline run release.yml --job review --allow-tasks
    """
    import asyncio  # noqa: PLC0415 - the other commands look, and should be quick

    described = load(file)
    with open_registry(store) as registry:
        return asyncio.run(_run(described, registry, job, allow_tasks=allow_tasks))


async def _run(described: Pipeline, registry: PipelineRegistry, job: str | None, *, allow_tasks: bool) -> int:
    from commonplace.ci.runner import Run, StepResult, TaskFailed, call_line  # noqa: PLC0415 - see run

    def on_start(name: str, step: Step) -> None:
        print_note(f"{name}: {_step_title(step)}")
        sys.stdout.flush()  # a task writes past our buffer

    def on_end(result: StepResult) -> None:
        if isinstance(result.step, AgentStep):
            print_text(result.output)
        if result.truncated:
            print_note(f"{_step_title(result.step)} was cut off: the model used up its tokens")

    running = Run(described, registry, env=os.environ, watch=lambda call: print_note(one_line(call_line(call))))
    try:
        await running.run(job, allow_tasks=allow_tasks, on_start=on_start, on_end=on_end)
    except TaskFailed as failed:
        print_note(str(failed))
        return ATTENTION
    return OK


def _step_title(step: Step) -> str:
    return f"agent {step.name!r} ({step.model})" if isinstance(step, AgentStep) else f"task {step.name!r}"


@pipeline.command("list")
@_store_option
@json_option
def list_(store: str | None, as_json: bool) -> None:
    """List pipelines and how many memories their agents have.

    Example:
      commonplace pipeline list
    """
    with open_registry(store) as registry:
        found = registry.all()
    if as_json:
        print_json({"pipelines": [_summary_json(one) for one in found]})
    elif found:
        print_text("\n".join(f"{one.name}: {_memory_counts(one)}" for one in found))
    else:
        print_note("no pipeline has run yet")


def _summary_json(one: PipelineSummary) -> dict[str, Any]:
    return {"name": one.name, "file": one.file, "agents": dict(one.agents), "memories": sum(one.agents.values())}


def _memory_counts(one: PipelineSummary) -> str:
    return ", ".join(f"{agent} {count}" for agent, count in sorted(one.agents.items())) or "nothing learned yet"


@pipeline.command()
@click.argument("name", metavar="NAME")
@click.argument("agent", metavar="[AGENT]", required=False)
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=MEMORY_LIMIT, show_default=True,
    help="Show at most N memories of each agent, newest first.",
)  # fmt: skip
@_store_option
@json_option
def memory(name: str, agent: str | None, limit: int, store: str | None, as_json: bool) -> None:
    """Show what the agents of a pipeline have learned. It does not count as a recall.

    Examples:
      commonplace pipeline memory release
      commonplace pipeline memory release reviewer --json
    """
    with open_registry(store) as registry:
        found = registry.get(name)
        agents = sorted(found.agents) if agent is None else [agent]
        learned = {one: registry.memories(name, one, limit=limit) for one in agents}
    if as_json:
        shown = {one: [_memory_json(record) for record in records] for one, records in learned.items()}
        print_json({"pipeline": name, "agents": shown})
        return
    if not any(learned.values()):
        print_note(f"{agent or name} has learned nothing yet")
    for one, records in learned.items():
        for record in records:
            print_text(f"{one}: {_memory_line(record)}")


def _memory_json(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "content": record.content,
        "tags": sorted(record.tags),
        "created_at": iso(record.created_at),
        "recall_count": record.usage.recalls,
        "last_recalled": iso(record.usage.last_recalled_at),
    }


def _memory_line(record: Record) -> str:
    tags = f" [{', '.join(sorted(record.tags))}]" if record.tags else ""
    return f"{one_line(record.content)}{tags} ({record.created_at:%Y-%m-%d}, {_recall_count(record.usage.recalls)})"


def _recall_count(times: int) -> str:
    return f"recalled {plural(times, 'time')}" if times else "not recalled yet"


@pipeline.command()
@click.argument("name", metavar="NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_store_option
@json_option
def delete(name: str, yes: bool, store: str | None, as_json: bool) -> int:
    """Erase a pipeline and the memories of its agents.  Its file stays; the next run starts empty.

    Example:
      commonplace pipeline delete release
    """
    with open_registry(store) as registry:
        count = sum(registry.get(name).agents.values())
        if not yes and not confirm(f"Erase the pipeline {name} and the {_memories(count)} of its agents for good?"):
            return ATTENTION
        forgotten = registry.delete(name)
    if forgotten.pending:
        print_note(PENDING)
    if store is None and (held := _backups()):
        print_note(f"{plural(held, 'backup')} in the data folder may still hold what was erased")
    if as_json:
        print_json({"pipeline": name, "memories": count})
    else:
        print_text(f"Erased the pipeline {name} and {_memories(count)}")
    return OK


def _backups() -> int:
    folder = os.path.join(home(os.environ), BACKUPS)
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"
