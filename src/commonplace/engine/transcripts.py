"""Sessions and tickets as chunks: cut, cleaned and named so that every piece leads back to its turn.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.domain.documents import Chunk, DocumentKind
from commonplace.domain.records import CEILING, Channel
from commonplace.domain.scopes import Scope
from commonplace.domain.values import Value
from commonplace.engine.text import chunks, one_line

if TYPE_CHECKING:
    from commonplace.engine.admission import Gate


class Turn(Value):
    """One piece of a session or a ticket, as it is handed in for indexing."""

    ref: str  #: where it stands, such as the number of the turn
    text: str
    speaker: str = ""  #: user, assistant, tool, or a name
    occurred_at: datetime | None = None


def pieces_of(scope: Scope, kind: DocumentKind, name: str, turns: Sequence[Turn], gate: Gate) -> tuple[Chunk, ...]:
    """The chunks of a session or a ticket, each with a reference of its own."""
    found: list[Chunk] = []
    taken: set[str] = set()
    for turn in turns:
        cut = list(chunks(gate.text(turn.text, what=f"turn {turn.ref}")))
        whole = _free_ref(one_line(gate.text(turn.ref, what="the reference")), taken) if cut else ""
        speaker = one_line(gate.text(turn.speaker, what="the speaker"))
        for number, text in enumerate(cut):
            ref = whole if len(cut) == 1 else f"{whole}.{number}"
            found.append(
                Chunk(
                    scope=scope, kind=kind, document=name, seq=len(found), ref=ref, text=text, speaker=speaker,
                    occurred_at=turn.occurred_at, trust=CEILING[Channel.CAPTURE],
                )
            )  # fmt: skip
    return tuple(found)


def _free_ref(ref: str, taken: set[str]) -> str:
    """A reference of its own for every turn, also if a host numbers them carelessly: equal ones would be one hit."""
    own, number = ref, 1
    while own in taken:
        number += 1
        own = f"{ref}-{number}"
    taken.add(own)
    return own


def digest_of(pieces: Sequence[Chunk]) -> str:
    """What a document says; the same digest again is no change."""
    from hashlib import sha256  # noqa: PLC0415 - only indexing needs it; recall must start without

    return sha256(
        "\x1e".join(f"{piece.ref}\x1f{piece.speaker}\x1f{piece.text}" for piece in pieces).encode()
    ).hexdigest()
