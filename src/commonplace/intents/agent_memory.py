"""``self.memory``: the memory of an agent, by the rules that were declared for it.

Every verb is the engine's, called as this agent and no other; the rules are only defaults.  What another phase handed
over is read as its coordinator, and cannot be written.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, TypeVar

from commonplace.intents.entries import (
    PRIORITIES,
    SENSITIVITIES,
    Caller,
    Entry,
    Ttl,
    check_namespace,
    check_tier,
    lifetime,
    one_of,
)
from commonplace.intents.intents import Intents
from commonplace.model.errors import Forbidden, InvalidInput, NotFound
from commonplace.model.records import Json
from commonplace.model.values import Value

T = TypeVar("T")
RECALLED = 10  # entries, by default
_PLACEHOLDER = re.compile(r"\{[^\W\d]\w*\}")


class Template(Value):
    """Defaults for entries with that key."""

    key: str  #: with names in braces for what differs: ``report-{id}``
    tags: tuple[str, ...] = ()  #: added to those that a call gives
    pinned: bool | None = None
    tier: str | None = None
    ttl: Ttl = None
    priority: str | None = None
    sensitivity: str | None = None

    def fits(self, key: str) -> bool:
        """Return whether a key matches."""
        parts = [re.escape(part) for part in _PLACEHOLDER.split(self.key)]
        return re.fullmatch(".+".join(parts), key, re.DOTALL) is not None

    def _check(self) -> None:
        if self.tier is not None:
            check_tier(self.tier)
        if self.priority is not None:
            one_of(self.priority, PRIORITIES, "a priority")
        if self.sensitivity is not None:
            one_of(self.sensitivity, SENSITIVITIES, "a sensitivity")
        lifetime(self.ttl)


class TierLimits(Value):
    """How long and how many entries of one tier are stored."""

    ttl: Ttl = None  #: of an entry that says nothing itself
    max_entries: int | None = None  #: in one namespace; None: what the store says

    def _check(self) -> None:
        lifetime(self.ttl)
        if self.max_entries is not None and self.max_entries < 1:
            raise InvalidInput(f"max_entries must be at least 1, not {self.max_entries}")


NO_LIMITS = TierLimits()


class Rules(Value):
    """What was declared for an agent's memory."""

    namespace: str | None = None  #: the default namespace
    tier: str = "episodic"  #: of what is stored without one
    limits: Mapping[str, TierLimits] = {}  #: by tier
    templates: tuple[Template, ...] = ()
    pinned_namespaces: frozenset[str] = frozenset()  #: episodic entries there are pinned
    semantic_namespaces: tuple[str, ...] | None = None  #: the shared ones that may be used; None: any

    def template(self, key: str) -> Template:
        """Return the template of a key: that of the very key before one with names in braces."""
        fitting = [one for one in self.templates if one.fits(key)]
        return min(fitting, key=lambda one: one.key != key, default=Template(key=key))

    def _check(self) -> None:
        check_tier(self.tier)
        check_namespace(self.namespace)
        if "semantic" in self.limits and self.limits["semantic"].max_entries is not None:
            raise InvalidInput("max_entries does not apply to semantic memory, which is never evicted")


class HandedOver(Value):
    """The working memory of another phase, open to be read."""

    task: str
    coordinator: str  #: as whom it is read: the engine lets that one, and not this agent


