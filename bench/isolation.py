"""Let several agents do random things in one store, and compare each of them with a plain model in Python.

    python bench/isolation.py [--count N] [--seed N] [--store ADDRESS]
    scripts/postgres run sh -c 'python bench/isolation.py --store "$COMMONPLACE_TEST_POSTGRES"'

Four agents write, read, list, search, change and erase in private memories, in shared namespaces with changing
permissions, in tasks that are begun, handed over and finished, and in pipelines.  Half of what they try is not theirs.
Counted are entries that an agent saw and may not see, writes that succeeded and must not, contents that differ from the
model, and scores of an uninvolved agent that others have moved.  The target of each is 0; else the exit code is 1.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from typing import Any, TypeAlias

from commonplace.app import open_store
from commonplace.ci.dialect import MemoryBlock
from commonplace.engine.memory import Memory
from commonplace.intents.entries import Caller, Entry, EntryFilter, Permissions
from commonplace.intents.intents import Intents
from commonplace.model.binding import Binding
from commonplace.model.errors import Conflict, Forbidden, NotFound
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope

COUNT = 200_000
AGENTS = ("ada", "bob", "eve", "joe")
NAMESPACES = ("n1", "n2", "n3")
PIPELINES = ("build", "release")
KEYS = tuple(f"k{number}" for number in range(12))
WORDS = ("deploy", "server", "cache", "token", "release", "queue", "schema", "index")
RIGHTS = ("none", "read", "write", "admin")
TASKS = 8  # that are under way at once
COMPARED = 5_000  # operations between two comparisons of everything with the model
PROBED = 500  # and of scores
SHOWN = 3  # differences
PROBE = "how do we deploy the server?"
TARGETS = (
    "foreign reads", "foreign writes", "scores moved", "other contents", "hid an own entry", "refused a write",
    "refused a permission",
)  # fmt: skip
REFUSED = (Forbidden, NotFound, Conflict)

Place: TypeAlias = tuple[str, ...]  # ("episodic", agent) | ("working", agent, task) | ("semantic", namespace)


class World:
    """What should be there, and who may do what: a few dictionaries."""

    def __init__(self) -> None:
        self.entries: dict[Place, dict[str, Any]] = {}
        self.rights: dict[str, tuple[str, dict[str, str]]] = {}  # namespace -> default, agent -> right
        self.tasks: dict[str, dict[str, Any]] = {}  # those under way
        self.ended: dict[str, dict[str, Any]] = {}  # what they inherit goes on to the tasks below them

    def allows(self, agent: str, namespace: str, right: str) -> bool:
        """Whether an agent has a right to a namespace; the first one that writes to a new one makes it."""
        if namespace not in self.rights:
            return right != "read"
        default, allow = self.rights[namespace]
        return RIGHTS.index(allow.get(agent, default)) >= RIGHTS.index(right)

    def may_read(self, agent: str, place: Place) -> bool:
        """Whether an agent may see what is in a place."""
        if place[0] == "semantic":
            return place[1] in self.rights and self.allows(agent, place[1], "read")
        if place[1] == agent:
            return True
        return place[0] == "working" and any(place[2] in self.open_to(agent, task) for task in self.tasks)

    def open_to(self, agent: str, name: str) -> list[str]:
        """The tasks whose working memory an agent may read by way of this one."""
        every = self.ended | self.tasks
        task = every[name]
        found = [name] if agent in (task["agent"], task["coordinator"]) else []
        if task["agent"] != agent:
            return found
        while task["inherits"] and task["parent"] in every:
            found.append(task["parent"])
            task = every[task["parent"]]
        return found

    def may_write(self, agent: str, place: Place) -> bool:
        """Whether an agent may write to a place."""
        if place[0] == "semantic":
            return self.allows(agent, place[1], "write")
        return place[1] == agent and (place[0] == "episodic" or self.tasks.get(place[2], {}).get("agent") == agent)


class Play:
    """Random operations on the store and in the model."""

    def __init__(self, store: Any, chance: random.Random) -> None:
        self.intents = Intents(store, capacity=10_000)
        self.chance, self.world = chance, World()
        self.done, self.wrong = Counter(), Counter()
        self.ids: list[tuple[str, Place, str]] = []
        self.latest: dict[tuple[Place, str], str] = {}  # the id of the entry that was stored last under a key
        self.number = self.operation = 0
        self.examples: list[str] = []
        self.uninvolved = self._memory(store, Scope.of(("agent", "probe")))
        for word in WORDS:
            self.uninvolved.remember(f"We {word} the server on Monday with {word}")
        self.scores = self._scores()
        self.pipelines = {
            (pipeline, agent): Memory(store, MemoryBlock(enabled=True).bind(pipeline, agent))
            for pipeline in PIPELINES for agent in AGENTS
        }  # fmt: skip

    def _memory(self, store: Any, scope: Scope) -> Memory:
        return Memory(store, Binding(channel=Channel.AGENT, writes=dict.fromkeys(Kind, scope), reads=(scope,)))

    def _scores(self) -> list[tuple[str, float]]:
        return [(hit.text, hit.score) for hit in self.uninvolved.recall(PROBE, limit=20, count=False)]

    def run(self, count: int) -> None:
        """Do so many operations, and compare in between."""
        ways = (
            *[self.write] * 6, *[self.search] * 4, *[self.read] * 3, *[self.by_id] * 3, self.erase, self.permit,
            self.begin, self.assign, self.finish, *[self.pipeline] * 2, self.list,
        )  # fmt: skip
        for number in range(1, count + 1):
            self.operation = number
            way = self.chance.choice(ways)
            way(self.chance.choice(AGENTS))
            self.done[way.__name__] += 1
            if number % PROBED == 0 and self._scores() != self.scores:
                self.wrong["scores moved"] += 1
            if number % COMPARED == 0 or number == count:
                self.compare()

    # Operations

    def _place(self, agent: str) -> Place:
        """A place: half of the time one that is likely to be the agent's."""
        owner = agent if self.chance.random() < 0.5 else self.chance.choice(AGENTS)
        kind = self.chance.choice(("episodic", "working", "semantic"))
        if kind == "working" and self.world.tasks:
            return kind, owner, self.chance.choice(list(self.world.tasks))
        return ("semantic", self.chance.choice(NAMESPACES)) if kind == "semantic" else ("episodic", owner)

    def _options(self, place: Place) -> dict[str, Any]:
        if place[0] == "working":
            return {"tier": "working", "task": place[2]}
        return {"tier": "semantic", "namespace": place[1]} if place[0] == "semantic" else {"tier": "episodic"}

    def write(self, agent: str) -> None:
        """Store an entry, also for others and where it is not allowed."""
        place, key = self._place(agent), self.chance.choice(KEYS)
        owner = agent if place[0] == "semantic" else place[1]
        self.number += 1
        value = {"of": list(place), "number": self.number, "text": " ".join(self.chance.choices(WORDS, k=6))}
        allowed = self.world.may_write(agent, place)
        try:
            entry = self.intents.store(Caller(agent=agent), owner, key, value, tags=["all"], **self._options(place))
        except REFUSED:
            self.wrong["refused a write"] += allowed
            return
        self.wrong["foreign writes"] += not allowed
        if place[0] == "semantic":
            self.world.rights.setdefault(place[1], ("read", {agent: "admin"}))
        self.world.entries.setdefault(place, {})[key] = value
        self.ids.append((entry.id, place, key))
        self.latest[place, key] = entry.id

    def _check(self, agent: str, entries: list[Entry] | tuple[Entry, ...]) -> None:
        for entry in entries:
            place = tuple(entry.value["of"])
            self.done["entries read"] += 1
            if not self.world.may_read(agent, place):
                self.wrong["foreign reads"] += 1
            elif self.world.entries[place].get(entry.key) != entry.value:
                self._differ(
                    f"{agent} read {entry.key} in {place}", entry.value, self.world.entries[place].get(entry.key)
                )

    def search(self, agent: str) -> None:
        """Search by words, by tags or for the newest, as oneself or as somebody else."""
        place = self._place(agent)
        options = self.chance.choice(({}, self._options(place)))
        query = self.chance.choice((None, self.chance.choice(WORDS)))
        whose = self.chance.choice((agent, self.chance.choice(AGENTS)))
        tags = self.chance.choice(((), ("all",)))
        try:
            found = self.intents.recall(Caller(agent=agent), whose, query=query, tags=tags, limit=50, **options)
        except REFUSED:
            return
        self._check(agent, found)

    def list(self, agent: str) -> None:
        """List by a filter."""
        whose = self.chance.choice((None, agent, self.chance.choice(AGENTS)))
        namespace = self.chance.choice((None, "n*", *NAMESPACES))
        self._check(
            agent, self.intents.page(Caller(agent=agent), EntryFilter(agent=whose, namespace=namespace)).entries
        )

    def read(self, agent: str) -> None:
        """Read by a key."""
        place, key = self._place(agent), self.chance.choice(KEYS)
        owner = agent if place[0] == "semantic" else place[1]
        try:
            entry = self.intents.get(Caller(agent=agent), owner, key, **self._options(place))
        except REFUSED:
            return
        self._check(agent, [entry])

    def by_id(self, agent: str) -> None:
        """Read or change an entry by an id that was never meant for the agent."""
        if not self.ids:
            return
        known, place, key = self.chance.choice(self.ids)
        caller = Caller(agent=agent)
        try:
            entry = self.intents.entry(caller, known)
        except REFUSED:
            there = key in self.world.entries.get(place, {}) and self.latest[place, key] == known
            self.wrong["hid an own entry"] += there and place == ("episodic", agent)
            return
        self._check(agent, [entry])
        value = entry.value | {"text": "changed"}
        try:
            self.intents.update(caller, known, version=entry.version, value=value)
        except REFUSED:
            return
        self.wrong["foreign writes"] += not self.world.may_write(agent, place)
        self.world.entries[place][entry.key] = value

    def erase(self, agent: str) -> None:
        """Erase by a key: one's own nearest entry, which may be in a task that this one inherits from."""
        place, key = self._place(agent), self.chance.choice(KEYS)
        owner = agent if place[0] == "semantic" else place[1]
        try:
            self.intents.forget(Caller(agent=agent), owner, key, **self._options(place))
        except REFUSED:
            return
        may = self.world.may_write(agent, place) if place[0] == "semantic" else owner == agent
        self.wrong["foreign writes"] += not may
        above = self.world.open_to(agent, place[2]) if place[0] == "working" else []
        near = [place, *(("working", agent, task) for task in above)]
        at = next((one for one in near if key in self.world.entries.get(one, {})), None)
        if at is None:
            self._differ(f"{agent} erased {key} in {place}", "an entry", "none")
        else:
            del self.world.entries[at][key]

    def permit(self, agent: str) -> None:
        """Change the permissions of a namespace, if it is one's own."""
        name = self.chance.choice(NAMESPACES)
        allow = {one: self.chance.choice(RIGHTS[1:]) for one in self.chance.sample(AGENTS, 2)}
        default = self.chance.choice(RIGHTS[:3])
        allowed = name not in self.world.rights or self.world.allows(agent, name, "admin")
        try:
            self.intents.permit(Caller(agent=agent), name, Permissions(default=default, allow=allow))
        except REFUSED:
            self.wrong["refused a permission"] += allowed
            return
        self.wrong["foreign writes"] += not allowed
        self.world.rights[name] = (default, allow | {agent: "admin"})

    def begin(self, agent: str) -> None:
        """Begin a task, with a coordinator and below another one."""
        if len(self.world.tasks) >= TASKS:
            return
        self.number += 1
        own = [name for name, task in self.world.tasks.items() if agent in (task["agent"], task["coordinator"])]
        task = {
            "agent": agent, "coordinator": self.chance.choice((None, *AGENTS)), "inherits": self.chance.random() < 0.5,
            "parent": self.chance.choice((None, *own)),
        }  # fmt: skip
        policy = {"archive_on_completion": False, "inherit_from_parent": task["inherits"]}
        name = f"t{self.number}"
        try:
            self.intents.begin(
                Caller(agent=agent), name, agent=agent, coordinator=task["coordinator"], parent=task["parent"],
                policy=policy,
            )  # fmt: skip
        except REFUSED:
            self.done["tasks refused"] += 1
            return
        self.world.tasks[name] = task

    def assign(self, agent: str) -> None:
        """Hand a task over, one's own or not."""
        if not self.world.tasks:
            return
        name, to = self.chance.choice(list(self.world.tasks)), self.chance.choice(AGENTS)
        task = self.world.tasks[name]
        try:
            self.intents.assign(Caller(agent=agent), name, to)
        except REFUSED:
            return
        self.wrong["foreign writes"] += agent not in (task["agent"], task["coordinator"])
        task["agent"] = to

    def finish(self, agent: str) -> None:
        """End a task; its working memory is gone."""
        if len(self.world.tasks) < TASKS // 2:
            return
        name = self.chance.choice(list(self.world.tasks))
        task = self.world.tasks[name]
        try:
            self.intents.finish(Caller(agent=agent), name)
        except REFUSED:
            return
        self.wrong["foreign writes"] += agent not in (task["agent"], task["coordinator"])
        self.world.ended[name] = self.world.tasks.pop(name)
        for place in [place for place in self.world.entries if place[2:] == (name,)]:
            del self.world.entries[place]

    def pipeline(self, agent: str) -> None:
        """Save and recall as an agent of a pipeline."""
        name = self.chance.choice(PIPELINES)
        memory = self.pipelines[name, agent]
        word = self.chance.choice(WORDS)
        memory.remember(f"{word} as {agent} does in {name} {self.chance.randrange(20)}", category="general")
        for hit in memory.recall(word, limit=50, count=False):
            self.done["entries read"] += 1
            self.wrong["foreign reads"] += f"as {agent} does in {name} " not in hit.text

    # Judgement

    def compare(self) -> None:
        """Compare everything that is stored with the model; a task shows what it inherits from those above it, too."""
        for place, entries in self.world.entries.items():
            owner = None if place[0] == "semantic" else place[1]
            where = EntryFilter(agent=owner, **self._options(place))
            stored = [
                (tuple(one.value["of"]), one.key, one.value)
                for one in self.intents.page(Caller(), where, limit=1000).entries
            ]
            ours = {key: value for at, key, value in stored if at == place}
            others = {at for at, _, _ in stored} - {place} - self._inherited(place)
            if ours != entries or (owner is not None and others):
                self._differ(f"in {place}", stored, entries)

    def _inherited(self, place: Place) -> set[Place]:
        """The places whose entries a task shows: of those who had it before, and of the tasks that it inherits from."""
        if place[0] != "working" or place[2] not in self.world.tasks:
            return set()
        return {("working", owner, task) for task in self.world.open_to(place[1], place[2]) for owner in AGENTS}

    def _differ(self, where: str, stored: object, meant: object) -> None:
        """Count a difference between the store and the model; the first ones are shown."""
        self.wrong["other contents"] += 1
        if self.wrong["other contents"] <= SHOWN:
            self.examples.append(f"operation {self.operation}: {where} is {stored!r}, not {meant!r}")


def main() -> int:
    """Print what was done, and what must not have been."""
    parser = ArgumentParser(description="Compare what agents can do in one store with a plain model.")
    parser.add_argument("--count", type=int, default=COUNT, help=f"operations (default {COUNT:,})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", help="the address of a database; a file unless given")
    given = parser.parse_args()
    began, schema = time.monotonic(), f"isolation_{time.time_ns()}"
    with tempfile.TemporaryDirectory() as folder:
        place = f"{given.store}{'&' if '?' in given.store else '?'}schema={schema}" if given.store else f"{folder}/m.db"
        store = open_store(place)
        try:
            play = Play(store, random.Random(given.seed))
            play.run(given.count)
        finally:
            if given.store:
                with store.using() as db:
                    db.execute(f"drop schema {schema} cascade")
            store.close()
    print(", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(play.done.items())))
    for name in TARGETS:
        print(f"{name:<24}{play.wrong[name]:>8}   target 0")
    for example in play.examples:
        print(f"    {example}")
    print(f"{given.count:,} operations in {time.monotonic() - began:.0f} s")
    return 1 if any(play.wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
