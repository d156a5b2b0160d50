"""``@Agent``, ``@Memory`` and ``@on_assignment``: declare classes as agents, and the rules of their memory.

    @Memory(namespace="research", tier="episodic", ttl=86400 * 30, max_entries=1000)
    class ResearchMemory:
        findings = {"tags": ["research"], "pinned": True}
        reports = {"key": "report-{id}", "tags": ["report"]}

    @Agent("researcher", memory=ResearchMemory)
    class Researcher:
        @on_assignment
        async def handle(self, intent): ...

A decorator only declares; ``assignments.py`` assigns intents, and ``agent_memory.py`` follows the rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from commonplace.intents.agent_memory import AgentMemory, Rules, Template, TierLimits
from commonplace.intents.entries import Ttl
from commonplace.model.errors import InvalidInput
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Any], Awaitable[Any]]

AGENT = "__commonplace_agent__"
DECLARED = "__commonplace_memory__"
HANDLES = "__commonplace_handles__"

# By instance: one may work on several intents at once, each in its own context.
_memories: ContextVar[Mapping[int, AgentMemory]] = ContextVar("commonplace_memories", default={})  # noqa: B039 - never changed


class AgentDeclaration(Value):
    """What ``@Agent`` declares of a class."""

    id: str
    rules: Rules


def Agent(id: str, *, memory: str | type | None = None, memory_namespace: str | None = None) -> Callable[[C], C]:  # noqa: N802 - the document's name
    """Make a class an agent: ``self.memory`` is its memory while it works.

    ``memory`` is the tier of what it stores without naming one, or a class with ``@Memory``; ``memory_namespace`` is
    the namespace in which it stores and looks.
    """
    if not isinstance(id, str):
        raise InvalidInput(f"@Agent needs the agent's id, such as @Agent('researcher'), not {id!r}")
    Scope.of(("agent", id))  # refuses a name under which nothing could be stored
    declared = AgentDeclaration(id=id, rules=_rules(memory, memory_namespace))

    def decorate(cls: C) -> C:
        if "memory" in vars(cls):
            raise InvalidInput(f"the agent {id!r} cannot have a `memory` of its own: {cls.__name__}.memory is taken")
        setattr(cls, AGENT, declared)
        cls.memory = property(memory_here)  # type: ignore[attr-defined]  # that is what the decorator gives
        cls.agent_id = id  # type: ignore[attr-defined]
        return cls

    return decorate


def Memory(  # noqa: N802 - the document's name
    namespace: str, tier: str = "episodic", ttl: Ttl = None, max_entries: int | None = None
) -> Callable[[C], C]:
    """Declare a memory, for ``@Agent(memory=...)`` to enforce; the class's attributes are templates for entries."""
    if not isinstance(namespace, str):
        raise InvalidInput(f"@Memory needs a namespace, such as @Memory('research'), not {namespace!r}")
    rules = Rules(namespace=namespace, tier=tier, limits={tier: TierLimits(ttl=ttl, max_entries=max_entries)})

    def decorate(cls: C) -> C:
        setattr(cls, DECLARED, rules.replace(templates=_templates(cls)))
        return cls

    return decorate


def on_assignment(handler: F) -> F:
    """Mark the method that works on an intent; it is given the intent, and what it returns is the result."""
    if not inspect.iscoroutinefunction(handler):
        raise InvalidInput(f"{getattr(handler, '__qualname__', handler)} must be `async def`: its memory is awaited")
    setattr(handler, HANDLES, True)
    return handler


def declaration_of(agent: object) -> AgentDeclaration:
    """Return what ``@Agent`` declares of an instance or a class."""
    found = getattr(agent, AGENT, None)
    if not isinstance(found, AgentDeclaration):
        cls = agent if isinstance(agent, type) else type(agent)
        raise InvalidInput(f"{cls.__name__} is no agent: put @Agent(id) above the class")
    return found


def handler(agent: object) -> Handler:
    """Return the method of an instance or a class that works on intents; there must be one."""
    cls = agent if isinstance(agent, type) else type(agent)
    names = [name for name in dir(cls) if getattr(getattr(cls, name, None), HANDLES, False)]
    if len(names) != 1:
        many = f"{len(names)} methods" if names else "no method"
        raise InvalidInput(f"the agent {declaration_of(agent).id!r} has {many} with @on_assignment; it needs one")
    found: Handler = getattr(agent, names[0])
    return found


@contextmanager
def remembering(agent: object, memory: AgentMemory) -> Iterator[None]:
    """Set the memory of an instance, in this context and in what it starts."""
    before = _memories.set({**_memories.get(), id(agent): memory})
    try:
        yield
    finally:
        _memories.reset(before)


def memory_here(agent: object) -> AgentMemory:
    """Return the memory of an instance in this context."""
    found = _memories.get().get(id(agent))
    if found is None:
        raise InvalidInput(
            f"the agent {declaration_of(agent).id!r} is not at work: its memory is there while it is assigned"
        )
    return found


def _rules(memory: str | type | None, namespace: str | None) -> Rules:
    if isinstance(memory, type):
        declared = getattr(memory, DECLARED, None)
        if not isinstance(declared, Rules):
            raise InvalidInput(f"{memory.__name__} declares no memory: put @Memory(namespace) above the class")
        return declared if namespace is None else declared.replace(namespace=namespace)
    return Rules(namespace=namespace, tier=memory or "episodic")


def _templates(cls: type) -> tuple[Template, ...]:
    """Return the attributes of a declaration: each a mapping, for the key of its name or for its ``key``."""
    return tuple(_template(cls, name, declared) for name, declared in vars(cls).items() if not name.startswith("_"))


def _template(cls: type, name: str, declared: object) -> Template:
    if not isinstance(declared, Mapping):
        raise InvalidInput(
            f"{cls.__name__}.{name} should be a mapping with {', '.join(Template.fields)}, not {declared!r}"
        )
    for field in declared:
        if field not in Template.fields:
            raise InvalidInput(f"{cls.__name__}.{name} says {field!r}; there are {', '.join(Template.fields)}")
    tags = declared.get("tags", ())
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidInput(f"{cls.__name__}.{name} should have a list of texts for tags, not {tags!r}")
    return Template(**{"key": name, **declared, "tags": tuple(tags)})
