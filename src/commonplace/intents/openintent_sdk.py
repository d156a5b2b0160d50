"""The memory of agents that the public ``openintent`` package runs: its own ``self.memory`` calls what it lacks.

    agent = Analyst(base_url=..., api_key=...)          # a class with that package's @Agent
    with runner("memory.db") as work:
        equip(agent, work, namespace="research")
        agent.run()

Entries are dicts with attributes: handlers read ``entry.key``, the package's model loop ``entry.get("key")`` and JSON.
Nothing of that package is imported here.
"""

from __future__ import annotations

from typing import Any

from commonplace.intents.agent_memory import RECALLED, AgentMemory, Rules
from commonplace.intents.assignments import Runner
from commonplace.intents.entries import Entry
from commonplace.model.errors import InvalidInput


class SdkEntry(dict[str, Any]):
    """An entry as that package's model loop wants it: a dict, with the same names as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"an entry has no {name!r}; it has {', '.join(self)}")
        return self[name]


class SdkMemory:
    """What an agent of that package calls: the verbs of ``AgentMemory``, whose entries are dicts."""

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory

    async def store(self, key: str, value: Any, tags: list[str] | None = None, **options: Any) -> SdkEntry:
        """See ``AgentMemory``."""
        return _entry(await self._memory.store(key, value, tags, **options))

    async def recall(
        self,
        key: str | None = None,
        tags: list[str] | None = None,
        query: str | None = None,
        limit: int = RECALLED,
        **options: Any,
    ) -> list[SdkEntry]:
        """See ``AgentMemory``."""
        found = await self._memory.recall(query, key=key, tags=tags, limit=limit, **options)
        return [_entry(one) for one in found]

    async def get(self, key: str, **options: Any) -> SdkEntry:
        """See ``AgentMemory``."""
        return _entry(await self._memory.get(key, **options))

    async def pin(self, key: str, **options: Any) -> SdkEntry:
        """See ``AgentMemory``."""
        return _entry(await self._memory.pin(key, **options))

    async def unpin(self, key: str, **options: Any) -> SdkEntry:
        """See ``AgentMemory``."""
        return _entry(await self._memory.unpin(key, **options))

    async def forget(self, key: str, **options: Any) -> None:
        """See ``AgentMemory``."""
        await self._memory.forget(key, **options)


def equip(
    agent: Any, work: Runner, *, tier: str | None = None, namespace: str | None = None, task: str | None = None
) -> SdkMemory:
    """Give an agent of that package its memory; tier and namespace are what its class says unless they are given.

    ``task`` is the task whose working memory it may use; without one it has none.
    """
    name, said = getattr(agent, "agent_id", None), getattr(agent, "_config", None)
    if not isinstance(name, str) or said is None:
        raise InvalidInput(f"{type(agent).__name__} is no agent of the openintent package")
    rules = Rules(
        namespace=namespace or getattr(said, "memory_namespace", None),
        tier=tier or getattr(said, "memory", None) or "episodic",
    )
    memory = SdkMemory(AgentMemory(work.intents, name, rules=rules, task=task))
    agent._memory_proxy = memory  # noqa: SLF001 - the one place where that package lets a memory in
    return memory


def _entry(found: Entry) -> SdkEntry:
    return SdkEntry({name: getattr(found, name) for name in Entry.fields})
