"""The pipelines of a store: registered when they first run, listed, inspected, deleted with all they hold.

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
from commonplace.config.operator import is_operators
from commonplace.config.paths import CONFIG, database, home
from commonplace.engine.memory import Memory, now_utc
from commonplace.engine.results import ForgetResult
from commonplace.engine.writer import Writer
from commonplace.model.binding import Binding
from commonplace.model.changes import Change, DropScope, Outcome, Put, Require
from commonplace.model.errors import ConfigError, Conflict, NotFound
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Channel, Draft, Kind, Record
from commonplace.model.values import Value
from commonplace.redact.redaction import redact

KEY = "pipeline"  # of the one record in a pipeline's own scope


class PipelineSummary(Value):
    """One pipeline, as a list shows it."""

    name: str
    agents: Mapping[str, int]  #: name -> how many memories it has, of agents that have any
    file: str | None  #: the file that it is called after; None: it was named


class RootedStore:
    """A store that accepts a record only while its pipeline exists; one transaction decides.

    Everything else passes through, so a run that outlives its pipeline leaves nothing for the next one of that name.
    """

    def __init__(self, store: Store, pipeline: str, root: str | None, *, clock: Clock) -> None:
        """``root`` is the id of the pipeline's own record; None if there is none."""
        self._store = store
        self._pipeline = pipeline
        self._root = root
        self._clock = clock

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """Apply the changes, if the pipeline still exists."""
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
        """Pass every other method on to the store."""
        return getattr(self._store, name)


class PipelineRegistry:
    """The pipelines of one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = now_utc,
        secret: Callable[[], bytes] = bytes,
        embedder: Embedder | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Wrap an open store; ``secret`` returns the key of redaction marks, ``env`` tells whom to trust."""
        self.store = store
        self._embedder = embedder
        self._clock = clock
        self._secret = secret
        self._env = os.environ if env is None else env

    def register(self, name: str, *, file: str | None = None) -> Record:
        """Register a pipeline, unless it is known.  One that is named after its file belongs to that file."""
        found = self._entry(name) or self._register(name, file)
        kept = _file(found)
        if file is not None and kept != redact(file, key=self._secret()).text:
            whose = f"belongs to {kept}" if kept else "was named by a program or another file"
            way = f"say `name: {name}` in a file of a folder that you trust to share its memory, or another name"
            reason = f"the pipeline {name!r} {whose}; {way}"
            raise ConfigError(reason, file=file)
        return found

    def register_file(self, pipeline: Pipeline) -> Record:
        """Register the pipeline of a file; one of somebody else shares no memory by naming it."""
        shares = pipeline.named and is_operators(pipeline.file, self._env)
        return self.register(pipeline.name, file=None if shares else os.path.abspath(pipeline.file))

    def memory(self, pipeline: str, agent: str, block: MemoryBlock) -> Memory:
        """Return the memory of one agent of one pipeline."""
        entry = self._entry(pipeline)
        rooted = RootedStore(self.store, pipeline, entry.id if entry else None, clock=self._clock)
        # It has every method of a store, most of them through __getattr__, which a type checker does not follow.
        return Memory(
            cast("Store", rooted), block.bind(pipeline, agent), clock=self._clock, secret=self._secret,
            embedder=self._embedder,
        )  # fmt: skip

    def all(self) -> list[PipelineSummary]:
        """Return every pipeline, by name."""
        agents: dict[str, dict[str, int]] = {}
        for tally in self.store.census():
            [(kind, name), *below] = tally.scope.segments
            if kind == "pipeline":
                counts = agents.setdefault(name, {})
                for _, agent in below[:1]:
                    counts[agent] = counts.get(agent, 0) + tally.count
        return [
            PipelineSummary(name=name, agents=agents[name], file=_file(self._entry(name))) for name in sorted(agents)
        ]

    def get(self, name: str) -> PipelineSummary:
        """Return one pipeline.  Raises ``NotFound``."""
        found = next((one for one in self.all() if one.name == name), None)
        if found is None:
            raise NotFound(f"there is no pipeline {name!r}; `commonplace pipeline list` shows those that there are")
        return found

    def memories(self, pipeline: str, agent: str, *, limit: int) -> Sequence[Record]:
        """Return what an agent has learned, newest first; it does not count as a recall."""
        scopes = frozenset({agent_scope(pipeline, agent)})
        return self.store.find(Filter(scopes=scopes, at=self._clock()), order=Order.NEWEST, limit=limit)

    def delete(self, name: str) -> ForgetResult:
        """Erase a pipeline with everything that its agents have learned."""
        self.get(name)
        [outcome] = self.store.apply([DropScope(scope=pipeline_scope(name))])
        return ForgetResult(ids=outcome.gone, pending=outcome.erasing)

    def _register(self, name: str, file: str | None) -> Record:
        """Store the record of a new pipeline; returns another process's, if that one was quicker."""
        scope = pipeline_scope(name)
        binding = Binding(channel=Channel.USER, writes={Kind.SEMANTIC: scope}, reads=(scope,))
        writer = Writer(self.store, clock=self._clock, embedder=self._embedder, secret=self._secret)
        draft = Draft(content=f"The pipeline {name}", kind=Kind.SEMANTIC, key=KEY, value={"file": file})
        admitted = writer.admit(draft, binding)
        try:
            writer.apply([admitted.put(expect=0)])
        except Conflict:
            found = self._entry(name)
            if found is None:  # it was deleted in between
                raise
            return found
        return admitted.record

    def _entry(self, name: str) -> Record | None:
        where = Filter(scopes=frozenset({pipeline_scope(name)}), at=self._clock(), keys=frozenset({KEY}))
        return next(iter(self.store.find(where, order=Order.NEWEST, limit=1)), None)


@contextmanager
def open_registry(
    store: str | None = None, *, env: Mapping[str, str] | None = None, clock: Clock = now_utc
) -> Iterator[PipelineRegistry]:
    """Open the pipelines of a store: a file of its own, or by default the database in the data folder."""
    known = os.environ if env is None else env
    data = home(known)
    file = os.path.join(data, CONFIG)
    user_settings = settings.load(file, settings.USER)
    embedder = opening.configured_embedder(user_settings, known, file=file)
    place = store or database(known, user_settings["store"])
    with opening.open(place, embedder=embedder) as opened:
        secret = opening.redaction_key_for(place)
        yield PipelineRegistry(opened.store, clock=clock, secret=secret, embedder=embedder, env=known)


def _file(entry: Record | None) -> str | None:
    value = entry.value if entry else None
    file = value.get("file") if isinstance(value, dict) else None
    return file if isinstance(file, str) else None
