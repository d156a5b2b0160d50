"""Our own verbs: recall, records, brief.  An operator has the memory of the place, an agent its own."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from commonplace.engine import memory as engine
from commonplace.engine.rendering import as_json, record_json
from commonplace.learning import SCHEME, injection_json
from commonplace.model.queries import ANY_STATE, State
from commonplace.model.records import Kind, Record
from commonplace.records.access import MemoryAccess
from commonplace.routes import LIMIT_MAX, Answer, Call, Limit, Name, Route, Strict, aware

KindName = Literal["semantic", "episodic", "procedural", "working"]
StateName = Literal["live", "archived", "held", "expired"]
Text = Annotated[str, Meta(min_length=1, max_length=1_048_576)]


class ForAgent(Strict):
    """Whose memory an operator means: that of the place, or an agent's own."""

    agent: Name | None = None


class Asked(Strict):
    """A question."""

    query: Annotated[str, Meta(max_length=4096)]
    agent: Name | None = None
    scope: list[str] = field(default_factory=list)
    kinds: list[KindName] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    limit: Limit = 10
    budget: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    as_of: datetime | None = None
    explain: bool = False


class Task(Strict):
    """What a session is about to do."""

    task: Annotated[str, Meta(max_length=65_536)] = ""
    agent: Name | None = None
    budget: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    session: Name | None = None


class NewRecord(Strict):
    """A record to keep."""

    content: Annotated[str, Meta(max_length=1_048_576)] = ""
    agent: Name | None = None
    scope: str | None = None
    category: str | None = None
    kind: KindName | None = None
    key: Name | None = None
    value: Any = None
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    pinned: bool = False
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    supersedes: str | None = None


class RecordChange(Strict):
    """What is to be changed of a record; the rest stays."""

    content: Text | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    value: Any = UNSET
    category: str | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    held: bool | UnsetType = UNSET
    occurred_at: datetime | UnsetType | None = UNSET
    expires_at: datetime | UnsetType | None = UNSET

    def arguments(self) -> dict[str, Any]:
        """As ``Memory.update`` takes it: what was named."""
        named = {name: part for name in self.__struct_fields__ if (part := getattr(self, name)) is not UNSET}
        return named | {name: aware(named[name]) for name in ("occurred_at", "expires_at") if name in named}


class RestoredVersion(Strict):
    """Which version comes back."""

    version: Annotated[int, Meta(ge=1)] | None = None  #: None: the archived record as it is


class WhichRecords(Strict):
    """Which records are meant."""

    agent: Name | None = None
    kind: list[KindName] = field(default_factory=list)
    category: list[str] = field(default_factory=list)
    tag: list[str] = field(default_factory=list)
    state: Literal["live", "archived", "held", "expired", "all"] = "live"
    limit: Limit = 50


class RecordSource(msgspec.Struct, kw_only=True):
    """Where a record comes from."""

    channel: str
    ref: str | None
    parents: list[str]


class RecordUsage(msgspec.Struct, kw_only=True):
    """How often a record was recalled."""

    recalls: int
    last_recalled_at: str | None


class WireRecord(msgspec.Struct, kw_only=True):
    """A record, whole."""

    id: str
    scope: str
    kind: KindName
    category: str
    content: str
    key: str | None
    value: Any
    tags: list[str]
    metadata: dict[str, Any]
    source: RecordSource
    trust: Literal["external", "agent", "user"]
    pinned: bool
    version: int
    created_at: str
    updated_at: str
    occurred_at: str | None
    expires_at: str | None
    archived_at: str | None
    superseded_by: str | None
    held: bool
    consolidated_at: str | None
    usage: RecordUsage
    state: StateName


class KeptRecord(msgspec.Struct, kw_only=True):
    """What came of a write."""

    record: WireRecord
    deduped: bool  #: a live record said the same, or nothing changed; it is the one given here
    superseded: str | None  #: the id of the record that it replaced
    redactions: list[str]  #: the kinds of secret that were taken out before anything was written
    notes: list[str]


