"""What sets an agent off: a clock moved by hand, real files, real calls."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import shutil
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.install import hint
from commonplace.model.errors import ConfigError
from commonplace.roles.dialect import CronTrigger, FileWatchTrigger, WebhookTrigger, parse
from commonplace.roles.triggers import (
    CronSource,
    EventQueue,
    FileSource,
    TriggerEvent,
    TriggerPlace,
    WebhookSource,
    sources,
)
from commonplace.roles.webhook import BODY_BYTES, webhook
from stands import rows

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday
TEA = TriggerEvent(trigger="cron", prompt="tea")


class Hand:
    """A clock that is moved by hand, and wakes whoever sleeps by it."""

    def __init__(self):
        self.now, self._moved = NOON, asyncio.Event()

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        """Sleep until somebody has moved the clock far enough."""
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            await self._moved.wait()

    async def forward(self, **by):
        """Move on, and let everybody notice."""
        self.now += timedelta(**by)
        self._moved.set()
        self._moved = asyncio.Event()
        for _ in range(20):
            await asyncio.sleep(0)


def place(folder="/work", **fields):
    """Where a trigger stands."""
    role = parse({"name": "a", "role": "You help."}, file=f"{folder}/role.yaml")
    return TriggerPlace(**{"role": role, "path": "triggers[0]", "agent": "", "home": f"{folder}/home"} | fields)


def ticking(schedule="*/5 * * * *", *, hand, **fields):
    """A clock trigger."""
    trigger = CronTrigger(schedule=schedule, prompt="Report", **fields)
    return CronSource(trigger, place(), clock=hand, sleep=hand.sleep)


class Offered(list):
    """What a source offered; ``told`` is what it said."""

    def __init__(self):
        super().__init__()
        self.told = []


def watched(source, script):
    """Watch a source while a script runs; returns what it offered and what it told."""
    offered = Offered()
    told = offered.told

    async def live():
        watching = asyncio.ensure_future(source.watch(lambda event: offered.append(event) or True, told.append))
        await asyncio.sleep(0)
        try:
            await script(offered)
            assert not watching.done(), watching.exception()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(asyncio.wait_for(live(), 20))
    return offered, told


async def until(true):
    """Wait for something."""
    while not true():  # noqa: ASYNC110 - what is waited for is another thread's
        await asyncio.sleep(0.01)


# The clock


def test_a_tick_comes_when_its_minute_does_and_not_before():
    """Every five minutes means at five past, and the line says when that is."""
    hand = Hand()

    async def script(offered):
        await hand.forward(minutes=4, seconds=59)
        assert offered == []
        await hand.forward(seconds=1)
        assert [event.prompt for event in offered] == ["Report"]
        await hand.forward(minutes=5)

    offered, told = watched(ticking(hand=hand), script)
    assert [event.trigger for event in offered] == ["cron", "cron"]
    assert told == ["cron */5 * * * * (UTC), next at 2026-03-02T12:05:00+00:00"]


def test_ticks_that_were_missed_are_made_up_for_once():
    """A lid that was closed for three hours is one run, and the next tick is the next one."""
    hand = Hand()

    async def script(offered):
        await hand.forward(hours=3, minutes=2)
        assert len(offered) == 1
        await hand.forward(minutes=2)
        assert len(offered) == 1
        await hand.forward(minutes=1)
        assert len(offered) == 2

    watched(ticking(hand=hand), script)


def test_a_clock_that_is_set_back_does_not_tick_twice():
    """The tick of five past has been, whatever the clock says now."""
    hand = Hand()

    async def script(offered):
        await hand.forward(minutes=5)
        await hand.forward(minutes=-2)
        await hand.forward(minutes=3)
        assert len(offered) == 1

    watched(ticking(hand=hand), script)


def test_a_schedule_is_by_the_clock_of_its_time_zone():
    """Nine o'clock in Berlin is eight in UTC, in winter."""
    hand = Hand()

    async def script(offered):
        await hand.forward(hours=19, minutes=59)
        assert offered == []
        await hand.forward(minutes=1)
        assert len(offered) == 1

    _, told = watched(ticking("0 9 * * *", hand=hand, timezone="Europe/Berlin"), script)
    assert told == ["cron 0 9 * * * (Europe/Berlin), next at 2026-03-03T09:00:00+01:00"]


