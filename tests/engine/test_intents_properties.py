"""Whatever others do, an agent that has no business with them sees the same world as if they were not there."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.intents.intents import Caller, EntryFilter, Intents, Permissions
from commonplace.model.errors import CommonplaceError
from commonplace.stores.sqlite.store import SqliteStore

KEYS = st.sampled_from(["plan", "note", "gold"])
WORDS = st.sampled_from(["brown foxes", "gold bars", "warm windows", "gold gold gold"])
SPACES = st.sampled_from([None, "n"])
TIERS = st.sampled_from(["working", "episodic"])

STORES = st.fixed_dictionaries(
    {
        "do": st.just("store"), "key": KEYS, "value": WORDS, "tier": TIERS, "namespace": SPACES,
        "task": st.sampled_from([None, "own"]), "priority": st.sampled_from([None, "low", "high"]),
        "pinned": st.sampled_from([None, True, False]), "ttl": st.sampled_from([None, 2]),
        "tags": st.sampled_from([(), ("a",), ("a", "b")]), "version": st.sampled_from([None, None, 0, 1]),
    }
)  # fmt: skip
ASKS = st.one_of(
    st.fixed_dictionaries({"do": st.sampled_from(["get", "pin", "forget"]), "key": KEYS, "namespace": SPACES}),
    st.fixed_dictionaries({"do": st.just("recall"), "query": WORDS}),
    st.fixed_dictionaries(
        {"do": st.just("list"), "tags_any": st.sampled_from([(), ("a",)]), "query": st.none() | WORDS}
    ),
    st.fixed_dictionaries({"do": st.sampled_from(["events", "summary"])}),
)
LOOKS = st.fixed_dictionaries(
    {
        "do": st.sampled_from(["peek", "peek_list", "peek_recall", "peek_write"]), "key": KEYS,
        "namespace": st.sampled_from([None, "n", "vault"]), "task": st.sampled_from([None, "heist"]),
    }
)  # fmt: skip
EVE = st.tuples(st.just("eve"), STORES | ASKS | LOOKS)
ADA = st.tuples(st.just("ada"), STORES | ASKS | st.just({"do": "share"}))
STEPS = st.lists(EVE | ADA | st.tuples(st.just("clock"), st.just({})), max_size=25)


class World:
    """Intent memory with room for three, and what Eve saw of it."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.intents = Intents(SqliteStore(":memory:"), clock=lambda: self.now, capacity=3)
        self.seen = []

    def step(self, actor, what):
        """Let somebody do something; what comes of it is noted if it is Eve."""
        if actor == "clock":
            self.now += timedelta(seconds=1)
            return
        options = dict(what)
        try:
            came = getattr(self, options.pop("do"))(Caller(agent=actor), actor, **options)
        except CommonplaceError as error:
            came = (type(error).__name__, str(error), getattr(error, "current", None))
        if actor == "eve":
            self.seen.append(came)

    def store(self, caller, agent, *, task, tier, **options):
        """Keep something."""
        task = f"{agent}-{task}" if task and tier == "working" else None
        return told(self.intents.store(caller, agent, tier=tier, task=task, **options))

    def get(self, caller, agent, **options):
        """Read one's own."""
        return told(self.intents.get(caller, agent, **options))

    def pin(self, caller, agent, **options):
        """Pin one's own."""
        return told(self.intents.pin(caller, agent, **options))

    def forget(self, caller, agent, **options):
        """Forget one's own."""
        return self.intents.forget(caller, agent, **options)

    def recall(self, caller, agent, **options):
        """Ask."""
        return [told(entry) for entry in self.intents.recall(caller, agent, **options)]

    def list(self, caller, _agent, **options):
        """List everything that can be seen."""
        page = self.intents.page(caller, EntryFilter(**options))
        return page.total, [told(entry) for entry in page]

    def events(self, caller, _agent):
        """Hear what happened."""
        return [(event.what, event.key, event.version, str(event.scope)) for event in self.intents.events(caller)]

    def summary(self, caller, agent):
        """Count."""
        return self.intents.summary(caller, agent)

    def share(self, caller, agent):
        """Keep something in a namespace and a task that are closed to others."""
        self.intents.permit(caller, "vault", Permissions(default="none"))
        self.intents.store(caller, agent, "gold", "gold bars", tier="semantic", namespace="vault", tags=["a"])
        self.intents.begin(caller, "heist", agent=agent)
        self.intents.store(caller, agent, "plan", "gold bars", tier="working", task="heist")

    def peek(self, caller, agent, *, key, namespace, task):
        """Try to read what is another's, under their name and under one's own."""
        seen = []
        for owner in ("ada", agent):
            try:
                seen.append(told(self.intents.get(caller, owner, key, namespace=namespace, task=task)))
            except CommonplaceError as error:
                seen.append(str(error))
        return seen

    def peek_list(self, caller, _agent, *, key, namespace, task):
        """Try to list it."""
        return self.list(caller, None, agent="ada", key=key, namespace=namespace, task=task), self.list(caller, None)

    def peek_recall(self, caller, _agent, *, key, namespace, task):
        """Try to find it."""
        return self.recall(caller, "ada", query=f"{key} gold", namespace=namespace, task=task)

    def peek_write(self, caller, _agent, *, key, namespace, task):
        """Try to write over it."""
        return self.intents.store(caller, "ada", key, 1, tier="working", namespace=namespace, task=task, fresh=True)


def told(entry):
    """All of an entry but its id, which is made by chance."""
    return entry.replace(id="")


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_what_others_do_changes_nothing_for_who_has_no_business_with_them(steps):
    """Values, versions, counts, order, errors, room and events: with Ada and without her Eve sees the same."""
    with_others, alone = World(), World()
    for actor, what in steps:
        with_others.step(actor, what)
        if actor != "ada":
            alone.step(actor, what)
    assert with_others.seen == alone.seen