class AgentMemory:
    """The memory of one agent, at work on one task or on none."""

    def __init__(
        self,
        intents: Intents,
        agent: str,
        *,
        rules: Rules = Rules(),  # noqa: B008 - a value
        task: str | None = None,
        handed_over: Sequence[HandedOver] = (),
    ) -> None:
        """``task`` is what working memory belongs to; without one there is none."""
        self.agent = agent
        self.rules = rules
        self.task = task
        self._intents = intents
        self._caller = Caller(agent=agent)
        self._handed_over = tuple(handed_over)

    async def store(
        self,
        key: str,
        value: Json,
        tags: Iterable[str] | None = None,
        *,
        tier: str | None = None,
        namespace: str | None = None,
        ttl: Ttl = None,
        version: int | None = None,
        pinned: bool | None = None,
        priority: str | None = None,
        sensitivity: str | None = None,
    ) -> Entry:
        """Store a value under a key; the value before it becomes an earlier version."""
        template = self.rules.template(key)
        kind = check_tier(tier or template.tier or self.rules.tier)
        where = self._namespace(namespace, kind)
        limits = self.rules.limits.get(kind, NO_LIMITS)
        return await self._call(
            self._intents.store,
            key,
            value,
            tier=kind,
            namespace=where,
            tags=tuple(dict.fromkeys([*template.tags, *_to_tags(tags)])),
            ttl=_first(ttl, template.ttl, limits.ttl),
            version=version,
            task=self._task_for(kind),
            intent=self.task,
            pinned=_first(pinned, template.pinned, self._pins(kind, where)),
            priority=priority or template.priority,
            sensitivity=sensitivity or template.sensitivity,
            max_entries=limits.max_entries if kind == "episodic" else None,
        )

    async def recall(
        self,
        query: str | None = None,
        *,
        tags: Iterable[str] | None = None,
        key: str | None = None,
        tier: str | None = None,
        namespace: str | None = None,
        task: str | None = None,
        limit: int = RECALLED,
    ) -> list[Entry]:
        """Find entries: the best match of a query first, without one the newest first; all ``tags`` must match.

        Working memory is that of the current task; ``task`` is another one, such as a part of it.
        """
        asked = {"query": query, "tags": _to_tags(tags), "key": key, "limit": limit}
        where = namespace or self.rules.namespace
        own = await self._call(
            self._intents.recall, **asked, tier=tier and check_tier(tier), namespace=where, task=task or self.task
        )
        others = await self._recall_handed_over(asked, tier=tier, namespace=namespace)
        return _merge(self._readable(own), others, ranked=bool(query))[:limit]

    async def get(self, key: str, *, tier: str | None = None, namespace: str | None = None) -> Entry:
        """Return the entry of a key.  Raises ``NotFound`` if there is none that this agent may see."""
        where = namespace or self.rules.namespace
        try:
            found = await self._call(
                self._intents.get, key, namespace=where, tier=tier and check_tier(tier), task=self.task
            )
        except NotFound:
            others = await self._recall_handed_over({"key": key, "limit": 1}, tier=tier, namespace=namespace)
            if not others:
                raise
            return others[0]
        if not self._readable([found]):
            raise NotFound(f"there is no entry {key!r} that {self.agent!r} may see")
        return found

    async def handed_over(self, *, limit: int = RECALLED) -> list[Entry]:
        """Return what earlier phases stored in working memory and handed over, newest first, for a prompt."""
        found = await self._recall_handed_over({"limit": limit, "brief": True}, tier=None, namespace=None)
        return _merge([], found, ranked=False)[:limit]

    async def pin(self, key: str, *, tier: str | None = None, namespace: str | None = None) -> Entry:
        """Protect an entry from eviction."""
        return await self._change(self._intents.pin, key, tier=tier, namespace=namespace)

    async def unpin(self, key: str, *, tier: str | None = None, namespace: str | None = None) -> Entry:
        """Allow an entry to be evicted again."""
        return await self._change(self._intents.unpin, key, tier=tier, namespace=namespace)

    async def forget(self, key: str, *, tier: str | None = None, namespace: str | None = None) -> None:
        """Erase an entry."""
        await self._change(self._intents.forget, key, tier=tier, namespace=namespace)

    async def _change(self, verb: Callable[..., T], key: str, *, tier: str | None, namespace: str | None) -> T:
        where = namespace or self.rules.namespace
        return await self._call(verb, key, namespace=where, tier=tier and check_tier(tier), task=self.task)

    async def _call(self, verb: Callable[..., T], *args: Any, **options: Any) -> T:
        """Call a verb of the engine as this agent, in a thread: the engine is synchronous."""
        return await asyncio.to_thread(verb, self._caller, self.agent, *args, **options)

    async def _recall_handed_over(
        self, asked: Mapping[str, Any], *, tier: str | None, namespace: str | None
    ) -> list[Entry]:
        """Recall from the working memory of earlier phases; by default in every namespace."""
        if tier not in (None, "working"):
            return []
        found: list[Entry] = []
        for one in self._handed_over:
            as_coordinator = Caller(agent=one.coordinator), one.coordinator
            found += await asyncio.to_thread(
                self._intents.recall, *as_coordinator, **asked, tier="working", namespace=namespace, task=one.task
            )
        return found

    def _namespace(self, named: str | None, tier: str) -> str | None:
        where = named or self.rules.namespace
        allowed = self.rules.semantic_namespaces
        if tier == "semantic" and allowed is not None and where not in allowed:
            raise Forbidden(f"the shared namespace {where or 'default'!r} is not one of {', '.join(allowed) or 'none'}")
        return where

    def _readable(self, found: Sequence[Entry]) -> list[Entry]:
        allowed = self.rules.semantic_namespaces
        return [one for one in found if one.tier != "semantic" or allowed is None or one.namespace in allowed]

    def _task_for(self, tier: str) -> str | None:
        if tier == "working" and self.task is None:
            raise InvalidInput(f"{self.agent!r} has no task, so it has no working memory: assign it an intent first")
        return self.task

    def _pins(self, tier: str, namespace: str | None) -> bool | None:
        return True if tier == "episodic" and namespace in self.rules.pinned_namespaces else None


def _merge(own: Sequence[Entry], others: Sequence[Entry], *, ranked: bool) -> list[Entry]:
    """Merge two lists: alternating if each is ranked on its own, else the newest first."""
    if not others:
        return list(own)
    if not ranked:
        return sorted([*own, *others], key=lambda one: one.updated_at, reverse=True)
    return [one for one in chain.from_iterable(zip_longest(own, others)) if one is not None]


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _to_tags(tags: Iterable[str] | None) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise InvalidInput(f"tags should be a list of texts, not the text {tags!r}")
    return tuple(tags or ())
