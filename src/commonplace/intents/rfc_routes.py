"""RFC-0015 as it was written: lists with every filter, batches, namespaces and their permissions, summaries."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from commonplace.intents import wire
from commonplace.intents.intents import Permissions
from commonplace.intents.wire import Batch, Deleted, Found, Name, Strict, Where, WherePage, WirePage, moment
from commonplace.model.errors import InvalidInput
from commonplace.server.routing import Call, Route

BYTES_PER_KB = 1024


class Grant(Strict):
    """What one agent may do in a namespace."""

    agent: Name
    access: Literal["none", "read", "write", "admin"]


class Grants(Strict):
    """Who may do what in a namespace."""

    default: Literal["none", "read", "write"] = "read"
    allow: Annotated[list[Grant], Meta(max_length=1000)] = field(default_factory=list)


class NewGrants(Strict):
    """The permissions of a namespace, to be set."""

    permissions: Grants


class Namespace(msgspec.Struct, kw_only=True):
    """A namespace and who may do what in it."""

    namespace: str
    permissions: Grants


class Namespaces(msgspec.Struct, kw_only=True):
    """The namespaces that a caller may read."""

    namespaces: list[str]


class WhichAgent(Strict):
    """As which agent an operator asks."""

    agent_id: Name | None = None


class WorkingSummary(msgspec.Struct, kw_only=True):
    """How much working memory there is."""

    entry_count: int
    total_size_kb: float
    tasks_with_memory: list[str]


class EpisodicSummary(msgspec.Struct, kw_only=True):
    """How much episodic memory there is."""

    entry_count: int
    capacity: int
    pinned_count: int
    total_size_kb: float
    oldest_entry: str | None
    newest_entry: str | None


class WireSummary(msgspec.Struct, kw_only=True):
    """How much an agent holds."""

    agent_id: str
    working: WorkingSummary
    episodic: EpisodicSummary
    semantic_namespaces_accessible: list[str]


def listed(call: Call) -> WirePage:
    """The entries meant, with how many there are in all."""
    asked: WherePage = call.query
    limit = min(asked.limit, wire.LIMIT_MOST)
    return wire.page(call.intents.page(call.caller, asked.filter(), limit=limit, offset=asked.offset))


def keep_all(call: Call) -> Found:
    """Keep entries, new or not; all of them or none."""
    given: Batch = call.body
    kept = call.intents.batch(call.caller, [entry.draft() for entry in given.entries])
    return Found(entries=wire.entries(kept))


def delete_all(call: Call) -> Deleted:
    """Erase the entries meant; a filter that names nothing would mean all, so it is refused."""
    by_query: Where = call.query
    by_body: Where | None = call.body
    if by_body is not None and by_query != Where():
        raise InvalidInput("the filter stands in the parameters and in the body; put it in one of them")
    asked = by_body or by_query
    if asked == Where():
        raise InvalidInput("a filter that names nothing would erase everything; name at least one thing")
    return Deleted(deleted=call.intents.remove_where(call.caller, asked.filter()))


def namespaces(call: Call) -> Namespaces:
    """The namespaces that the caller may read."""
    asked: WhichAgent = call.query
    return Namespaces(namespaces=sorted(call.intents.namespaces(call.caller, asked.agent_id)))


def permissions(call: Call) -> Namespace:
    """Who may do what in a namespace."""
    return _namespace(call.path["namespace"], call.intents.permissions(call.caller, call.path["namespace"]))


def permit(call: Call) -> Namespace:
    """Say who may do what in a namespace."""
    given: NewGrants = call.body
    allow = {grant.agent: str(grant.access) for grant in given.permissions.allow}
    if len(allow) < len(given.permissions.allow):
        raise InvalidInput("an agent is named twice in the permissions")
    wanted = Permissions(default=given.permissions.default, allow=allow)
    return _namespace(call.path["namespace"], call.intents.permit(call.caller, call.path["namespace"], wanted))


def summary(call: Call) -> WireSummary:
    """How much an agent holds."""
    found = call.intents.summary(call.caller, call.path["agent"])
    return WireSummary(
        agent_id=found.agent,
        working=WorkingSummary(
            entry_count=found.working_count, total_size_kb=_kb(found.working_bytes),
            tasks_with_memory=sorted(found.tasks),
        ),
        episodic=EpisodicSummary(
            entry_count=found.episodic_count, capacity=found.capacity, pinned_count=found.pinned_count,
            total_size_kb=_kb(found.episodic_bytes), oldest_entry=moment(found.oldest) if found.oldest else None,
            newest_entry=moment(found.newest) if found.newest else None,
        ),
        semantic_namespaces_accessible=sorted(found.namespaces),
    )  # fmt: skip


def _namespace(name: str, found: Permissions) -> Namespace:
    allow = [
        msgspec.convert({"agent": agent, "access": access}, Grant) for agent, access in sorted(found.allow.items())
    ]
    return Namespace(namespace=name, permissions=msgspec.convert({"default": found.default, "allow": allow}, Grants))


def _kb(size: int) -> float:
    return round(size / BYTES_PER_KB, 3)


ROUTES = (
    Route(
        method="GET", path="/api/v1/memory", summary="The entries meant, newest first, and how many there are.",
        handle=listed, query=WherePage, answers=WirePage, problems=(403,),
    ),
    Route(
        method="POST", path="/api/v1/memory/batch", summary="Keep entries, new or not; all of them or none.",
        handle=keep_all, body=Batch, answers=Found, problems=(403, 404, 409, 429),
    ),
    Route(
        method="DELETE", path="/api/v1/memory/batch", summary="Erase every entry that a filter means.",
        handle=delete_all, query=Where, body=Where, optional_body=True, answers=Deleted, problems=(403, 404),
    ),
    Route(
        method="GET", path="/api/v1/memory/namespaces", summary="The namespaces that you may read.",
        handle=namespaces, query=WhichAgent, answers=Namespaces, problems=(403,), tag="namespaces",
    ),
    Route(
        method="GET", path="/api/v1/memory/namespaces/{namespace}", summary="Who may do what in a namespace.",
        handle=permissions, answers=Namespace, problems=(403, 404), tag="namespaces",
    ),
    Route(
        method="PATCH", path="/api/v1/memory/namespaces/{namespace}", summary="Say who may do what in a namespace.",
        handle=permit, body=NewGrants, answers=Namespace, problems=(403, 404, 409), tag="namespaces",
    ),
    Route(
        method="GET", path="/api/v1/agents/{agent}/memory/summary", summary="How much an agent holds.",
        handle=summary, answers=WireSummary, problems=(403, 404),
    ),
)  # fmt: skip
