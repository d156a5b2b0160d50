"""Take over what the public implementation of role memory kept in LanceDB: its rows as memories and conversations.

Rows come in as plain mappings; everything is checked before anything is kept.  Each memory gets a reference made of its
number, its date and its words, so taking a store over a second time finds what it brought the first time, also where
that was edited, archived or replaced since.  (Numbers alone will not do: two processes could give out the same one.)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from commonplace.model.binding import Binding
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, Embedder, Store, Tell, silent
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.roles.transfer import MOST, Entry, Imported, checked, keep, wrong

MEMORIES, SESSIONS = "memories", "sessions"
SIDES = ("request", "response")  # who says a message: the user and tools, or the model


class Conversation(Value):
    """One session, as it was saved last."""

    id: str
    agent: str
    at: datetime
    messages: tuple[Mapping[str, Any], ...]  #: as the framework wrote them to JSON


class Found(Value):
    """What a store holds, checked."""

    memories: tuple[Entry, ...]
    conversations: tuple[Conversation, ...]  #: oldest first


def read(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Found:
    """The rows of both tables as what they mean.  Raises ``InvalidInput`` naming the row."""
    memories = tuple(_memory(row) for row in tables.get(MEMORIES, ()))
    newest: dict[str, Conversation] = {}
    for row in tables.get(SESSIONS, ()):  # the public implementation adds a row for every turn, with all that was said
        said = _conversation(row)
        held = newest.get(said.id)
        if held and held.agent != said.agent:
            raise _odd(said.id, f"belongs to two agents, {held.agent!r} and {said.agent!r}")
        if held is None or said.at >= held.at:
            newest[said.id] = said
    return Found(memories=memories, conversations=tuple(sorted(newest.values(), key=lambda one: (one.at, one.id))))


def take_over(
    store: Store,
    memories: Sequence[Entry],
    *,
    binding: Binding,
    scope: Scope,
    clock: Clock,
    embedder: Embedder | None = None,
    secret: bytes = b"",
    tell: Tell = silent,
) -> Imported:
    """Keep the memories that were not taken over before.  Raises ``InvalidInput``, and then keeps nothing."""
    known = _known(store, scope, clock())
    new = [entry for entry in memories if entry.ref not in known]
    done = keep(store, new, binding=binding, scope=scope, clock=clock, embedder=embedder, secret=secret, tell=tell)
    return done.replace(present=done.present + len(memories) - len(new))


def _known(store: Store, scope: Scope, now: datetime) -> Collection[str | None]:
    where = Filter(scopes=frozenset({scope}), at=now, states=ANY_STATE, versions=True)
    return {record.source.ref for record in store.find(where, order=Order.ID, limit=MOST)}


def _memory(row: Mapping[str, Any]) -> Entry:
    number = row["id"]
    if not isinstance(number, int):
        raise InvalidInput(f"a memory has the id {number!r}, which is no number")
    said = {name: row[name] for name in ("content", "category", "memory_type", "created_at", "consolidated_at")}
    try:
        entry = checked(number, said | {"metadata": json.loads(row["metadata_json"] or "{}")})
    except (TypeError, RecursionError, json.JSONDecodeError) as error:
        raise wrong(number, f"metadata_json is not JSON: {error}") from error
    words = f"{row['created_at']}\n{entry.content}"
    return entry.replace(ref=f"lance:{number}:{sha256(words.encode()).hexdigest()[:16]}")


def _conversation(row: Mapping[str, Any]) -> Conversation:
    name, agent = row["session_id"], row["agent_name"]
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"a session has the id {name!r}, which names nothing")
    if not isinstance(agent, str):
        raise _odd(name, f"is of the agent {agent!r}, which is no name")
    return Conversation(id=name, agent=agent, at=_moment(name, row["timestamp"]), messages=_messages(name, row))


def _moment(session: str, said: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(said)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise _odd(session, f"has the timestamp {said!r}, which is no ISO 8601 date") from None


def _messages(session: str, row: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    try:
        said = json.loads(row["messages_json"])
    except (TypeError, ValueError, RecursionError) as error:
        raise _odd(session, f"has messages that are not JSON: {error}") from error
    if not isinstance(said, list) or not all(_is_message(one) for one in said):
        raise _odd(session, "has messages that are no list of requests and responses, each with its parts")
    return tuple(said)


def _is_message(said: Any) -> bool:
    parts = said.get("parts") if isinstance(said, dict) else None
    return isinstance(parts, list) and all(isinstance(part, dict) for part in parts) and said.get("kind") in SIDES


def _odd(session: str, reason: str) -> InvalidInput:
    return InvalidInput(f"the session {session!r} {reason}")