class Records(msgspec.Struct, kw_only=True):
    """Records, newest first."""

    records: list[WireRecord]


class Versions(msgspec.Struct, kw_only=True):
    """Every version of a record, newest first."""

    id: str
    versions: list[WireRecord]


class Erased(msgspec.Struct, kw_only=True):
    """What was erased: the record, and what was derived from it alone."""

    erased: list[str]
    pending: bool  #: gone from every answer, but a reader still holds old bytes of the file


class WireHit(msgspec.Struct, kw_only=True):
    """One thing that was recalled."""

    rank: int
    kind: str | None
    id: str
    score: float
    similarity: float | None
    text: str
    date: str | None
    reference: str
    trust: str | None
    scope: str | UnsetType = UNSET
    category: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    source: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    parts: dict[str, float] | UnsetType = UNSET


class Hits(msgspec.Struct, kw_only=True):
    """What was recalled, best first."""

    query: str
    hits: list[WireHit]
    notes: list[str]


class BriefRecord(msgspec.Struct, kw_only=True):
    """A record that is in a brief."""

    id: str
    version: int
    part: str
    address: str


class WireBrief(msgspec.Struct, kw_only=True):
    """What a session should be shown before it starts: fenced, and quoted as data."""

    text: str
    tokens: int
    records: list[BriefRecord]
    chunks: list[str]
    artifacts: list[str]
    notes: list[str]


def recall(access: MemoryAccess, call: Call) -> Hits:
    """Find what bears on a question; it travels in the body, since query strings end up in logs."""
    asked: Asked = call.body
    scopes = [access.scope(name) for name in asked.scope]
    found = access.recall(
        asked.query, scopes=scopes or None, kinds=[Kind(kind) for kind in asked.kinds] or None,
        categories=asked.categories or None, tags=asked.tags, limit=min(asked.limit, LIMIT_MAX), budget=asked.budget,
        as_of=aware(asked.as_of),
    )  # fmt: skip
    references = {hit.id: f"{SCHEME}{hit.id}" for hit in found.hits if hit.record}  # paths are this machine's own
    told = as_json(asked.query, found.hits, references, explain=asked.explain, notes=found.notes)
    return msgspec.convert(json.loads(told), Hits)


def brief(access: MemoryAccess, call: Call) -> WireBrief:
    """What a session should be shown before it starts on a task."""
    asked: Task = call.body
    shown = access.brief(asked.task, budget=asked.budget, session=asked.session)
    return msgspec.convert(injection_json(shown.injection) | {"notes": list(shown.notes)}, WireBrief)


def listed(access: MemoryAccess, call: Call) -> Records:
    """Records, newest first."""
    asked: WhichRecords = call.query
    access.refresh()
    states = ANY_STATE if asked.state == "all" else {State(asked.state)}
    kinds = [Kind(kind) for kind in asked.kind]
    found = access.memory.list(
        kinds=kinds or None, categories=asked.category or None, tags=asked.tag, states=states,
        limit=min(asked.limit, LIMIT_MAX),
    )  # fmt: skip
    return Records(records=[_record(record) for record in found])


def create(access: MemoryAccess, call: Call) -> KeptRecord:
    """Keep something; what is said already is not kept twice."""
    given: NewRecord = call.body
    notes = access.refresh()
    kept = access.memory.remember(
        given.content, scope=access.target(given.scope), category=given.category,
        kind=Kind(given.kind) if given.kind else None, key=given.key, value=given.value, tags=given.tags,
        metadata=given.metadata, ref=given.source, pinned=given.pinned, occurred_at=aware(given.occurred_at),
        expires_at=aware(given.expires_at), supersedes=given.supersedes,
    )  # fmt: skip
    return _kept(kept, notes)


def get(access: MemoryAccess, call: Call) -> Answer:
    """One record by its id, or by any beginning of it that no other shares."""
    access.refresh()
    found = _record(access.memory.get(call.path["id"]))
    return Answer(content=found, headers={"ETag": f'"{found.version}"'})