@rows(
    "fields, said",
    [
        (
            {"schedule": "every day"},
            r"triggers\[0\].schedule: 'every day' is not a schedule: it should have five fields",
        ),
        ({"schedule": "0 0 9 * * 1"}, r"should have five fields"),
        ({"schedule": "61 * * * *"}, r"triggers\[0\].schedule: '61 \* \* \* \*' is not a schedule: Bad minute"),
        ({"schedule": "0 0 30 2 *"}, r"is not a schedule: "),
        ({"schedule": "0 9 * * *", "timezone": "Mars/Olympus"}, r"timezone: 'Mars/Olympus' is not a time zone"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_before_anything_waits(fields, said):
    """The sentence has the file and the place."""
    with pytest.raises(ConfigError, match=said):
        ticking(hand=Hand(), **fields)


@pytest.mark.parametrize(
    ("module", "trigger"),
    [
        ("cronsim", "CronTrigger(schedule='* * * * *', prompt='x')"),
        ("watchfiles", "FileWatchTrigger(paths=('.',))"),
        ("starlette", "WebhookTrigger()"),
        ("uvicorn", "WebhookTrigger()"),
    ],
)
def test_without_the_extra_the_error_says_what_to_install(module, trigger, tmp_path):
    """One sentence, wherever it is missing."""
    program = f"""
import asyncio, sys
sys.modules[{module!r}] = None
from commonplace.roles.triggers import sources
from commonplace.roles.dialect import CronTrigger, FileWatchTrigger, WebhookTrigger, parse
from commonplace.model.errors import ConfigError
role = parse({{"name": "a", "role": "x"}}, file="role.yaml").replace(triggers=({trigger},))
async def live():
    from datetime import UTC, datetime
    [source] = sources(role, home="home", env={{}}, clock=lambda: datetime.now(UTC), sleep=asyncio.sleep)
    await source.watch(print, print)
try:
    asyncio.run(live())
except ConfigError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60
    )
    assert hint(f"triggers need {module}", "daemon") in done.stdout


# What waits


def test_what_comes_is_taken_in_its_order():
    """Also what comes while somebody waits for it."""

    async def live():
        inbox = EventQueue()
        first = asyncio.ensure_future(inbox.take())
        await asyncio.sleep(0)
        for at in range(9):
            inbox.offer(TEA.replace(prompt=str(at)))
        return [(await first).prompt, *[(await inbox.take()).prompt for _ in range(8)]]

    assert asyncio.run(live()) == [str(at) for at in range(9)]


def test_the_same_thing_waits_once_and_what_is_different_waits_too():
    """A tick while the one before it still waits is no second run; calls are all runs."""

    async def live():
        inbox = EventQueue()
        for event in (TEA.replace(key="a"), TEA.replace(key="a"), TEA.replace(key="b"), TEA, TEA):
            assert inbox.offer(event)
        waiting = inbox.close()
        assert inbox.offer(TEA) is False
        assert await inbox.take() is None
        return waiting

    assert asyncio.run(live()) == 4


def test_whoever_comes_when_too_much_waits_is_sent_away():
    """Nothing grows without end."""

    async def live():
        inbox = EventQueue(most=2)
        return [inbox.offer(TEA) for _ in range(3)]

    assert asyncio.run(live()) == [True, True, False]


# Files


def watching(folder, **fields):
    """A file trigger on a folder."""
    trigger = FileWatchTrigger(**{"paths": ("notes",), "debounce_seconds": 0.2} | fields)
    return FileSource(trigger, place(folder))


async def written(path, offered, *, text="x"):
    """Write a file again and again until it is noticed: the system may take a moment to begin to watch."""
    before = len(offered)
    for turn in range(100):
        path.write_text(f"{text}{turn}")
        for _ in range(200):  # longer than it has to rest
            await asyncio.sleep(0.01)
            if len(offered) > before:
                return
    raise AssertionError(path)


def test_a_file_that_changes_is_an_event_with_its_path(tmp_path):
    """The template is filled in; only files with the right ending count, and one that is deleted does not."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "old.md").write_text("x")

    async def script(offered):
        await written(notes / "a.md", offered)
        (notes / "b.txt").write_text("no")
        (notes / "old.md").unlink()
        await written(notes / "c.MD", offered)
        await asyncio.sleep(0.4)

    source = watching(tmp_path, extensions=(".md",), prompt_template="Look at {path} {now}")
    offered, told = watched(source, script)
    assert {event.prompt for event in offered} == {f"Look at {notes / name} {{now}}" for name in ("a.md", "c.MD")}
    assert told == [f"file_watch {notes} (.md)"]


def test_a_file_that_is_written_many_times_is_one_event_when_it_rests(tmp_path):
    """What is still being written is left alone."""
    notes = tmp_path / "notes"
    notes.mkdir()

    async def script(offered):
        await written(notes / "first", offered)  # now it is watched for sure
        for turn in range(8):
            (notes / "long").write_text(f"{turn}")
            await asyncio.sleep(0.1)
        await until(lambda: "long" in names(offered))
        await asyncio.sleep(1.2)

    offered, _ = watched(watching(tmp_path, debounce_seconds=1.0), script)  # a slow machine may pause for long
    assert set(names(offered)) == {"first", "long"}
    assert names(offered).count("long") == 1  # the first may be two: on a slow machine it is written again


def names(offered):
    """The names of the files that events are about."""
    return [event.prompt.rpartition("/")[2] for event in offered]


def test_what_is_there_already_can_be_worked_through_first(tmp_path):
    """In the order of the names, and not what editors and programs leave behind."""
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    for name in ("b", "a", "a.swp", "deep/c"):
        (notes / name).write_text("x")

    async def script(offered):
        await until(lambda: len(offered) == 3)

    offered, _ = watched(watching(tmp_path, process_existing=True), script)
    assert [event.prompt for event in offered] == [f"File changed: {notes / name}" for name in ("a", "b", "deep/c")]


def test_what_a_run_writes_to_its_memory_sets_nothing_off(tmp_path):
    """The data folder may lie in the folder that is watched."""
    (tmp_path / "home" / "memory").mkdir(parents=True)

    async def script(offered):
        await written(tmp_path / "note", offered)
        (tmp_path / "home" / "memory" / "a.db").write_text("x")
        await asyncio.sleep(0.5)

    offered, _ = watched(watching(tmp_path, paths=(".",)), script)
    assert {event.prompt for event in offered} == {f"File changed: {tmp_path / 'note'}"}


@pytest.mark.slow
def test_a_file_that_is_saved_by_renaming_is_noticed_every_time(tmp_path):
    """As most editors save: each time it is another file of the same name."""
    note = tmp_path / "note.md"
    note.write_text("old")

    async def script(offered):
        await written(note, offered)
        for turn in range(3):
            before = len(offered)
            (tmp_path / "new").write_text(f"{turn}")
            (tmp_path / "new").replace(note)
            await until(lambda before=before: len(offered) > before)
            await asyncio.sleep(0.5)

    offered, told = watched(watching(tmp_path, paths=("note.md",)), script)
    assert {event.prompt for event in offered} == {f"File changed: {note}"}
    assert told == [f"file_watch {note}"]


@pytest.mark.slow
@pytest.mark.parametrize("noticed", [True, False])
def test_a_folder_that_vanishes_is_watched_again_when_it_is_back(tmp_path, noticed):
    """That it is gone is told, unless it is back before anybody looks; what is in it then is new."""
    notes = tmp_path / "notes"
    notes.mkdir()
    gone = f"file_watch {notes} is gone, and is watched again when it is back"

    async def script(offered):
        await written(notes / "a", offered)
        shutil.rmtree(notes)
        if noticed:
            await until(lambda: offered.told[1:] == [gone])
        notes.mkdir()
        (notes / "b").write_text("x")
        await until(lambda: "b" in names(offered))
        await written(notes / "c", offered)
        await until(lambda: "c" in names(offered))

    offered, _ = watched(watching(tmp_path), script)
    assert list(dict.fromkeys(names(offered))) == ["a", "b", "c"]


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    """Before anything waits."""
    with pytest.raises(ConfigError, match=r"role\.yaml: triggers\[0\]\.paths: '.*/notes' does not exist"):
        watching(tmp_path)


# Calls


class Served:
    """A webhook in a loop of its own; the context is its address."""

    def __init__(self, *given, **options):
        self.context, self.loop = webhook(*given, **options), asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self):
        self.thread.start()
        return asyncio.run_coroutine_threadsafe(self.context.__aenter__(), self.loop).result(20)

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self.context.__aexit__(None, None, None), self.loop).result(20)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Caller:
    """Somebody who calls a webhook."""

    def __init__(self, url):
        self.host, self.port = url.split("/")[2].split(":")

    def __call__(self, body=b"Look", *, method="POST", path="/webhook", **headers):
        """Call, and return the status."""
        line = http.client.HTTPConnection(self.host, int(self.port), timeout=10)
        try:
            line.request(method, path, body=body, headers={name.replace("_", "-"): to for name, to in headers.items()})
            return line.getresponse().status
        finally:
            line.close()


@pytest.fixture
def call():
    """Start a webhook and call it; ``call.taken`` is what it took."""
    opened = []

    def start(secret="", room=99, **fields):
        taken = []
        trigger = WebhookTrigger(port=0, **fields)
        server = Served(trigger, secret, lambda body: len(taken) < room and not taken.append(body))
        opened.append(server)
        caller = Caller(server.__enter__())
        caller.taken = taken
        return caller

    yield start
    for server in opened:
        server.__exit__(None, None, None)


def test_the_body_of_a_call_is_the_prompt(call):
    """It is taken at once, and the query belongs to no path."""
    caller = call()
    assert caller("Grüße".encode()) == 202
    assert caller(b"two", path="/webhook?x=1") == 202
    assert caller.taken == ["Grüße", "two"]


@rows(
    "call_, status",
    [
        ({"path": "/elsewhere"}, 404),
        ({"method": "GET", "body": None}, 405),
        ({"method": "PUT"}, 405),
        ({"body": b" \n"}, 400),
        ({"body": b"caf\xe9"}, 400),
        ({"body": b"x" * (BODY_BYTES + 1)}, 413),
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
    ],
)
def test_what_is_no_proper_call_is_refused(call, call_, status):
    """Each with its own status; a page in a browser cannot reach an agent, nor can a name that points here."""
    caller = call()
    assert caller(**call_) == status
    assert caller.taken == []


def test_a_body_of_unknown_length_is_taken_up_to_the_limit(call):
    """It comes in chunks."""
    caller = call()
    assert caller(iter([b"Gr\xc3", b"\xbc\xc3\x9fe"])) == 202
    assert caller(iter([b"x" * BODY_BYTES, b"x"])) == 413
    assert caller.taken == ["Grüße"]


def test_as_much_as_is_allowed_is_taken(call):
    """The limit is a limit, not less."""
    assert call()(b"x" * BODY_BYTES) == 202


def test_a_secret_has_to_be_known(call):
    """By a signature of the body or by itself; a wrong one, an old signature and none are all the same."""
    caller = call("s3cret")
    signed = "sha256=" + hmac.new(b"s3cret", b"Look", hashlib.sha256).hexdigest()
    assert caller(X_Hub_Signature_256=signed) == 202
    assert caller(Authorization="Bearer s3cret") == 202
    assert caller(b"Something else", X_Hub_Signature_256=signed) == 401
    for wrong in ({}, {"Authorization": "Bearer s3cre"}, {"Authorization": "s3cret"}, {"X_Hub_Signature_256": "é"}):
        assert caller(**wrong) == 401
    assert caller.taken == ["Look", "Look"]


def test_whoever_knows_the_secret_may_call_from_anywhere(call):
    """A page or another name is fine then."""
    assert call("s3cret")(Authorization="Bearer s3cret", Origin="https://good.example", Host="hook.example") == 202


def test_calls_in_a_minute_are_counted_and_so_is_what_waits(call):
    """Beyond the limit 429, without room 503; who was not let in is not counted."""
    caller = call(rate_limit_rpm=2)
    assert [caller(), caller(b" "), caller(), caller()] == [202, 400, 202, 429]
    assert call(room=1)() == 202
    full = call(room=0)
    assert full() == 503


@pytest.mark.parametrize(
    "said", [b"POST /webhook HT", b"POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhal"]
)
def test_a_call_that_is_not_finished_is_hung_up_on(said, capfd):
    """However its bytes trickle in, and the next one is answered; the terminal says nothing of it."""
    taken = []
    trigger = WebhookTrigger(port=0)
    with Served(trigger, "", lambda body: not taken.append(body), patience=0.3) as url:
        caller = Caller(url)
        with socket.create_connection((caller.host, int(caller.port))) as line:
            line.sendall(said)
            line.settimeout(10)
            assert line.recv(100) == b""
        assert caller() == 202
    assert taken == ["Look"]
    assert capfd.readouterr().err == ""


def test_many_calls_at_once_are_all_taken(call):
    """None waits for another."""
    caller = call()
    callers = [threading.Thread(target=caller, args=[b"%d" % at]) for at in range(20)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert sorted(map(int, caller.taken)) == list(range(20))


def test_a_webhook_says_where_it_is_and_is_gone_at_the_end():
    """The line has the address and whether there is a secret; afterwards nobody listens."""

    async def script(offered):
        await until(lambda: offered.told)
        assert await asyncio.to_thread(Caller(offered.told[0].split()[2])) == 202
        await until(lambda: offered)

    offered, [told] = watched(WebhookSource(WebhookTrigger(port=0), place(), env={}), script)
    assert [(event.trigger, event.prompt) for event in offered] == [("webhook", "Look")]
    assert told.startswith("webhook POST http://127.0.0.1:")
    assert told.endswith("/webhook (without a secret)")
    with pytest.raises(ConnectionRefusedError):
        Caller(told.split()[2])()


@rows(
    "fields, env, said",
    [
        ({"host": "0.0.0.0"}, {}, "host: '0.0.0.0' can be reached from elsewhere, which needs a shared secret"),
        ({"host": "example.com"}, {}, "host: 'example.com' can be reached from elsewhere"),
        ({"secret_env": "HOOK"}, {}, "secret_env: names HOOK, which is not set"),
        ({"secret_env": "HOOK"}, {"HOOK": " "}, "secret_env: names HOOK, which is not set"),
        ({"path": "webhook"}, {}, "path: should begin with a slash"),
        ({"path": "/hook/{id}"}, {}, "path: should begin with a slash and have no braces"),
    ],
)
def test_a_webhook_that_anybody_could_call_is_refused(fields, env, said):
    """Nothing listens on the network without a secret, and a secret that is named has to be there."""
    with pytest.raises(ConfigError, match=said):
        WebhookSource(WebhookTrigger(**fields), place(), env=env)
    assert WebhookSource(WebhookTrigger(host="0.0.0.0", secret_env="HOOK"), place(), env={"HOOK": "s"})


def test_a_port_that_is_taken_is_named():
    """It is one sentence, and the daemon ends with it."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        source = WebhookSource(WebhookTrigger(port=other.getsockname()[1]), place(), env={})
        with pytest.raises(ConfigError, match=r"triggers\[0\].port: cannot listen at 127.0.0.1:\d+: Address already"):
            asyncio.run(source.watch(print, print))


def test_every_trigger_of_a_role_is_a_source(tmp_path):
    """They are checked in the order of the file, and errors name their place."""
    said = {
        "name": "a",
        "role": "x",
        "triggers": [{"type": "webhook"}, {"type": "cron", "schedule": "x", "prompt": "p"}],
    }
    role = parse(said, file=str(tmp_path / "role.yaml"))
    hand = Hand()
    with pytest.raises(ConfigError, match=r"triggers\[1\].schedule"):
        sources(role, home=str(tmp_path), env={}, clock=hand, sleep=hand.sleep)
    [source] = sources(role.replace(triggers=role.triggers[:1]), home="h", env={}, clock=hand, sleep=hand.sleep)
    assert isinstance(source, WebhookSource)
