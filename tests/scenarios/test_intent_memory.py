"""The agent memory document: its own examples, word for word, on a store of one's own."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace import AsyncClient, Client, Conflict, NotFound

STORING = """
# Store a memory entry
client.memory.store(
    agent_id="researcher",
    key="competitor-analysis-2026",
    value={
        "competitors": ["Acme", "Globex", "Initech"],
        "market_share": {"Acme": 0.35, "Globex": 0.28, "Initech": 0.15}
    },
    tier="episodic",
    tags=["research", "competitors", "2026"]
)
"""

RECALLING = """
# Recall by tags
memories = client.memory.recall(
    agent_id="researcher",
    tags=["research", "competitors"]
)

for m in memories:
    print(f"{m.key}: {m.value}")

# Get a specific entry
entry = client.memory.get(
    agent_id="researcher",
    key="competitor-analysis-2026"
)
"""

PINNING = """
async def example(client):
    # Pin an important memory
    await client.memory.pin(
        agent_id="researcher",
        key="critical-insight-2026"
    )

    # Pinned entries survive LRU eviction
"""

SHARING = """
# Agent A stores shared knowledge
client.memory.store(
    agent_id="agent-a",
    key="product-specs",
    value={"version": "3.0", "features": ["search"]},
    tier="semantic",
    namespace="product-team"
)

# Agent B can read it (if namespace permissions allow)
specs = client.memory.get(
    agent_id="agent-b",
    key="product-specs",
    namespace="product-team"
)
"""


@pytest.fixture
def path(tmp_path):
    """Where a store may be."""
    return os.fspath(tmp_path / "memory.db")


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request, path):
    """A store that several processes can open, of every sort."""
    if request.param == "file":
        return path
    address = os.environ["COMMONPLACE_TEST_POSTGRES"]
    return f"{address}{'&' if '?' in address else '?'}schema={request.getfixturevalue('new_postgres')().schema}"


@pytest.fixture
def client(path):
    """A client of a store of its own."""
    with Client(path, embedder=None) as client:
        yield client


def run(program, **names):
    """Run what a document shows, and return what it leaves."""
    exec(compile(program, "document", "exec"), names)
    return names


def test_storing_and_recalling_as_the_document_shows(client, capsys):
    """An entry has the six fields of the document, and is found by its tags and by its key."""
    run(STORING, client=client)
    left = run(RECALLING, client=client)
    shares = "{'Acme': 0.35, 'Globex': 0.28, 'Initech': 0.15}"
    value = f"{{'competitors': ['Acme', 'Globex', 'Initech'], 'market_share': {shares}}}"
    assert capsys.readouterr().out == f"competitor-analysis-2026: {value}\n"
    entry = left["entry"]
    assert (entry.key, entry.tier, entry.ttl, entry.version) == ("competitor-analysis-2026", "episodic", None, 1)
    assert sorted(entry.tags) == ["2026", "competitors", "research"]
    assert entry.value["competitors"] == ["Acme", "Globex", "Initech"]


def test_pinned_entries_survive_eviction_as_the_document_says(path):
    """An awaited pin keeps an entry however many come after it."""
    asynchronous = AsyncClient(path, embedder=None, capacity=3)
    plain = asynchronous.plain
    plain.memory.store(agent_id="researcher", key="critical-insight-2026", value="it rains", tier="episodic")
    asyncio.run(run(PINNING)["example"](asynchronous))
    for number in range(9):
        plain.memory.store("researcher", f"insight-{number}", number)
    kept = [entry.key for entry in plain.memory.list("researcher")]
    assert kept == ["insight-8", "insight-7", "critical-insight-2026"]
    plain.close()


def test_sharing_as_the_document_shows(client):
    """Another agent of the namespace reads what one has stored, unless permissions say otherwise."""
    specs = run(SHARING, client=client)["specs"]
    assert specs.value == {"version": "3.0", "features": ["search"]}
    client.memory.permit("product-team", default="none", allow={"agent-a": "admin"})
    with pytest.raises(NotFound):
        run(SHARING, client=client)
    client.memory.permit("product-team", default="none", allow={"agent-a": "admin", "agent-b": "read"})
    assert run(SHARING, client=client)["specs"].version == 3


def test_working_memory_is_scratch_state_until_the_task_completes(client):
    """Later steps read it, its end archives it, and what is episodic stays."""
    client.tasks.begin("intent-1", "stateful-worker")
    client.memory.store("stateful-worker", "step-1-result", {"partial": "data"}, tier="working", task="intent-1")
    step1 = client.memory.get("stateful-worker", "step-1-result", task="intent-1")
    client.memory.store("stateful-worker", "lesson", step1.value["partial"])
    assert client.tasks.finish("intent-1").status == "completed"
    with pytest.raises(NotFound):
        client.memory.get("stateful-worker", "step-1-result", task="intent-1")
    assert [entry.key for entry in client.memory.list("stateful-worker")] == ["lesson"]


def test_memory_survives_a_restart(path):
    """Another client, later, finds what was kept, and a replaced agent goes on from where the first one was."""
    with Client(path, embedder=None) as client:
        client.tasks.begin("intent-1", "worker-1")
        client.memory.store("worker-1", "step-1", 1, tier="working", task="intent-1")
        client.memory.store("worker-1", "lesson", "look twice")
    with Client(path, embedder=None) as client:
        client.tasks.assign("intent-1", "worker-2")
        step = client.memory.get("worker-2", "step-1", task="intent-1")
        assert (step.agent, step.value) == ("worker-1", 1)
        assert client.memory.get("worker-1", "lesson").value == "look twice"
        with pytest.raises(NotFound):
            client.memory.get("worker-2", "lesson")


RACER = """
import sys
from commonplace import Client, Conflict
path, start = sys.argv[1:]
client = Client(path, embedder=None)
client.memory.get("a", "counter")
print("ready", flush=True)
sys.stdin.readline()
won = 0
try:
    client.memory.store("a", "once", 1, version=int(start))
    won = 1
