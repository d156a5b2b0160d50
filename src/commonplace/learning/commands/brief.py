"""``commonplace brief``: the text that a session starts with."""

from __future__ import annotations

import click

from commonplace.app import open_app
from commonplace.cli.commands import Command
from commonplace.cli.session import Session, json_option
from commonplace.cli.terminal import short_path
from commonplace.files.disk import open_file, read_rest
from commonplace.learning.brief import Injection, injection_json, ticket_task
from commonplace.learning.opening import session_brief
from commonplace.learning.receipts import save_brief_receipt
from commonplace.model.errors import InvalidInput

TICKET_BYTES = 1_048_576  # a description and notes; not a log
NOTHING = "memory is empty: no summary and no records"


@click.command(cls=Command)
@click.option("--task", metavar="TEXT", help="What the session is about.")
@click.option("--ticket", metavar="FILE", help="A Markdown file with the task.")
@click.option("--budget", metavar="TOKENS", type=click.IntRange(min=1), help="Maximum number of tokens.")
@click.option("--session", "name", metavar="ID", help="The session that it is for; see `commonplace used`.")
@click.option("--peek", is_flag=True, help="Save no receipt.")
@json_option
def brief(
    *, task: str | None, ticket: str | None, budget: int | None, name: str | None, peek: bool, as_json: bool
) -> None:
    """Print the brief for a session that is about to start.

    It has rules for the use of memory, the summary of what was learned, your preferences and the
    principles of the project, the records that match the task, and what is new.
    All but the rules is quoted as data.  The same memory gives the
    same bytes.  If memory is empty, nothing is printed.

    Examples:
      commonplace brief --task "speed up the deploy"
      commonplace brief --ticket tickets/142.md --session 0b1c --budget 2375
    """
    if task is not None and ticket is not None:
        raise InvalidInput("give --task or --ticket, not both")
    question = _read(ticket) if ticket is not None else task or ""
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        injection = session_brief(app, question, budget=budget, session=name)
        session.add_notes(*app.where.hints, *map(short_path, injection.notes), *([] if injection.text else [NOTHING]))
        receipt = None if peek else _receipt(session, injection, name)
        session.answer(injection.text, injection_json(injection) | {"session": name, "receipt": receipt})


def _receipt(session: Session, injection: Injection, name: str | None) -> str | None:
    saved, notes = save_brief_receipt(session.app, injection, session=name)
    session.add_notes(*notes)
    return saved


def _read(path: str) -> str:
    try:
        with open_file(path, limit=TICKET_BYTES) as file:
            return ticket_task(read_rest(file, limit=TICKET_BYTES).decode(errors="replace"))
    except OSError as error:
        raise InvalidInput(f"the ticket {path!r} cannot be read: {error.strerror}") from error
