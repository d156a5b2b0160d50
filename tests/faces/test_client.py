"""``commonplace.Client``: the same calls give the same results in a store of one's own and behind a server."""

import asyncio
import inspect
import itertools
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import commonplace
from commonplace import (
    AsyncClient,
    CapacityExceeded,
    Client,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    StoreBusy,
    StoreError,
)
from commonplace.intents import VERBS
from commonplace.intents import client as face
from commonplace.server.keys import Keys
from commonplace.stores.sqlite.store import SqliteStore
from stands import rows

COMMAND = str(Path(sys.executable).with_name("commonplace"))
_names = itertools.count()


class Served:
    """A server in a process of its own, on a store of its own."""

    def __init__(self, folder):
        self.path = os.fspath(folder / "memory.db")
        self.keys = Keys(SqliteStore(self.path))
        self.operator = self.key()
        home = {"COMMONPLACE_HOME": os.fspath(folder / "home"), "USER": "ada"}
        command = [COMMAND, "serve", "--port", "0", "--store", self.path]
        self.process = subprocess.Popen(
            command, cwd=folder, env=os.environ | home, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        said = self.process.stderr.readline()
        found = re.search(r"serving (\S+)", said)
        assert found, said
        self.url = found[1]
        self.reader = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.reader.start()

    def key(self, agent=None):
        """A key, of an operator or of one agent."""
        return self.keys.create("test", agent=agent)[1]

    def stop(self):
        """End it, as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.reader.join(20)
        self.process.stderr.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server for all tests here; each has agents and namespaces of its own."""
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.stop()


@pytest.fixture(params=["embedded", "remote"])
def open_client(request, tmp_path):
    """Open clients of one store: an operator's, or one agent's own."""
    opened = []

    def open_client(agent=None, kind=Client):
        if request.param == "embedded":
            opened.append(kind(os.fspath(tmp_path / "memory.db"), agent=agent, embedder=None))
        else:
            server = request.getfixturevalue("served")
            opened.append(kind(server.url, agent=agent, api_key=server.key(agent)))
        return opened[-1]

    yield open_client
    for client in opened:
        if isinstance(client, Client):
            client.close()


@pytest.fixture
def client(open_client):
    """An operator's client."""
    return open_client()


@pytest.fixture
def name():
    """A name that no other test uses."""
    return f"agent-{next(_names)}"


@rows("value", [None, "", "text", 0, 1.5, False, [], {"a": [1, None]}, "ünï \u2028 \U0001f600"])
def test_any_json_value_comes_back(client, name, value):
    """Whatever the way, a value is what it was."""
    kept = client.memory.store(agent_id=name, key="k", value=value, tier="episodic")
    assert client.memory.get(name, "k") == kept
    assert kept.value == value
    assert type(kept.value) is type(value)


def test_what_is_not_json_is_refused_alike(client, name):
    """The same error, before anything is kept."""
    for value in ({1}, float("nan"), object()):
        with pytest.raises(InvalidInput, match="the value is not JSON"):
            client.memory.store(name, "k", value)
    bottomless = []
    for _ in range(100_000):
        bottomless = [bottomless]
    with pytest.raises(InvalidInput):
        client.memory.store(name, "k", bottomless)
    assert len(client.memory.list(name)) == 0


def test_an_entry_has_its_fields_as_attributes_and_by_name(client, name):
    """Everything that is stored with an entry is read from it, times and all."""
    moment = datetime.now(UTC) + timedelta(days=1)
    kept = client.memory.store(
        name, "k", {"a": 1}, "working", ["b", "a"], namespace="n", task="t", intent="i", pinned=True, priority="high",
        sensitivity="internal", expires_at=moment, ttl="task_lifetime",
    )  # fmt: skip
    found = client.memory.get(name, "k", namespace="n", task="t")
    assert found == kept
    assert (found.key, found.value, found.tier, found.tags, found.version) == ("k", {"a": 1}, "working", ("a", "b"), 1)
    assert (found.namespace, found.task, found.intent, found.agent) == ("n", "t", "i", name)
    assert (found.pinned, found.priority, found.sensitivity, found.ttl) == (True, "high", "internal", "task_lifetime")
    assert found.expires_at == moment
    assert found.get("key") == "k"
    assert found.get("nothing") is None


def test_versions_conflict_alike(client, name):
    """A stale version is a conflict that carries the current one."""
    client.memory.store(name, "k", 1)
    assert client.memory.store(name, "k", 2, version=1).version == 2
    for options in ({"version": 1}, {"version": 0}, {"fresh": True}):
        with pytest.raises(Conflict) as caught:
            client.memory.store(name, "k", "please release", **options)
        assert caught.value.current == 2


def test_recall_by_tags_and_by_query(client, name):
    """All tags, or what bears on a question."""
    client.memory.store(name, "cats", "they like warm windows", tags=["pets", "small"])
    client.memory.store(name, "dogs", "they like wet grass", tags=["pets"])
    assert [entry.key for entry in client.memory.recall(name, tags=["pets"])] == ["dogs", "cats"]
    assert [entry.key for entry in client.memory.recall(name, tags=["pets", "small"])] == ["cats"]
    assert [entry.key for entry in client.memory.recall(name, "windows")] == ["cats"]
    assert [entry.key for entry in client.memory.recall(name, query="they", limit=1, key="dogs")] == ["dogs"]
    client.memory.store(name, "hush", "windows", sensitivity="restricted")
    assert [entry.key for entry in client.memory.recall(name, "windows", brief=True)] == ["cats"]


def test_pinning_and_forgetting(client, name):
    """Pin, unpin and forget are by key, and say when there is none."""
    client.memory.store(name, "k", 1, namespace="n")
    assert client.memory.pin(name, "k", namespace="n").pinned
    assert not client.memory.unpin(name, "k", namespace="n").pinned
    assert client.memory.forget(name, "k", namespace="n") is None
    for verb in (client.memory.get, client.memory.pin, client.memory.unpin, client.memory.forget):
        with pytest.raises(NotFound):
            verb(name, "k", namespace="n")


def test_lists_come_in_pages(client, name):
    """Filters and pages, with how many there are in all."""
    client.memory.batch([{"agent_id": name, "key": f"k{n}", "value": n, "tags": [f"t{n % 2}"]} for n in range(5)])
    page = client.memory.list(name, limit=2, offset=1)
    assert (len(page), page.total, page.limit, page.offset) == (2, 5, 2, 1)
    assert {entry.key for entry in client.memory.list(name, tags_any=["t1"])} == {"k1", "k3"}
    assert [entry.value for entry in client.memory.list(name, key="k4", pinned=False, tier="episodic")] == [4]
    past = datetime.now(UTC) - timedelta(days=1)
    assert client.memory.list(name, updated_before=past).total == 0
    assert client.memory.list(name, updated_after=past, namespace="def*").total == 5


def test_a_batch_is_whole_or_not_at_all(client, name):
    """One wrong item takes the others with it; a name that nobody knows is told."""
    good = {"agent_id": name, "key": "a", "value": 1}
    kept = client.memory.batch([good, good | {"key": "b", "tier": "working", "ttl": 60}])
    assert [(entry.key, entry.tier) for entry in kept] == [("a", "episodic"), ("b", "working")]
    for wrong in ({"tier": "x"}, {"key": "a", "version": 9}, {"colour": 1}, {"tags": "text"}, {"agent": "x"}):
        with pytest.raises((InvalidInput, Conflict)):
            client.memory.batch([good | {"key": "new"}, good | {"key": "c"} | wrong])
    with pytest.raises(InvalidInput, match="value"):
        client.memory.batch([{"agent_id": name, "key": "k"}])
    assert client.memory.batch([]) == []
    assert client.memory.list(name).total == 2


def test_tasks_and_their_limits(client, name):
    """Working memory belongs to a task: limits, take-over, its end."""
    other = f"{name}-b"
    task = client.tasks.begin(name, name, coordinator="boss", policy={"max_entries": 1})
    assert client.tasks.get(name) == task
    assert (task.assigned, task.coordinator, task.policy.max_entries) == (name, "boss", 1)
    client.memory.store(name, "k", 1, "working", task=name)
    with pytest.raises(CapacityExceeded) as caught:
        client.memory.store(name, "l", 1, "working", task=name)
    assert (caught.value.current, caught.value.limit) == (2, 1)
    assert client.tasks.assign(name, other).former == (name,)
    assert client.memory.get(other, "k", task=name).agent == name
    assert client.tasks.finish(name, "failed").status == "failed"
    with pytest.raises(NotFound):
        client.memory.get(other, "k", task=name)
    with pytest.raises(Conflict):
        client.tasks.begin(name, name)
    assert client.tasks.erase(name) is None
    with pytest.raises(NotFound):
        client.tasks.get(name)


def test_an_agents_own_client_acts_for_it_alone(open_client, name):
    """It can neither read nor write for others; shared namespaces have their permissions."""
    operator, own, foreign = open_client(), open_client(name), open_client(f"{name}-x")
    operator.memory.store(name, "k", 1)
    assert own.memory.get(name, "k").value == 1
    with pytest.raises(NotFound):
        foreign.memory.get(name, "k")
    with pytest.raises(Forbidden):
        foreign.memory.store(name, "k", 2)
    own.memory.store(name, "s", 1, "semantic", namespace=name)
    assert foreign.memory.get(f"{name}-x", "s", namespace=name).value == 1
    with pytest.raises(Forbidden):
        foreign.memory.permit(name, default="write")
    assert own.memory.permit(name, default="none").default == "none"
    assert own.memory.permissions(name).allow == {name: "admin"}
    with pytest.raises(NotFound):
        foreign.memory.get(f"{name}-x", "s", namespace=name)


def test_every_verb_can_be_awaited(open_client, name):
    """The asynchronous client does the same, many at once."""

    async def work(client):
        await asyncio.gather(*(client.memory.store(name, f"k{n}", n) for n in range(8)))
        await client.memory.pin(agent_id=name, key="k0")
        return sorted(entry.value for entry in await client.memory.list(name)), await client.memory.recall(name, "k0")

    async def whole():
        async with open_client(kind=AsyncClient) as client:
            return await work(client)

    values, [found] = asyncio.run(whole())
    assert values == list(range(8))
    assert (found.key, found.pinned) == ("k0", True)


@pytest.mark.parametrize(
    ("plain", "awaited"), [(face.Entries, face.AsyncEntries), (face.Tasks, face.AsyncTasks), (Client, AsyncClient)]
)
def test_the_asynchronous_twin_has_every_verb(plain, awaited):
    """With the same arguments."""
    verbs = {name: verb for name, verb in vars(plain).items() if not name.startswith("_")}
    assert {name for name in vars(awaited) if not name.startswith("_")} == verbs.keys()
    for name, verb in verbs.items():
        assert inspect.signature(getattr(awaited, name)) == inspect.signature(verb)
    assert inspect.signature(plain.__init__).parameters.keys() - {"backend"} == (
        inspect.signature(awaited.__init__).parameters.keys() - {"plain"}
    )


def test_every_verb_is_a_method_of_the_client():
    """A new verb that no client has would be one that nobody can call from Python."""
    methods = [*vars(face.Entries).values(), *vars(face.Tasks).values()]
    assert {method.__wrapped__ for method in methods if hasattr(method, "__wrapped__")} == {
        verb.function for verb in VERBS
    }


TYPED = """
from typing import assert_type
from commonplace import AsyncClient, Client
from commonplace.intents.client import Entry, Page

def plain(client: Client) -> None:
    assert_type(client.memory.store("a", "k", {"v": 1}, "working", ["t"], task="x"), Entry)
    assert_type(client.memory.list("a", limit=5), Page)
    client.memory.store("a", "k", 1, tier="long")  # E: arg-type
    client.memory.get("a")  # E: call-arg
    client.memory.recall("a", colour="red")  # E: call-arg

async def awaited(client: AsyncClient) -> None:
    assert_type(await client.memory.recall("a", "why?"), list[Entry])
    await client.tasks.begin("t")  # E: call-arg
"""


@pytest.mark.slow
def test_type_checkers_see_every_argument(tmp_path):
    """The methods are derived, and still a wrong name or type is found before anything runs."""
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", os.fspath(tmp_path / "typed.py")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    found = re.findall(r"typed.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    lines = enumerate(TYPED.splitlines(), start=1)
    wanted = [(str(number), line.partition("# E: ")[2]) for number, line in lines if "# E: " in line]
    assert found == wanted, done.stdout


def test_a_client_without_a_path_uses_the_commands_own_store(tmp_path, monkeypatch):
    """What a program keeps lies in the data folder, as what the command keeps does."""
    monkeypatch.setenv("COMMONPLACE_HOME", os.fspath(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with Client(embedder=None) as client:
        client.memory.store("a", "k", 1)
    assert (tmp_path / "home" / "commonplace.db").exists()
    with Client(os.fspath(tmp_path / "home" / "commonplace.db"), embedder=None) as client:
        assert client.memory.get("a", "k").value == 1


# Behind a server


def test_a_wrong_key_is_refused(served):
    """Nothing is told to who has none."""
    with Client(served.url, api_key="wrong") as client, pytest.raises(Forbidden):
        client.memory.get("a", "k")


@rows("url", ["http://", "http://user@host", "http://host?x=1", "https://#x", "http://host:99999", "http://host:x"])
def test_an_address_that_is_none_is_refused(url):
    """In one sentence that names it."""
    with pytest.raises(InvalidInput, match="is not the address of a server"):
        Client(url)


def test_a_key_for_a_file_is_a_mistake(tmp_path):
    """A store of one's own asks for no key."""
    with pytest.raises(InvalidInput, match="an api_key is for a server"):
        Client(os.fspath(tmp_path / "m.db"), api_key="k")


def test_a_server_that_is_not_there_is_a_store_error():
    """With its address, and no traceback of a socket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(StoreError, match=f"127.0.0.1:{port} cannot be"):
        client.memory.get("a", "k")


def test_a_server_that_does_not_answer_is_not_waited_for_forever():
    """After the timeout the call fails, and may be tried again by who knows that it can."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        with Client(url, timeout=0.2) as client, pytest.raises(StoreBusy, match=r"did not answer within 0\.2 seconds"):
            client.memory.get("a", "k")
        assert time.monotonic() - started < 5


def test_an_answer_that_is_not_json_is_told():
    """Something else listens there."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def speak():
            peer, _ = other.accept()
            with peer:
                peer.recv(65_536)
                peer.sendall(answer)

        threading.Thread(target=speak, daemon=True).start()
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        with Client(url) as client, pytest.raises(StoreError, match="200 with something that is not JSON"):
            client.memory.get("a", "k")


def test_a_connection_that_was_closed_meanwhile_is_opened_anew(tmp_path):
    """A server that restarts between two calls is not noticed; a call is never sent twice."""
    first = Served(tmp_path)
    client = Client(first.url, api_key=first.key())
    client.memory.store("a", "k", 1)
    port = first.url.rpartition(":")[2]
    first.stop()
    command = [COMMAND, "serve", "--port", port, "--store", first.path]
    again = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert "serving" in again.stderr.readline()
    assert client.memory.store("a", "k", 2).version == 2
    client.close()
    again.send_signal(signal.SIGTERM)
    again.communicate(timeout=20)


def test_the_clients_are_public_and_loaded_when_they_are_used():
    """Nobody pays for them who does not use them."""
    program = "import sys, commonplace; commonplace.Kind; print('commonplace.intents.client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert commonplace.Client is Client


def test_what_is_of_the_wrong_sort_is_refused_alike(client, name):
    """In a sentence, and nothing is kept of it."""
    memory, wrong = client.memory, []
    calls = [
        lambda: memory.store(name, "k", 1, tags=None),
        lambda: memory.store(name, "k", 1, tags="abc"),
        lambda: memory.store(name, "k", 1, version="1"),
        lambda: memory.store(name, "k", 1, pinned="false"),
        lambda: memory.store(name, "k", 1, max_entries=0),
        lambda: memory.store(name, "k", " " * 65_536 + "x"),
        lambda: memory.store(name, "k", 1, expires_at=datetime.now(UTC) - timedelta(days=1)),
        lambda: memory.store(name, None, 1),
        lambda: memory.list(name, updated_after=datetime(2026, 1, 1)),  # noqa: DTZ001 - that is the test
        lambda: memory.list(name, limit="5"),
        lambda: memory.recall(name, query=5),
        lambda: memory.get(name, "k", namespace=5),
        lambda: memory.batch([1]),
        lambda: memory.batch({"agent_id": name}),
        lambda: memory.permit(name, allow=["a"]),
        lambda: client.tasks.begin(name, None),
        lambda: client.tasks.begin(name, name, policy=5),
    ]
    for number, call in enumerate(calls):
        try:
            call()
        except InvalidInput:
            continue
        wrong.append(number)
    assert (wrong, len(client.memory.list(name))) == ([], 0)


@rows("agent", ["", " ", 5, "a\nb"])
@rows("place", [":memory:", "http://127.0.0.1:1"])
def test_a_client_of_nobody_is_refused(place, agent):
    """Before anything is asked of it."""
    with pytest.raises(InvalidInput, match=r"cannot name an? agent"):
        Client(place, agent=agent)


@pytest.mark.parametrize("key", ["a\nb", "ключ", 5])
def test_a_key_that_cannot_be_sent_is_refused(key):
    """In a sentence that does not repeat it."""
    with pytest.raises(InvalidInput, match="the api_key is invalid") as caught:
        Client("http://127.0.0.1:1", api_key=key)
    assert repr(key) not in str(caught.value)


def test_a_capacity_of_nothing_is_refused(tmp_path):
    """And is not taken for the usual one."""
    with pytest.raises(InvalidInput, match="a capacity should be a whole number above zero, not 0"):
        Client(os.fspath(tmp_path / "m.db"), embedder=None, capacity=0)


def test_a_client_says_for_how_long_it_is_kept_what_happened(tmp_path):
    """Old events go when something is written; with 0 days they stay."""
    path, now = os.fspath(tmp_path / "m.db"), [datetime(2026, 1, 1, tzinfo=UTC)]
    for days, left in ((0, 2), (7, 1)):
        with Client(path, embedder=None, event_days=days, clock=lambda: now[0]) as client:
            now[0] += timedelta(days=8)
            client.memory.store("a", str(days), 1)
            now[0] += timedelta(days=8)
            client.memory.store("a", str(days), 2)
            events = client.memory.events(agent_id="a").events
            assert len(events) == left


def test_a_program_with_very_many_open_files_can_ask(served, name):
    """A connection whose number is beyond a thousand is looked at like any other."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with Client(served.url, api_key=served.operator) as client:
            assert client.memory.store(name, "k", 1).version == 1
            assert client.memory.get(name, "k").value == 1
    finally:
        for file in opened:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_threads_that_end_leave_no_connection_behind(served, name):
    """As many are kept as were needed at once, and not one for each thread that ever asked."""
    with Client(served.url, api_key=served.operator) as client:
        client.memory.store(name, "k", 1)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            thread = threading.Thread(target=client.memory.get, args=(name, "k"))
            thread.start()
            thread.join()
        assert len(os.listdir("/proc/self/fd")) < before + 10


FORK = """
import os, sys
from commonplace import Client
url, key, name = sys.argv[1:]
client = Client(url, api_key=key)
for who in ("child", "parent"):
    client.memory.store(name, who, who)
child = os.fork()
who = "parent" if child else "child"
wrong = sum(client.memory.get(name, who).value != who for _ in range(60))
if not child:
    os._exit(wrong)
print(wrong, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_does_not_read_what_its_parent_asked_for(served, name):
    """Each has connections of its own, whoever opened the client."""
    command = [sys.executable, "-c", FORK, served.url, served.operator, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0", "0"]


def test_many_threads_get_their_own_answers(client, name):
    """Whoever asks at the same moment."""
    for number in range(8):
        client.memory.store(name, str(number), number)
    wrong = []

    def ask(number):
        wrong.extend(number for _ in range(20) if client.memory.get(name, str(number)).value != number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