except Conflict as conflict:
    assert conflict.current == 2, conflict
counted = 0
while counted < 10:
    seen = client.memory.get("a", "counter")
    try:
        client.memory.store("a", "counter", seen.value + 1, version=seen.version)
        counted += 1
    except Conflict as conflict:
        assert conflict.current > seen.version
for number in range(5):
    client.memory.store("a", "anyhow", number)
print(won)
"""


@pytest.mark.slow
def test_of_racing_processes_exactly_one_wins_each_version(place):
    """Four processes write at one version: one succeeds, the others are told the new one; no increment is lost."""
    with Client(place, embedder=None) as client:
        for key in ("once", "counter"):
            client.memory.store("a", key, 0)
        command = [sys.executable, "-c", RACER, place, "1"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        racers = [subprocess.Popen(command, **pipes) for _ in range(4)]
        for racer in racers:
            assert racer.stdout.readline() == "ready\n"
        wins = [racer.communicate("go\n", timeout=60)[0].strip() for racer in racers]
        assert sorted(wins) == ["0", "0", "0", "1"]
        assert client.memory.get("a", "once").version == 2
        counter = client.memory.get("a", "counter")
        assert (counter.value, counter.version) == (40, 41)
        assert client.memory.get("a", "anyhow").version == 20
        with pytest.raises(Conflict):
            client.memory.store("a", "counter", 0, version=40)


@pytest.mark.slow
def test_racing_processes_never_take_more_than_there_is_room_for(place):
    """With room for ten, four processes that store ten each leave ten."""
    program = (
        "import sys; from commonplace import Client; client = Client(sys.argv[1], embedder=None, capacity=10)\n"
        "for number in range(10): client.memory.store('a', f'{sys.argv[2]}-{number}', number)"
    )
    racers = [subprocess.Popen([sys.executable, "-c", program, place, str(name)]) for name in range(4)]
    assert [racer.wait(60) for racer in racers] == [0] * 4
    with Client(place, embedder=None) as client:
        assert client.memory.list("a").total == 10


def test_nothing_of_what_is_gone_is_left_in_the_file(path):
    """Evicted, expired, deleted and erased values cannot be found in the bytes of the store."""
    words = ["evicted-walrus", "expired-walrus", "deleted-walrus", "archived-walrus", "kept-walrus"]
    with Client(path, embedder=None, capacity=2) as client:
        for word in words[:1] + words[4:]:
            client.memory.store("a", word.split("-")[0], f"the {word} sings")
        client.memory.store("a", "third", "makes room")
        client.memory.store("a", "gone", f"the {words[1]} sings", namespace="n", ttl=0.001)
        client.memory.store("a", "other", f"the {words[2]} sings", namespace="n")
        client.memory.forget("a", "other", namespace="n")
        client.memory.store("a", "last", 1, namespace="n")
        client.tasks.begin("t", "a")
        client.memory.store("a", "step", f"the {words[3]} sings", tier="working", task="t")
        client.tasks.finish("t")
        client.tasks.erase("t")
    held = b"".join(file.read_bytes() for file in Path(path).parent.iterdir())
    assert [word for word in words if word.encode() in held] == ["kept-walrus"]
