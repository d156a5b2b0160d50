"""What sets an agent off without anybody sitting there: the clock, a file that changes, somebody who calls.

Each is a source: it tells in one line what it waits for, then offers events until it is cancelled.  What is run, and
when, the daemon decides.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from commonplace.agents.quietly import Tell
from commonplace.config.paths import is_loopback
from commonplace.model.errors import ConfigError
from commonplace.model.ports import Clock
from commonplace.model.values import Value
from commonplace.roles.dialect import CronTrigger, FileWatchTrigger, Role, Trigger, WebhookTrigger
from commonplace.roles.webhook import listening

if TYPE_CHECKING:
    from watchfiles import Change

WAITING = 1000  # events: whoever comes after that is sent away
FIELDS = 5  # of a schedule, as the document has it; a sixth would be seconds
LOOK_MS = 1000  # how often it is looked whether what is watched is still there
NAP_SECONDS = 30.0  # no longer at once: a clock that is set, or a lid that was closed, is noticed then
HINT = "{0} triggers need {1}: pip install 'commonplace[daemon]'"

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class Event(Value):
    """Something that happened, and what the agent is asked because of it."""

    trigger: str  #: cron, file_watch or webhook
    prompt: str
    autonomous: bool = False  #: it works until it calls finish_task
    agent: str = ""  #: who is meant, in a flow
    key: str = ""  #: the same thing again, while it still waits, is no second run; empty: everything is its own


Offer: TypeAlias = Callable[[Event], bool]  #: whether it was taken


class Inbox:
    """Events that wait, in the order they came; they may come from any thread."""

    def __init__(self, *, most: int = WAITING) -> None:
        """To be made, and read, in the loop that is running."""
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._lock = threading.Lock()
        self._most = most
        self._closed = False
        self._events: deque[Event] = deque()

    def offer(self, event: Event) -> bool:
        """Take an event, unless there are too many; one that waits already is not taken twice."""
        with self._lock:
            if self._closed or len(self._events) >= self._most:
                return False
            if not event.key or all(event.key != other.key for other in self._events):
                self._events.append(event)
            self._loop.call_soon_threadsafe(self._news.set)
        return True

    def close(self) -> int:
        """Take no more; returns how many were waiting, which nobody will get."""
        with self._lock:
            self._closed, left = True, len(self._events)
            self._events.clear()
        self._news.set()
        return left

    async def take(self) -> Event | None:
        """The next event, as soon as there is one; None at the end."""
        while True:
            with self._lock:
                if self._events:
                    return self._events.popleft()
                if self._closed:
                    return None
                self._news.clear()
            await self._news.wait()


class Source(Protocol):
    """Where events come from."""

    async def watch(self, offer: Offer, tell: Tell) -> None:
        """Tell what is waited for, and offer what happens until cancelled.  Raises ``ConfigError`` if it cannot be."""


def sources(
    role: Role, *, home: str, env: Mapping[str, str], clock: Clock, sleep: Sleep, agent: str = ""
) -> list[Source]:
    """The sources of a role's triggers, each checked as far as it can be without waiting for anything."""

    def source(trigger: Trigger, path: str) -> Source:
        place = Place(role=role, path=path, agent=agent, home=home)
        match trigger:
            case CronTrigger():
                return Ticking(trigger, place, clock=clock, sleep=sleep)
            case FileWatchTrigger():
                return Watching(trigger, place)
            case WebhookTrigger():
                return Listening(trigger, place, env=env)

    return [source(trigger, role.path(f"triggers[{number}]")) for number, trigger in enumerate(role.triggers)]


class Place(Value):
    """Where a trigger stands."""

    role: Role
    path: str  #: in its file
    agent: str  #: what a flow calls the role; empty: there is none
    home: str  #: the data folder

    def mistake(self, reason: str, key: str) -> ConfigError:
        """What is wrong with a key of it."""
        return ConfigError(reason, file=self.role.file, path=f"{self.path}.{key}")

    def line(self, text: str) -> str:
        """What people are told, with who is meant if there are several."""
        return f"{self.agent}: {text}" if self.agent else text


