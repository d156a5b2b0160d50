"""The routes of RFC-0015: lists with every filter, batches, namespaces and their permissions, summaries."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from commonplace.intents import verbs
from commonplace.intents.entries import EntryFilter, Permissions
from commonplace.intents.public_format import (
    Batch,
    Deleted,
    Filter,
    FilterPage,
    Public,
    PublicEntries,
    PublicPage,
    iso_time,
    public_entries,
    public_page,
)
from commonplace.intents.verbs import Access, IntentAccess
from commonplace.model.errors import InvalidInput
from commonplace.routes import Call, Name, Route

BYTES_PER_KB = 1024


class Grant(Public):
    """What one agent may do in a namespace."""

    agent: Name = field(name="agent")
    access: Access


class Grants(Public):
    """Who may do what in a namespace."""

    default: Literal["none", "read", "write"] = "read"
    allow: Annotated[list[Grant], Meta(max_length=1000)] = field(default_factory=list)


class NewGrants(Public):
    """The permissions of a namespace to set."""

    permissions: Grants


class Namespace(Public):
    """A namespace and who may do what in it."""

    namespace: str
    permissions: Grants


class Namespaces(Public):
    """The namespaces that a caller may read."""

    namespaces: list[str]


class AgentQuery(Public):
    """The agent that an operator asks for."""

    agent_id: Name | None = None


class WorkingSummary(Public):
    """How much working memory there is."""

    entry_count: int
    total_size_kb: float
    tasks_with_memory: list[str]


class EpisodicSummary(Public):
    """How much episodic memory there is."""

    entry_count: int
    capacity: int
    pinned_count: int
    total_size_kb: float
    oldest_entry: str | None
    newest_entry: str | None


class PublicSummary(Public):
    """How many entries an agent has."""

    agent_id: str
    working: WorkingSummary
    episodic: EpisodicSummary
    semantic_namespaces_accessible: list[str]


def list_matching(access: IntentAccess, call: Call) -> PublicPage:
    """Return a page of the entries that match, and their total number."""
    asked: FilterPage = call.query
    return public_page(verbs.list_(access, **asked.arguments()))


def store_all(access: IntentAccess, call: Call) -> PublicEntries:
    """Store entries, all of them or none."""
    given: Batch = call.body
    drafts = [verbs.draft_of(entry.arguments()) for entry in given.entries]
    return PublicEntries(entries=public_entries(access.intents.batch(access.caller, drafts)))


def delete_matching(access: IntentAccess, call: Call) -> Deleted:
    """Erase the entries that match; an empty filter would match all, so it is refused."""
    by_query: Filter = call.query
    by_body: Filter | None = call.body
    if by_body is not None and by_query != Filter():
        raise InvalidInput("the filter is in the parameters and in the body; put it in one of them")
    asked = by_body or by_query
    if asked == Filter():
        raise InvalidInput("an empty filter would erase everything; name at least one thing")
    given = asked.arguments()
    where = EntryFilter(agent=given.pop("agent_id"), **given)
    return Deleted(deleted=access.intents.remove_where(access.caller, where))


def namespaces(access: IntentAccess, call: Call) -> Namespaces:
    """Return the namespaces that the caller may read."""
    return Namespaces(namespaces=verbs.namespaces(access, **call.query.arguments()))


def permissions(access: IntentAccess, call: Call) -> Namespace:
    """Return who may do what in a namespace."""
    return _namespace(call, verbs.permissions(access, call.path["namespace"]))


def permit(access: IntentAccess, call: Call) -> Namespace:
    """Set who may do what in a namespace."""
    given: Grants = call.body.permissions
    allow = {grant.agent: grant.access for grant in given.allow}
    if len(allow) < len(given.allow):
        raise InvalidInput("an agent is named twice in the permissions")
    return _namespace(call, verbs.permit(access, call.path["namespace"], default=given.default, allow=allow))


def summary(access: IntentAccess, call: Call) -> PublicSummary:
    """Return how many entries an agent has."""
    found = verbs.summary(access, call.path["agent"])
    return PublicSummary(
        agent_id=found.agent,
        working=WorkingSummary(
            entry_count=found.working_count, total_size_kb=_kb(found.working_bytes),
            tasks_with_memory=sorted(found.tasks),
        ),
        episodic=EpisodicSummary(
            entry_count=found.episodic_count, capacity=found.capacity, pinned_count=found.pinned_count,
            total_size_kb=_kb(found.episodic_bytes), oldest_entry=iso_time(found.oldest) if found.oldest else None,
            newest_entry=iso_time(found.newest) if found.newest else None,
        ),
        semantic_namespaces_accessible=sorted(found.namespaces),
    )  # fmt: skip


def _namespace(call: Call, found: Permissions) -> Namespace:
    allow = [{"agent": agent, "access": access} for agent, access in sorted(found.allow.items())]
    grants = msgspec.convert({"default": found.default, "allow": allow}, Grants)
    return Namespace(namespace=call.path["namespace"], permissions=grants)


def _kb(size: int) -> float:
    return round(size / BYTES_PER_KB, 3)


RFC_ROUTES = (
    Route(
        method="GET", path="/api/v1/memory", summary="List the entries that match, newest first.",
        handle=list_matching, query=FilterPage, answers=PublicPage, problems=(403,),
    ),
    Route(
        method="POST", path="/api/v1/memory/batch", summary="Store entries, all of them or none.",
        handle=store_all, body=Batch, answers=PublicEntries, problems=(403, 404, 409, 429),
    ),
    Route(
        method="DELETE", path="/api/v1/memory/batch", summary="Erase the entries that match a filter.",
        handle=delete_matching, query=Filter, body=Filter, optional_body=True, answers=Deleted, problems=(403, 404),
    ),
    Route(
        method="GET", path="/api/v1/memory/namespaces", summary="List the namespaces that you may read.",
        handle=namespaces, query=AgentQuery, answers=Namespaces, problems=(403,), tag="namespaces",
    ),
    Route(
        method="GET", path="/api/v1/memory/namespaces/{namespace}", summary="Return who may do what in a namespace.",
        handle=permissions, answers=Namespace, problems=(403, 404), tag="namespaces",
    ),
    Route(
        method="PATCH", path="/api/v1/memory/namespaces/{namespace}", summary="Set who may do what in a namespace.",
        handle=permit, body=NewGrants, answers=Namespace, problems=(403, 404, 409), tag="namespaces",
    ),
    Route(
        method="GET", path="/api/v1/agents/{agent}/memory/summary", summary="Return how many entries an agent has.",
        handle=summary, answers=PublicSummary, problems=(403, 404),
    ),
)  # fmt: skip
