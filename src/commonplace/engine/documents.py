"""Make a session or a ticket searchable: cut, cleaned, redacted, and without what a person has erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.engine.admission import Gate, transcript_policy
from commonplace.engine.results import IndexResult
from commonplace.engine.tombstones import document_erased, refusal_notes, without_erased_turns
from commonplace.engine.transcripts import Turn, chunk_turns, digest_of
from commonplace.engine.writer import document_change
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import Forbidden
from commonplace.model.records import CEILING, Channel, Source
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import one_line

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory


def index_document(
    memory: Memory, kind: DocumentKind, name: str, turns: Sequence[Turn], *, scope: Scope | None
) -> IndexResult:
    """Store the turns of a document; see ``Memory.index``."""
    target = scope or next(iter(sorted(memory.binding.transcripts, key=str)), None)
    if target is None or target not in memory.binding.transcripts:
        raise Forbidden(f"{target or 'this binding'} takes records only, no sessions and no tickets")
    gate = Gate(memory.secret(), personal=transcript_policy(memory.binding, target))
    name = one_line(gate.text(name, what="the name"))
    if erased := document_erased(memory.store, (target, name), memory.secret()):
        return IndexResult(redactions=tuple(gate.findings), notes=refusal_notes([erased], kind))
    said = chunk_turns(target, kind, name, turns, gate)
    pieces, gone = without_erased_turns(memory.store, said, memory.secret())
    now = memory.clock()
    source = Source(channel=Channel.CAPTURE, ref=name)
    document = Document(
        scope=target, kind=kind, name=name, digest=digest_of(pieces), source=source,
        trust=CEILING[Channel.CAPTURE], created_at=now, updated_at=now,
    )  # fmt: skip
    written = memory.writer.apply([document_change(document, pieces)])
    return IndexResult(redactions=tuple(gate.findings), notes=(*written.notes, *refusal_notes(gone, "turn")))
