"""The routes of the openintent package: the five calls of its client, and the paths that its MCP tools use.

A namespace called ``summary`` cannot be listed by its path, which is the summary's; ``?namespace=summary`` lists it.
"""

from __future__ import annotations

from typing import Any

from commonplace.intents import verbs
from commonplace.intents.entries import Entry
from commonplace.intents.public_format import (
    AgentFilter,
    Deleted,
    EntryChange,
    EntryTier,
    KeyValue,
    NewEntry,
    PagePart,
    PublicEntry,
    public_entries,
    public_entry,
)
from commonplace.intents.verbs import IntentAccess
from commonplace.routes import Call, Route, RouteAnswer


def create(access: IntentAccess, call: Call) -> RouteAnswer:
    """Create an entry; a key that is taken is a conflict, never a second entry and never an overwrite."""
    given: NewEntry = call.body
    return _with_etag(verbs.store(access, **given.arguments(), fresh=True))


def get(access: IntentAccess, call: Call) -> RouteAnswer:
    """Return an entry by its id."""
    return _with_etag(verbs.entry(access, call.path["id"]))


def list_of_agent(access: IntentAccess, call: Call) -> list[PublicEntry]:
    """Return an agent's entries as a bare array: the public client reads nothing else."""
    asked: AgentFilter = call.query
    given = asked.arguments() | {"namespace": asked.namespace or None}
    return public_entries(verbs.list_(access, call.path["agent"], **given))


def update(access: IntentAccess, call: Call) -> RouteAnswer:
    """Change an entry that is at the version in If-Match."""
    change: EntryChange = call.body
    return _with_etag(verbs.update(access, call.path["id"], call.required_version, **change.arguments()))


def delete(access: IntentAccess, call: Call) -> Deleted:
    """Erase an entry."""
    verbs.erase(access, call.path["id"])
    return Deleted(entry_id=call.path["id"])


def put_key(access: IntentAccess, call: Call) -> RouteAnswer:
    """Store the value of a key; If-Match makes it conditional."""
    given: KeyValue = call.body
    where: EntryTier = call.query
    entry = verbs.store(
        access, **_path_names(call), value=given.value, tier=where.tier or given.tier, tags=given.tags,
        ttl=given.ttl_seconds, task=where.task, version=call.version,
    )  # fmt: skip
    return _with_etag(entry)


def get_key(access: IntentAccess, call: Call) -> RouteAnswer:
    """Return the entry of a key."""
    return _with_etag(verbs.get(access, **_path_names(call), **call.query.arguments()))


def delete_key(access: IntentAccess, call: Call) -> Deleted:
    """Erase the entry of a key."""
    verbs.forget(access, **_path_names(call), **call.query.arguments())
    return Deleted()


def list_of_namespace(access: IntentAccess, call: Call) -> list[PublicEntry]:
    """Return the entries of a namespace."""
    part: PagePart = call.query
    found = verbs.list_(access, call.path["agent"], namespace=call.path["namespace"], **part.arguments())
    return public_entries(found)


def _path_names(call: Call) -> dict[str, Any]:
    """Return the names in the path as verbs take them."""
    return {"agent_id": call.path["agent"], "namespace": call.path["namespace"], "key": call.path["key"]}


def _with_etag(entry: Entry) -> RouteAnswer:
    """Return an entry with its version as ETag, which If-Match takes as it is."""
    return RouteAnswer(content=public_entry(entry), headers={"ETag": f'"{entry.version}"'})


_ID, _AGENT = "/api/v1/memory/{id}", "/api/v1/agents/{agent}/memory"
_KEY = f"{_AGENT}/{{namespace}}/{{key:path}}"
SDK_ROUTES = (
    Route(
        method="POST", path="/api/v1/memory", summary="Create an entry.", handle=create, body=NewEntry,
        answers=PublicEntry, problems=(403, 409, 429),
    ),
    Route(
        method="GET", path=_ID, summary="Return an entry by its id.", handle=get, answers=PublicEntry, problems=(404,)
    ),
    Route(
        method="PATCH", path=_ID, summary="Change an entry that is at the version in If-Match.", handle=update,
        body=EntryChange, answers=PublicEntry, problems=(403, 404, 409, 428, 429), match="must",
    ),
    Route(
        method="DELETE", path=_ID, summary="Erase an entry.", handle=delete, answers=Deleted, problems=(403, 404)
    ),
    Route(
        method="GET", path=_AGENT, summary="List an agent's entries, newest first.", handle=list_of_agent,
        query=AgentFilter, answers=list[PublicEntry],
    ),
    Route(
        method="PUT", path=_KEY, summary="Store the value of a key.", handle=put_key, body=KeyValue, query=EntryTier,
        answers=PublicEntry, problems=(403, 404, 409, 429), match="may", tag="by key",
    ),
    Route(
        method="GET", path=_KEY, summary="Return the entry of a key.", handle=get_key, query=EntryTier,
        answers=PublicEntry, problems=(403, 404), tag="by key",
    ),
    Route(
        method="DELETE", path=_KEY, summary="Erase the entry of a key.", handle=delete_key, query=EntryTier,
        answers=Deleted, problems=(403, 404), tag="by key",
    ),
    Route(
        method="GET", path=f"{_AGENT}/{{namespace}}", summary="List the entries of a namespace.",
        handle=list_of_namespace, query=PagePart, answers=list[PublicEntry], tag="by key",
    ),
)  # fmt: skip
