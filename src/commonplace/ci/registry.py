"""The pipelines that a store knows: entered when they first run, listed, looked into, deleted with all they hold.

A pipeline is a record in its own scope; its agents' memories live in scopes below it.  No agent runs here and no
framework is loaded, so commands that only look are quick.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from commonplace import app as opening
from commonplace.ci.dialect import MemoryBlock, Pipeline, agent_scope, pipeline_scope
from commonplace.config import settings
from commonplace.config.paths import CONFIG, database, home
from commonplace.engine.memory import Forgotten, Memory, now_utc
from commonplace.model.binding import Binding
from commonplace.model.changes import Change, DropScope, Outcome, Put, Require
from commonplace.model.errors import ConfigError, Conflict, NotFound
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Channel, Kind, Record
from commonplace.model.values import Value
from commonplace.redact.redaction import redact

KEY = "pipeline"  # of the one record in a pipeline's own scope


class Known(Value):
    """One pipeline, as a list shows it."""

    name: str
    agents: Mapping[str, int]  #: name -> how many memories it has, of agents that have any
    file: str | None  #: the file that it is called after; None: it was named


class Rooted:
    """A store that takes a record only while the pipeline it belongs to is there; one transaction decides.

    Everything else goes through.  A run that outlives its pipeline can so leave nothing for the next one of that name.
    """

    def __init__(self, store: Store, pipeline: str, root: str | None, *, clock: Clock) -> None:
        """``root`` is the id of the pipeline's own record; None if there is none."""
        self._store = store
        self._pipeline = pipeline
        self._root = root
        self._clock = clock

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """Make the changes, if the pipeline is still there."""
        if not any(isinstance(change, Put) for change in changes):
            return self._store.apply(changes)
        missing = f"there is no pipeline {self._pipeline!r}: it was deleted, or it never ran"
        if self._root is None:
            raise NotFound(missing)
        scope, root = pipeline_scope(self._pipeline), frozenset({self._root})
        its = Filter(scopes=frozenset({scope}), at=self._clock(), states=ANY_STATE, ids=root)
        try:
            return self._store.apply([Require(where=its, count=1), *changes])[1:]
        except Conflict as error:
            if self._store.get(self._root) is None:
                raise NotFound(missing) from error
            raise

    def __getattr__(self, name: str) -> Any:
        """Every other verb is the store's."""
        return getattr(self._store, name)


class Unclaimed:
    """A store that takes a pipeline's own record only if there is none: of two that come at once, one has the name."""

    def __init__(self, store: Store, pipeline: str, *, clock: Clock) -> None:
        self._store = store
        self._pipeline = pipeline
        self._clock = clock

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """Make the changes, if nobody came first."""
        scopes, keys = frozenset({pipeline_scope(self._pipeline)}), frozenset({KEY})
        none = Require(where=Filter(scopes=scopes, at=self._clock(), keys=keys), count=0)
        return self._store.apply([none, *changes])[1:]

    def __getattr__(self, name: str) -> Any:
        """Every other verb is the store's."""
        return getattr(self._store, name)


