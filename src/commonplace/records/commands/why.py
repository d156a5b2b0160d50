"""``commonplace why``: where a record comes from."""

from __future__ import annotations

from collections.abc import Iterator

import click

from commonplace.cli.commands import Command
from commonplace.cli.session import json_option, open_session, to_seconds
from commonplace.engine.origins import trace_origin
from commonplace.engine.rendering import iso
from commonplace.model.ids import SHORT
from commonplace.model.origins import Origin, OriginStep, QuotedTurn
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


def _lines(origin: Origin, indent: str = "") -> Iterator[str]:
    yield f"{indent}record {origin.record}"
    for step in origin.steps:
        yield f"{indent}  {_step(step)}"
    if origin.quote:
        yield f"{indent}  quote: {one_line(origin.quote)}"
    for turn in origin.turns:
        yield f"{indent}  {_turn(turn)}"
    for act in origin.acts:
        if act.verb in DECIDED:
            yield f"{indent}  {act.verb} {to_seconds(iso(act.at) or '')} by {act.actor}"
    for parent in origin.parents:
        yield f"{indent}  derived from"
        yield from _lines(parent, f"{indent}    ")
    for gone in origin.gone:
        yield f"{indent}  derived from record {gone[:SHORT]}, which was erased"


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