class Ticking:
    """The clock.  A tick that was missed is made up for once, however many there were, and none comes twice."""

    def __init__(self, trigger: CronTrigger, place: Place, *, clock: Clock, sleep: Sleep) -> None:
        self._trigger, self._place = trigger, place
        self._clock, self._sleep = clock, sleep
        self._after(clock())  # says so now if it cannot be

    async def watch(self, offer: Offer, tell: Tell) -> None:
        """See ``Source``."""
        trigger, due = self._trigger, self._after(self._clock())
        tell(self._place.line(f"cron {trigger.schedule} ({trigger.timezone}), next at {due.isoformat()}"))
        event = Event(
            trigger=trigger.type, prompt=trigger.prompt, autonomous=trigger.autonomous, agent=self._place.agent,
            key=f"{self._place.agent}/{self._place.path}",
        )  # fmt: skip
        while True:
            while (now := self._clock()) < due:
                await self._sleep(min((due - now).total_seconds(), NAP_SECONDS))
            offer(event)
            due = self._after(
                now
            )  # the next one from here: not those in between, and none again if the clock is set back

    def _after(self, moment: datetime) -> datetime:
        """The first tick after a moment."""
        try:
            from cronsim import CronSim, CronSimError  # noqa: PLC0415 - the extra
        except ImportError as error:
            raise ConfigError(
                HINT.format("cron", "cronsim"), file=self._place.role.file, path=self._place.path
            ) from error
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - nobody else needs it

        schedule, zone = self._trigger.schedule, self._trigger.timezone
        try:
            local = moment.astimezone(ZoneInfo(zone))
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise self._place.mistake(f"{zone!r} is not a time zone that is known here", "timezone") from error
        if len(schedule.split()) != FIELDS:
            raise self._place.mistake(f"{schedule!r} is not a schedule: it should have five fields", "schedule")
        try:
            return next(CronSim(schedule, local))
        except (CronSimError, StopIteration) as error:
            why = str(error) or "it never comes"
            raise self._place.mistake(f"{schedule!r} is not a schedule: {why}", "schedule") from error