class Ledger:
    """What a store knows of pipelines."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = now_utc,
        secret: Callable[[], bytes] = bytes,
        embedder: Embedder | None = None,
    ) -> None:
        """Look at a store; ``secret`` gives the key of redaction marks."""
        self.store = store
        self._embedder = embedder
        self._clock = clock
        self._secret = secret

    def enter(self, name: str, *, file: str | None = None) -> Record:
        """Know a pipeline from now on.  One that is called after its file keeps to that file."""
        found = self._entry(name) or self._entered(name, file)
        kept = _file(found)
        if file is not None and kept != redact(file, key=self._secret()).text:
            whose = f"belongs to {kept}" if kept else "was named by a program or another file"
            reason = f"the pipeline {name!r} {whose}; say `name: {name}` here to share its memory, or another name"
            raise ConfigError(reason, file=file)
        return found

    def enter_file(self, pipeline: Pipeline) -> Record:
        """Know the pipeline of a file from now on."""
        return self.enter(pipeline.name, file=None if pipeline.named else os.path.abspath(pipeline.file))

    def memory(self, pipeline: str, agent: str, block: MemoryBlock) -> Memory:
        """What one agent of one pipeline remembers."""
        entry = self._entry(pipeline)
        rooted = Rooted(self.store, pipeline, entry.id if entry else None, clock=self._clock)
        # It has every verb of a store, most of them through __getattr__, which a type checker does not follow.
        return Memory(
            cast("Store", rooted), block.bind(pipeline, agent), clock=self._clock, secret=self._secret,
            embedder=self._embedder,
        )  # fmt: skip

    def all(self) -> list[Known]:
        """Every pipeline, by name."""
        agents: dict[str, dict[str, int]] = {}
        for tally in self.store.census():
            [(kind, name), *below] = tally.scope.segments
            if kind == "pipeline":
                counts = agents.setdefault(name, {})
                for _, agent in below[:1]:
                    counts[agent] = counts.get(agent, 0) + tally.count
        return [Known(name=name, agents=agents[name], file=_file(self._entry(name))) for name in sorted(agents)]

    def known(self, name: str) -> Known:
        """One pipeline by its name."""
        found = next((one for one in self.all() if one.name == name), None)
        if found is None:
            raise NotFound(f"there is no pipeline {name!r}; `commonplace pipeline list` shows those that there are")
        return found

    def memories(self, pipeline: str, agent: str, *, limit: int) -> Sequence[Record]:
        """What an agent has learned, newest first; looking does not count as recalling."""
        scopes = frozenset({agent_scope(pipeline, agent)})
        return self.store.find(Filter(scopes=scopes, at=self._clock()), order=Order.NEWEST, limit=limit)

    def delete(self, name: str) -> Forgotten:
        """Erase a pipeline with everything that its agents have learned."""
        self.known(name)
        [outcome] = self.store.apply([DropScope(scope=pipeline_scope(name))])
        return Forgotten(ids=outcome.gone, pending=outcome.erasing)

    def _entered(self, name: str, file: str | None) -> Record:
        """The record of a pipeline that nobody knew a moment ago; somebody else's, if that one was quicker."""
        scope, unclaimed = pipeline_scope(name), Unclaimed(self.store, name, clock=self._clock)
        binding = Binding(channel=Channel.USER, writes={Kind.SEMANTIC: scope}, reads=(scope,))
        # See ``memory`` for the cast.
        own = Memory(cast("Store", unclaimed), binding, clock=self._clock, secret=self._secret, embedder=self._embedder)
        try:
            return own.remember(f"The pipeline {name}", key=KEY, value={"file": file}).record
        except Conflict:
            found = self._entry(name)
            if found is None:  # and it is gone again
                raise
            return found

    def _entry(self, name: str) -> Record | None:
        where = Filter(scopes=frozenset({pipeline_scope(name)}), at=self._clock(), keys=frozenset({KEY}))
        return next(iter(self.store.find(where, order=Order.NEWEST, limit=1)), None)


@contextmanager
def ledger(
    store: str | None = None, *, env: Mapping[str, str] | None = None, clock: Clock = now_utc
) -> Iterator[Ledger]:
    """Open the ledger of a store: a file of its own, or the one in the data folder that all of Commonplace shares."""
    known = os.environ if env is None else env
    data = home(known)
    file = os.path.join(data, CONFIG)
    said = settings.load(file, settings.USER)
    embedder = opening.configured_embedder(said, known, file=file)
    place = store or database(known, said["store"])
    with opening.open(place, embedder=embedder) as opened:
        yield Ledger(opened.store, clock=clock, secret=opening.redaction_key_beside(place), embedder=embedder)


def _file(entry: Record | None) -> str | None:
    value = entry.value if entry else None
    file = value.get("file") if isinstance(value, dict) else None
    return file if isinstance(file, str) else None
