"""The memory of agents that the public ``openintent`` package runs: its own ``self.memory`` calls what it lacks.

    agent = Analyst(base_url=..., api_key=...)          # a class with that package's @Agent
    with runner("memory.db") as work:
        equip(agent, work, namespace="research")
        agent.run()

Entries are dicts with attributes: handlers read ``entry.key``, the package's model loop ``entry.get("key")`` and JSON.
Nothing of that package is imported here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from commonplace.intents.agent_memory import RECALLED, AgentMemory, Rules
from commonplace.intents.assignments import Runner
from commonplace.intents.entries import Entry
from commonplace.model.errors import InvalidInput

VERBS = ("store", "get", "pin", "unpin", "forget")


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

    async def recall(
        self,
        key: str | None = None,
        tags: list[str] | None = None,
        query: str | None = None,
        limit: int = RECALLED,
        **options: Any,
    ) -> list[SdkEntry]:
        """Find entries; see ``AgentMemory.recall``, whose arguments come in another order."""
        found = await self._memory.recall(query, key=key, tags=tags, limit=limit, **options)
        return [_entry(one) for one in found]

    def __getattr__(self, name: str) -> Callable[..., Awaitable[SdkEntry | None]]:
        """Return another verb of ``AgentMemory``: store, get, pin, unpin or forget."""
        if name not in VERBS:
            raise AttributeError(f"the memory of an agent has no {name!r}; it has recall, {', '.join(VERBS)}")
        verb = getattr(self._memory, name)

        async def call(*args: Any, **options: Any) -> SdkEntry | None:
            found = await verb(*args, **options)
            return None if found is None else _entry(found)

        return call


def equip(
    agent: Any, work: Runner, *, tier: str | None = None, namespace: str | None = None, task: str | None = None
) -> SdkMemory:
    """Give an agent of that package its memory; tier and namespace are by default those of its class.

    ``task`` is the task whose working memory it may use; without one it has none.
    """
    name, config = getattr(agent, "agent_id", None), getattr(agent, "_config", None)
    if not isinstance(name, str) or config is None:
        raise InvalidInput(f"{type(agent).__name__} is no agent of the openintent package")
    rules = Rules(
        namespace=namespace or getattr(config, "memory_namespace", None),
        tier=tier or getattr(config, "memory", None) or "episodic",
    )
    memory = SdkMemory(AgentMemory(work.intents, name, rules=rules, task=task))
    agent._memory_proxy = memory  # noqa: SLF001 - the one place where that package lets a memory in
    return memory


def _entry(found: Entry) -> SdkEntry:
    return SdkEntry({name: getattr(found, name) for name in Entry.fields})