class Watching:
    """Files.  One that changes is one event, when it has been left alone for a while; what is deleted is none."""

    def __init__(self, trigger: FileWatchTrigger, place: Place) -> None:
        self._trigger, self._place = trigger, place
        folder = place.role.folder
        self._paths = [os.path.normpath(os.path.join(folder, os.path.expanduser(path))) for path in trigger.paths]
        for path in self._paths:
            if not os.path.exists(path):
                raise place.mistake(f"{path!r} is not there", "paths")
        self._endings = tuple(_ending(one) for one in trigger.extensions)
        self._lost: set[str] = set()  # of what is watched, what was deleted or replaced
        self._own = os.path.realpath(place.home) + os.sep  # a run writes there: it would set itself off for ever

    async def watch(self, offer: Offer, tell: Tell) -> None:
        """See ``Source``."""
        try:
            from watchfiles import DefaultFilter, awatch  # noqa: PLC0415 - the extra
        except ImportError as error:
            hint = HINT.format("file_watch", "watchfiles")
            raise ConfigError(hint, file=self._place.role.file, path=self._place.path) from error
        tell(self._place.line(f"file_watch {', '.join(self._paths)}{self._only()}"))
        if self._trigger.process_existing:
            for path in self._existing(self._paths, DefaultFilter()):
                offer(self._event(path))
        wanted, waiting = self._filter(DefaultFilter()), dict[str, asyncio.TimerHandle]()
        new: list[str] = []  # of what is watched, what was replaced since
        try:
            while True:
                known, self._lost = self._identities(), set()
                looking = awatch(*self._paths, watch_filter=wanted, yield_on_timeout=True, rust_timeout=LOOK_MS)
                async with aclosing(looking) as noticed:
                    async for changes in noticed:
                        found = {path for _, path in changes} | set(self._existing(new, DefaultFilter()))
                        self._rest(found, waiting, offer)
                        new = [path for path in self._paths if path in self._lost or known[path] != _identity(path)]
                        if new:
                            break
                await self._back(tell)
        except (OSError, RuntimeError) as error:  # the system has no more watches to give
            raise self._place.mistake(f"cannot be watched: {error}", "paths") from error
        finally:
            for timer in waiting.values():
                timer.cancel()

    def _rest(self, found: Iterable[str], waiting: dict[str, asyncio.TimerHandle], offer: Offer) -> None:
        """Offer each file when it has rested."""
        loop = asyncio.get_running_loop()
        for path in sorted(found):
            if before := waiting.pop(path, None):
                before.cancel()
            waiting[path] = loop.call_later(self._trigger.debounce_seconds, offer, self._event(path))

    async def _back(self, tell: Tell) -> None:
        """Wait until everything that is watched is there: a folder may be made anew, an editor may save by renaming."""
        told = False
        while missing := [path for path, identity in self._identities().items() if identity is None]:
            await asyncio.sleep(LOOK_MS / 1000)
            if not told and _identity(missing[0]) is None:
                tell(self._place.line(f"file_watch {missing[0]} is gone, and is watched again when it is back"))
                told = True

    def _identities(self) -> dict[str, tuple[int, int] | None]:
        return {path: _identity(path) for path in self._paths}

    def _event(self, path: str) -> Event:
        trigger = self._trigger
        return Event(
            trigger=trigger.type, prompt=trigger.prompt_template.replace("{path}", path),
            autonomous=trigger.autonomous, agent=self._place.agent,
            key=f"{self._place.agent}/{self._place.path}/{path}",
        )  # fmt: skip

    def _filter(self, usual: Callable[[Change, str], bool]) -> Callable[[Change, str], bool]:
        from watchfiles import Change  # noqa: PLC0415 - see watch

        def wanted(change: Change, path: str) -> bool:
            if change == Change.deleted and path in self._paths:
                self._lost.add(path)  # another one may have its number by now
            return change != Change.deleted and usual(change, path) and self._wanted(path) and not os.path.isdir(path)

        return wanted

    def _wanted(self, path: str) -> bool:
        ends = not self._endings or path.lower().endswith(self._endings)
        return ends and not os.path.realpath(path).startswith(self._own)

    def _existing(self, tops: Iterable[str], usual: Callable[[Change, str], bool]) -> Iterator[str]:
        """The files that are there, in the order of their names."""
        wanted = self._filter(usual)
        from watchfiles import Change  # noqa: PLC0415 - see watch

        for top in tops:
            found = [top] if os.path.isfile(top) else [
                os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names
            ]  # fmt: skip
            yield from (path for path in sorted(found) if wanted(Change.added, path))

    def _only(self) -> str:
        return f" ({', '.join(self._endings)})" if self._endings else ""


def _identity(path: str) -> tuple[int, int] | None:
    """Which file or folder is there; None: none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _ending(extension: str) -> str:
    return "." + extension.lower().lstrip("*").lstrip(".")


class Listening:
    """Somebody who calls.  See ``webhook`` for what is refused."""

    def __init__(self, trigger: WebhookTrigger, place: Place, *, env: Mapping[str, str]) -> None:
        self._trigger, self._place = trigger, place
        if not trigger.path.startswith("/"):
            raise place.mistake(f"should begin with a slash, not {trigger.path!r}", "path")
        self._secret = env.get(trigger.secret_env, "").strip() if trigger.secret_env else ""
        if trigger.secret_env and not self._secret:
            raise place.mistake(f"names {trigger.secret_env}, which is not set", "secret_env")
        if not self._secret and not is_loopback(trigger.host):
            reason = f"{trigger.host!r} can be reached from elsewhere, which needs a shared secret: say `secret_env`"
            raise place.mistake(reason, "host")

    async def watch(self, offer: Offer, tell: Tell) -> None:
        """See ``Source``."""
        trigger, asked = self._trigger, self._place.agent

        def take(body: str) -> bool:
            event = Event(trigger=trigger.type, prompt=body, autonomous=trigger.autonomous, agent=asked)
            return offer(event)

        try:
            server = listening(trigger, self._secret, take)
        except OSError as error:
            where = f"{trigger.host}:{trigger.port}"
            raise self._place.mistake(f"cannot listen at {where}: {error.strerror or error}", "port") from error
        with server as url:
            guarded = "with a secret" if self._secret else "without a secret"
            tell(self._place.line(f"webhook {trigger.method} {url} ({guarded})"))
            await asyncio.Event().wait()
