"""An edit of a record: what the new version says, whose words they are, and who may not make it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commonplace.engine.admission import Admitted, render_value
from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.records import CEILING, Draft, Record, Source, Trust
from commonplace.text.suggest import unknown_category

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory


def edit_record(memory: Memory, before: Record, changes: Mapping[str, Any]) -> Record:
    """Return a record with the named fields changed, before the gate has seen it."""
    after = before.replace(**changes)
    if before.held and not after.held:
        require_person(memory, before)
    if "value" in changes and "content" not in changes and _only_renders(before) and after.value is not None:
        after = after.replace(content="")  # admission renders the new value
    if "category" in changes and memory.binding.categories is not None:
        kinds = memory.binding.categories
        if after.category not in kinds:
            raise InvalidInput(unknown_category(after.category, kinds))
        after = after.replace(kind=kinds[after.category])
    return after


def readmit(memory: Memory, after: Record, before: Record) -> Admitted:
    """Pass an edited record through the gate like a new one; keep what an edit cannot change."""
    draft = Draft(
        content=after.content, category=after.category, kind=after.kind, scope=after.scope, key=after.key,
        value=after.value, tags=after.tags, metadata=after.metadata, pinned=after.pinned, held=after.held,
        occurred_at=after.occurred_at, expires_at=after.expires_at,
    )  # fmt: skip
    admitted = memory.writer.admit(draft, memory.binding)
    source, trust = _author(admitted.record, before)
    record = admitted.record.replace(
        id=before.id, created_at=before.created_at, source=source, trust=trust, archived_at=before.archived_at,
        superseded_by=before.superseded_by, approved_at=_approval(admitted.record, before, memory),
        consolidated_at=before.consolidated_at if admitted.record.content == before.content else None,
    )  # fmt: skip
    return admitted.replace(record=record)


def is_person(memory: Memory) -> bool:
    """Whether what this memory writes is a person's word."""
    return CEILING[memory.binding.channel] is Trust.USER


def outranks(record: Record, memory: Memory) -> bool:
    """Whether a record is a person's word, or trusted more than what this memory writes: then changes of it wait."""
    return record.authority > CEILING[memory.binding.channel]


def require_person(memory: Memory, record: Record) -> None:
    """Refuse to decide about a record that waits for review, unless a person does it."""
    if not is_person(memory):
        raise Forbidden(f"record {record.id!r} waits for a person; {memory.binding.channel} may not release it")


def is_same(after: Record, before: Record) -> bool:
    """Return whether an edit changes anything but dates and the names of who edits."""
    unedited = {"version", "updated_at", "created_at", "usage", "source", "trust", "id", "approved_at"}
    return all(getattr(after, field) == getattr(before, field) for field in Record.fields if field not in unedited)


def _only_renders(record: Record) -> bool:
    return record.value is not None and record.content == render_value(record.value)


def _author(after: Record, before: Record) -> tuple[Source, Trust]:
    """Return the source and the trust of an edited record: an editor who is no person never raises its trust."""
    if after.content == before.content and after.value == before.value:
        return before.source, before.trust
    source = after.source.replace(parents=before.source.parents)
    return source, after.trust if after.trust is Trust.USER else min(after.trust, before.trust)


def _approval(after: Record, before: Record, memory: Memory) -> Any:
    """Return since when a person has approved it: an approval is of these words in this category."""
    same = (after.content, after.value, after.category) == (before.content, before.value, before.category)
    return before.approved_at if same or is_person(memory) else None
