"""Memories of a role in other formats: the JSON array of ``memory export``, LanceDB stores of the public role memory.

Each is a source of the one item stream (``engine.transfer``).  Vectors are in none of them: an import embeds anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal

from commonplace.engine.transfer import Arrival, parse_json
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Store
from commonplace.model.queries import Filter, Order
from commonplace.model.records import Draft, Json, Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.wire import decode

ALL = -1
KINDS = {kind.value: kind for kind in (Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL)}
MEMORIES, SESSIONS = "memories", "sessions"  # the tables of a LanceDB store
SIDES = ("request", "response")  # who says a message: the user and tools, or the model


class MemoryEntry(Value):
    """A memory as a file has it."""

    content: str = ""
    category: str = "general"
    memory_type: Literal["episodic", "semantic", "procedural"] = "semantic"
    created_at: datetime | None = None
    consolidated_at: datetime | None = None  # else its facts would be made a second time elsewhere
    metadata: Mapping[str, Json] = {}


class StoredConversation(Value):
    """A session, as it was saved last."""

    id: str
    agent: str
    at: datetime
    messages: tuple[Mapping[str, Any], ...]  #: as the framework wrote them to JSON


# JSON


def export_entries(store: Store, scope: Scope, *, now: datetime) -> list[dict[str, Json]]:
    """Return every live memory, newest first."""
    where = Filter(scopes=frozenset({scope}), at=now, kinds=frozenset(KINDS.values()))
    return [to_entry(record) for record in store.find(where, order=Order.NEWEST, limit=ALL)]


def to_entry(record: Record) -> dict[str, Json]:
    """Return a memory as a file has it."""
    entry: dict[str, Json] = {
        "id": record.id,
        "content": record.content,
        "category": record.category,
        "created_at": record.created_at.astimezone(UTC).isoformat(),
        "memory_type": record.kind.value,
        "metadata": dict(record.metadata) or None,
    }
    if record.consolidated_at is not None:
        entry["consolidated_at"] = record.consolidated_at.astimezone(UTC).isoformat()
    return entry


def read_entries(text: str) -> Iterator[Arrival]:
    """Yield the memories of a file; raise ``InvalidInput`` naming the first that is none."""
    rows = parse_json(text, "the file")
    if not isinstance(rows, list):
        raise InvalidInput("Expected a JSON array of memory objects.")
    yield from (_arrival(number, row) for number, row in enumerate(rows))


def _arrival(number: int, row: Any) -> Arrival:
    """Return one memory; empty fields count as left out, and an id is given anew."""
    place = f"Record {number}"
    if not isinstance(row, dict):
        raise InvalidInput(f"{place}: expected an object, not {row!r}")
    try:
        entry: MemoryEntry = decode(MemoryEntry, {name: row[name] for name in MemoryEntry.fields if row.get(name)})
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}") from error
    draft = Draft(
        content=entry.content, category=entry.category, kind=KINDS[entry.memory_type], metadata=entry.metadata
    )
    return Arrival(place=place, draft=draft, created_at=entry.created_at, consolidated_at=entry.consolidated_at)


# LanceDB


def read_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[Arrival]:
    """Yield the memories of a table; raise ``InvalidInput`` naming the row.

    Each gets a reference made of its number, its date and its words, so that a second import finds what the first one
    brought.  (Numbers alone will not do: two processes could give out the same one.)
    """
    for row in rows:
        number = row["id"]
        if not isinstance(number, int):
            raise InvalidInput(f"a memory has the id {number!r}, which is no number")
        if not isinstance(row["content"], str):
            raise InvalidInput(f"Record {number}: content must be a string, not {row['content']!r}")
        metadata = parse_json(row["metadata_json"] or "{}", f"Record {number}: metadata_json")
        arrival = _arrival(number, {**row, "metadata": metadata})
        words = f"{row['created_at']}\n{row['content']}"
        ref = f"lance:{number}:{sha256(words.encode()).hexdigest()[:16]}"
        yield arrival.replace(draft=arrival.draft.replace(ref=ref))


def read_conversations(rows: Iterable[Mapping[str, Any]]) -> Sequence[StoredConversation]:
    """Return the sessions of a table, oldest first: of each the row that was saved last, which repeats the others."""
    newest: dict[str, StoredConversation] = {}
    for row in rows:
        found = _conversation(row)
        held = newest.get(found.id)
        if held and held.agent != found.agent:
            raise InvalidInput(f"the session {found.id!r} belongs to two agents, {held.agent!r} and {found.agent!r}")
        if held is None or found.at >= held.at:
            newest[found.id] = found
    return sorted(newest.values(), key=lambda one: (one.at, one.id))


def _conversation(row: Mapping[str, Any]) -> StoredConversation:
    name, agent = row["session_id"], row["agent_name"]
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"a session has the id {name!r}, which names nothing")
    if not isinstance(agent, str):
        raise InvalidInput(f"the session {name!r} is of the agent {agent!r}, which is no name")
    at = decode(datetime, row["timestamp"], name=f"the timestamp of the session {name!r}")
    messages = parse_json(row["messages_json"], f"the messages of the session {name!r}")
    if not isinstance(messages, list) or not all(map(_is_message, messages)):
        raise InvalidInput(
            f"the session {name!r} has messages that are no list of requests and responses, each with its parts"
        )
    return StoredConversation(id=name, agent=agent, at=at, messages=tuple(messages))


def _is_message(message: Any) -> bool:
    parts = message.get("parts") if isinstance(message, dict) else None
    return isinstance(parts, list) and all(isinstance(part, dict) for part in parts) and message.get("kind") in SIDES
