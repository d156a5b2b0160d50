"""``commonplace why``: where a record comes from."""

from __future__ import annotations

from collections.abc import Iterator

import click

from commonplace.cli.commands import Command
from commonplace.cli.session import json_option, open_session, to_seconds
from commonplace.engine.origins import trace_origin
from commonplace.engine.rendering import iso
from commonplace.model.ids import SHORT
from commonplace.model.origins import Origin, OriginRecord, OriginStep, QuotedTurn
from commonplace.text.cleaning import one_line
from commonplace.wire import encode

DECIDED = frozenset({"approve", "reject", "rollback", "restore"})  # what people decide; each version shows the rest


@click.command(cls=Command)
@click.argument("id", metavar="ID")
@json_option
def why(id: str, as_json: bool) -> None:
    """Show where a record comes from: its versions and their sources, back to the turn, file or call.

    Each step has its date, channel and trust, and reviews with who decided and when.  Records that it was derived from
    follow, indented.

    Example:
      commonplace why 1m7gmb4480
    """
    with open_session(as_json=as_json) as session:
        origin = trace_origin(session.memory, id)
        session.answer("\n".join(_lines(origin)), encode(origin))


def _lines(origin: Origin) -> Iterator[str]:
    for record in origin.chain:
        indent = "    " * record.depth
        if record.depth:
            yield f"{indent[4:]}  derived from"
        yield from (f"{indent}{line}" for line in _record_lines(record))


def _record_lines(record: OriginRecord) -> Iterator[str]:
    yield f"record {record.id}" + (", which was erased" if record.erased else "")
    yield from (f"  {_step(step)}" for step in record.steps)
    if record.quote:
        yield f"  quote: {one_line(record.quote)}"
    yield from (f"  {_turn(turn)}" for turn in record.turns)
    yield from (
        f"  {act.verb} {to_seconds(iso(act.at) or '')} by {act.actor}" for act in record.acts if act.verb in DECIDED
    )


def _step(step: OriginStep) -> str:
    ref = f", {one_line(step.ref)}" if step.ref else ""
    approved = f", approved {to_seconds(iso(step.approved_at) or '')}" if step.approved_at else ""
    replaced = f", replaced by record {step.superseded_by[:SHORT]}" if step.superseded_by else ""
    date = to_seconds(iso(step.at) or "")
    return (
        f"version {step.version}  {date}  from {step.channel}{ref}; trust {step.trust.name.lower()}{approved}{replaced}"
    )


def _turn(turn: QuotedTurn) -> str:
    if turn.text is None:
        return f"{one_line(turn.ref)}: not here any more"
    when = f", {to_seconds(iso(turn.occurred_at) or '')}" if turn.occurred_at else ""
    trust = f", trust {turn.trust.name.lower()}" if turn.trust is not None else ""
    return f"{one_line(turn.ref)} ({turn.speaker or 'unknown'}{when}{trust}): {one_line(turn.text)}"