def history(access: MemoryAccess, call: Call) -> Versions:
    """Every version of a record, newest first."""
    versions = access.memory.history(call.path["id"])
    return Versions(id=versions[0].id, versions=[_record(version) for version in versions])


def update(access: MemoryAccess, call: Call) -> KeptRecord:
    """Change what is named; with If-Match only that version."""
    change: RecordChange = call.body
    notes = access.refresh()
    return _kept(access.memory.update(call.path["id"], expect=call.version, **change.arguments()), notes)


def delete(access: MemoryAccess, call: Call) -> Erased:
    """Erase a record for good, with its history and what was derived from it alone."""
    gone = access.memory.forget(call.path["id"])
    return Erased(erased=list(gone.ids), pending=gone.pending)


def archive(access: MemoryAccess, call: Call) -> WireRecord:
    """Take a record out of recall and keep it."""
    return _record(access.memory.archive(call.path["id"]))


def restore(access: MemoryAccess, call: Call) -> WireRecord:
    """Bring an archived record back, or an earlier version."""
    given: RestoredVersion | None = call.body
    version = given.version if given else None
    return _record(access.memory.restore(call.path["id"], version=version))


def _record(record: Record) -> WireRecord:
    told = record_json(record) | {"state": record.state(engine.now_utc()).value}
    return msgspec.convert(told, WireRecord)


def _kept(kept: engine.Kept, notes: Any) -> KeptRecord:
    return KeptRecord(
        record=_record(kept.record), deduped=kept.deduped,
        superseded=kept.superseded.id if kept.superseded else None,
        redactions=[finding.kind for finding in kept.redactions], notes=[*notes, *kept.notes],
    )  # fmt: skip


_ONE = "/v1/records/{id}"
ROUTES = (
    Route(
        method="POST", path="/v1/recall", summary="Find what bears on a question, best first.", handle=recall,
        body=Asked, answers=Hits, problems=(403,), tag="records",
    ),
    Route(
        method="POST", path="/v1/brief", summary="What a session should be shown before it starts.", handle=brief,
        body=Task, answers=WireBrief, problems=(403,), tag="records",
    ),
    Route(
        method="GET", path="/v1/records", summary="Records, newest first.", handle=listed, query=WhichRecords,
        answers=Records, problems=(403,), tag="records",
    ),
    Route(
        method="POST", path="/v1/records", summary="Keep something.", handle=create, body=NewRecord,
        answers=KeptRecord, problems=(403, 404, 409), tag="records",
    ),
    Route(
        method="GET", path=_ONE, summary="One record.", handle=get, query=ForAgent, answers=WireRecord,
        problems=(404,), tag="records",
    ),
    Route(
        method="PATCH", path=_ONE, summary="Change what is named and keep the rest.", handle=update, query=ForAgent,
        body=RecordChange, answers=KeptRecord, problems=(403, 404, 409), match="may", tag="records",
    ),
    Route(
        method="DELETE", path=_ONE, summary="Erase a record for good.", handle=delete, query=ForAgent,
        answers=Erased, problems=(403, 404), tag="records",
    ),
    Route(
        method="GET", path=f"{_ONE}/history", summary="Every version of a record, newest first.", handle=history,
        query=ForAgent, answers=Versions, problems=(404,), tag="records",
    ),
    Route(
        method="POST", path=f"{_ONE}/archive", summary="Take a record out of recall and keep it.", handle=archive,
        query=ForAgent, answers=WireRecord, problems=(403, 404, 409), tag="records",
    ),
    Route(
        method="POST", path=f"{_ONE}/restore", summary="Bring an archived record back, or an earlier version.",
        handle=restore, query=ForAgent, body=RestoredVersion, optional_body=True, answers=WireRecord,
        problems=(403, 404, 409), tag="records",
    ),
)  # fmt: skip
