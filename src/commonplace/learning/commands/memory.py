"""``commonplace memory``: show, clear or rebuild what this project learned."""

from __future__ import annotations

from typing import Any

import click

from commonplace.app import App, open_app
from commonplace.cli.commands import Command, Group, hidden
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.session import Session, confirm, json_option, open_session
from commonplace.files.artifacts import SUMMARY, publish
from commonplace.learning.artifacts import load_artifacts
from commonplace.learning.brief import injection_json
from commonplace.learning.learn import ENQUEUED
from commonplace.learning.learn import clear_learned as clear_all
from commonplace.learning.learn import enqueue_consolidation as ask_for
from commonplace.learning.opening import open_workspace, session_brief
from commonplace.model.errors import InvalidInput
from commonplace.roles import ROLE_COMMANDS, clear_role
from commonplace.text.cleaning import plural

CLEARED = "Memory data cleared and system prompt refreshed."
EMPTY = "Memory payload is empty (memories disabled or no memory summary found)."
USAGE = "Usage: commonplace memory view|clear|reset|enqueue|rebuild; `commonplace role` has the memory of an agent"


class _MemoryGroup(Group):
    """A group that answers an unknown subcommand with its usage."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See ``click.Group``."""
        if args and self.get_command(ctx, args[0]) is None:
            raise InvalidInput(f"{args[0]!r} is not a subcommand. {USAGE}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_MemoryGroup,
    invoke_without_command=True,
    help="""Show, clear or rebuild what this project learned (default: view).

    The memory of an agent of a role.yaml is under `commonplace role`.

    Examples:
      commonplace memory
      commonplace memory enqueue
    """,
)
@click.pass_context
def memory(context: click.Context) -> Any:
    """What this project learned; see the help above."""
    if context.invoked_subcommand is None:
        return context.invoke(view, as_json=False)
    return None


@memory.command(cls=Command)
@json_option
def view(as_json: bool) -> None:
    """Show what a session is shown when it starts.

    Example:
      commonplace memory view
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        work = open_workspace(app)
        publish(work)  # what a process that died had stored and not written
        summary = load_artifacts(work).get(SUMMARY)
        if not work.learning.enabled or summary is None or not summary.text.strip():
            session.add_notes(EMPTY)
            session.answer("", {"text": "", "tokens": 0})
            return
        session.answer(*_payload(app))


def _payload(app: App) -> tuple[str, dict[str, Any]]:
    injection = session_brief(app, "")
    return injection.text, {"text": injection.text, **injection_json(injection)}


def _clear(yes: bool, records: str, as_json: bool) -> int:
    with open_session(as_json=as_json) as session:
        session.require_person("clears what was learned")
        every = records == "all"
        what = "every record" if every else "records made of sessions"
        question = f"Erase what this project learned irreversibly: {what}, extractions, artifacts, receipts?"
        if not yes and not confirm(question):
            return ATTENTION
        done = clear_all(open_workspace(session.app), every=every)
        session.note_remains(pending=done.pending)
        stays = [] if every else ["records that people wrote, and"]
        session.add_notes(
            f"{plural(len(done.records), 'record')} and {plural(done.documents, 'document')} were erased; "
            + " ".join([*stays, "indexed sessions stay"])
            + (f"; your own words in {', '.join(done.kept)} too" if done.kept else "")
        )
        data = {"records": list(done.records), "documents": done.documents, "kept": list(done.kept)}
        session.answer(CLEARED, data)
    return OK


_yes = click.option("--yes", is_flag=True, help="Do not ask.")
_records = click.option(
    "--records", type=click.Choice(["learned", "all"]), default="learned",
    help="Which records: those extracted from sessions, or all.",
)  # fmt: skip


@memory.command(cls=Command)
@click.argument("role", required=False, metavar="")  # as before `commonplace role clear`
@click.option("--what", hidden=True)
@click.option("--type", "kind", hidden=True)
@click.option("--force", is_flag=True, hidden=True)
@_yes
@_records
@json_option
def clear(
    *, role: str | None, what: str | None, kind: str | None, force: bool, yes: bool, records: str, as_json: bool
) -> int:
    """Erase all that this project learned: extractions, generated artifacts, receipts, records from sessions.

    Records and lines that people wrote stay, and sessions stay indexed.

    Example:
      commonplace memory clear --yes
    """
    if role is not None:
        return clear_role(role, what=what or "all", kind=kind, force=force or yes, as_json=as_json)
    if what or kind or force:
        raise InvalidInput("--what, --type and --force need a ROLE, such as role.yaml")
    return _clear(yes, records, as_json)


@memory.command(cls=Command)
@json_option
def enqueue(as_json: bool) -> None:
    """Consolidate at the next start of a session, even if nothing has changed.

    Example:
      commonplace memory enqueue
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        ask_for(open_workspace(app))
        if not app.where.learning.enabled:
            session.add_notes("learning is switched off here, so it waits until `memories.enabled` is true")
        session.answer(ENQUEUED, {"enqueued": True})


for _name, _command in {"reset": clear, "rebuild": enqueue, **{one.name or "": one for one in ROLE_COMMANDS}}.items():
    memory.add_command(hidden(_command), _name)
