"""Sessions and tickets as chunks: cut, cleaned and named so that every piece leads back to its turn.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from commonplace.engine.rendering import is_sealed, poses_as_memory, remove_fenced
from commonplace.model.documents import Chunk, DocumentKind
from commonplace.model.records import CEILING, Channel, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.cleaning import chunks, one_line

if TYPE_CHECKING:
    from commonplace.engine.admission import Gate

TOOL = "tool"  # the speaker of what a tool brought in, from wherever
LABEL_CHARS = 12
USER = "user"
POSED = "(left out: it posed as memory)"  # stands for a tool's output of which nothing is left, and for what was pasted


Message: TypeAlias = "Mapping[str, Any] | tuple[str, str] | Turn"  #: a role and its words


class Turn(Value):
    """One piece of a session or a ticket, as it is handed in for indexing."""

    ref: str  #: where it stands, such as the number of the turn
    text: str
    speaker: str = ""  #: user, assistant, tool, or a name
    occurred_at: datetime | None = None


def chunk_turns(
    scope: Scope, kind: DocumentKind, name: str, turns: Sequence[Turn], gate: Gate, *, first: int = 0
) -> tuple[Chunk, ...]:
    """The chunks of a session or a ticket, each with a reference of its own, numbered from ``first`` on."""
    found: list[Chunk] = []
    taken: set[str] = set()
    for turn in turns:  # without fenced text: recalled records would be learned again
        speaker = _label(turn.speaker, gate, what="the speaker")
        left = remove_fenced(turn.text)
        if speaker == USER and poses_as_memory(turn.text, gate.key):
            left = f"{left}\n> {POSED}"  # a quotation: words from outside lower the trust in what is learned
        cut = list(chunks(gate.text(left, what=f"turn {turn.ref}")))
        if not cut and speaker == TOOL and turn.text.strip() and not is_sealed(turn.text, gate.key):
            cut = [POSED]  # that a tool has spoken lowers the trust in what is learned
        whole = _free_ref(_label(turn.ref, gate, what="the reference"), taken) if cut else ""
        trust = Trust.EXTERNAL if speaker == TOOL else CEILING[Channel.CAPTURE]
        for number, text in enumerate(cut):
            ref = whole if len(cut) == 1 else f"{whole}.{number}"
            found.append(
                Chunk(
                    scope=scope, kind=kind, document=name, seq=first + len(found), ref=ref, text=text,
                    speaker=speaker, occurred_at=turn.occurred_at, trust=trust,
                )
            )  # fmt: skip
    return tuple(found)


def _label(text: str, gate: Gate, *, what: str) -> str:
    """A name or a number on one line; a short word is no secret, and scanning it would take as long as the turn."""
    return text if len(text) <= LABEL_CHARS and text.isalnum() else one_line(gate.text(text, what=what))


def join_chunks(pieces: Sequence[Chunk]) -> list[Turn]:
    """The turns that the chunks of one document were cut from, in order."""
    turns: list[Turn] = []
    expected = ""  # the reference of the next piece of the same turn
    for piece in pieces:
        whole, dot, number = piece.ref.rpartition(".")
        if piece.ref == expected:
            turns[-1] = turns[-1].replace(text=f"{turns[-1].text}\n{piece.text}")
        else:
            begun = dot and number == "0"
            ref = whole if begun else piece.ref
            turns.append(Turn(ref=ref, text=piece.text, speaker=piece.speaker, occurred_at=piece.occurred_at))
        expected = f"{whole}.{int(number) + 1}" if dot and number.isdecimal() else ""
    return turns


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
