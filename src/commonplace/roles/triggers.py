"""What starts an agent without a user: the clock, a file that changes, a call.

Each is a source: it announces in one line what it waits for, then offers events until it is cancelled.  The daemon
decides what is run, and when.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from commonplace.agents.tolerance import Notify
from commonplace.config.paths import is_loopback
from commonplace.install import hint
from commonplace.model.errors import ConfigError
from commonplace.model.ports import Clock
from commonplace.model.values import Value
from commonplace.roles.dialect import CronTrigger, FileWatchTrigger, Role, Trigger, WebhookTrigger

if TYPE_CHECKING:
    from watchfiles import Change

WAITING = 1000  # events; more are refused
FIELDS = 5  # of a schedule, as the document has it; a sixth would be seconds
LOOK_MS = 1000  # how often it is checked that what is watched still exists
NAP_SECONDS = 30.0  # no longer at once: a clock that is set, or a lid that was closed, is noticed then

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class TriggerEvent(Value):
    """An event of a trigger, and the prompt for the agent."""

    trigger: str  #: cron, file_watch or webhook
    prompt: str
    autonomous: bool = False  #: it works until it calls finish_task
    agent: str = ""  #: in a flow: which one is asked
    key: str = ""  #: a second event with this key, while the first still waits, is dropped; empty: none is


Offer: TypeAlias = Callable[[TriggerEvent], bool]  #: whether it was taken


class EventQueue:
    """Events that wait, in the order in which they came."""

    def __init__(self, *, most: int = WAITING) -> None:
        self._news = asyncio.Event()
        self._most = most
        self._closed = False
        self._events: deque[TriggerEvent] = deque()

    def offer(self, event: TriggerEvent) -> bool:
        """Add an event, unless there are too many; returns whether it was taken.  One that waits is not added twice."""
        if self._closed or len(self._events) >= self._most:
            return False
        if not event.key or all(event.key != other.key for other in self._events):
            self._events.append(event)
        self._news.set()
        return True

    def close(self) -> int:
        """Take no more; returns how many were waiting and are dropped."""
        self._closed, left = True, len(self._events)
        self._events.clear()
        self._news.set()
        return left

    async def take(self) -> TriggerEvent | None:
        """Return the next event as soon as there is one; None at the end."""
        while not self._events and not self._closed:
            self._news.clear()
            await self._news.wait()
        return self._events.popleft() if self._events else None


class TriggerSource(Protocol):
    """A source of events."""

    async def watch(self, offer: Offer, announce: Notify) -> None:
        """Announce what is waited for, and offer events until cancelled.  Raises ``ConfigError`` if it cannot."""


def sources(
    role: Role, *, home: str, env: Mapping[str, str], clock: Clock, sleep: Sleep, agent: str = ""
) -> list[TriggerSource]:
    """Return the sources of a role's triggers, each checked as far as it can be without waiting for anything."""

    def source(trigger: Trigger, path: str) -> TriggerSource:
        place = TriggerPlace(role=role, path=path, agent=agent, home=home)
        match trigger:
            case CronTrigger():
                return CronSource(trigger, place, clock=clock, sleep=sleep)
            case FileWatchTrigger():
                return FileSource(trigger, place)
            case WebhookTrigger():
                return WebhookSource(trigger, place, env=env)

    return [source(trigger, role.path(f"triggers[{number}]")) for number, trigger in enumerate(role.triggers)]


class TriggerPlace(Value):
    """Where a trigger stands."""

    role: Role
    path: str  #: in its file
    agent: str  #: what a flow calls the role; empty: there is none
    home: str  #: the data folder

    def error(self, reason: str, key: str) -> ConfigError:
        """Return an error about a key of it."""
        return ConfigError(reason, file=self.role.file, path=f"{self.path}.{key}")

    def missing(self, trigger: str, error: ImportError) -> ConfigError:
        """Return the error about a package of the extra that is not installed."""
        module = (error.name or "").partition(".")[0]
        return ConfigError(hint(f"{trigger} triggers need {module}", "daemon"), file=self.role.file, path=self.path)

    def line(self, text: str) -> str:
        """Return a line for the user, with the agent's name if there are several."""
        return f"{self.agent}: {text}" if self.agent else text


class CronSource:
    """The clock.  A tick that was missed is made up for once, however many there were, and none comes twice."""

    def __init__(self, trigger: CronTrigger, place: TriggerPlace, *, clock: Clock, sleep: Sleep) -> None:
        self._trigger, self._place = trigger, place
        self._clock, self._sleep = clock, sleep
        self._after(clock())  # raises now if it is no schedule

    async def watch(self, offer: Offer, announce: Notify) -> None:
        """See ``TriggerSource``."""
        trigger, due = self._trigger, self._after(self._clock())
        announce(self._place.line(f"cron {trigger.schedule} ({trigger.timezone}), next at {due.isoformat()}"))
        event = TriggerEvent(
            trigger=trigger.type, prompt=trigger.prompt, autonomous=trigger.autonomous, agent=self._place.agent,
            key=f"{self._place.agent}/{self._place.path}",
        )  # fmt: skip
        while True:
            while (now := self._clock()) < due:
                await self._sleep(min((due - now).total_seconds(), NAP_SECONDS))
            offer(event)
            due = self._after(now)  # not those in between, and none again if the clock is set back

    def _after(self, moment: datetime) -> datetime:
        """Return the first tick after a moment."""
        try:
            from cronsim import CronSim, CronSimError  # noqa: PLC0415 - the extra
        except ImportError as error:
            raise self._place.missing("cron", error) from error
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - only this trigger needs it

        schedule, zone = self._trigger.schedule, self._trigger.timezone
        try:
            local = moment.astimezone(ZoneInfo(zone))
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise self._place.error(f"{zone!r} is not a time zone that is known here", "timezone") from error
        if len(schedule.split()) != FIELDS:
            raise self._place.error(f"{schedule!r} is not a schedule: it should have five fields", "schedule")
        try:
            return next(CronSim(schedule, local))
        except (CronSimError, StopIteration) as error:
            why = str(error) or "it never comes"
            raise self._place.error(f"{schedule!r} is not a schedule: {why}", "schedule") from error


class FileSource:
    """Files.  One that changes is one event, when it has been left alone for a while; what is deleted is none."""

    def __init__(self, trigger: FileWatchTrigger, place: TriggerPlace) -> None:
        self._trigger, self._place = trigger, place
        folder = place.role.folder
        self._paths = [os.path.normpath(os.path.join(folder, os.path.expanduser(path))) for path in trigger.paths]
        for path in self._paths:
            if not os.path.exists(path):
                raise place.error(f"{path!r} does not exist", "paths")
        self._endings = tuple(_ending(one) for one in trigger.extensions)
        self._lost: set[str] = set()  # of what is watched, what was deleted or replaced
        self._own = os.path.realpath(place.home) + os.sep  # a run writes there: it would set itself off for ever

    async def watch(self, offer: Offer, announce: Notify) -> None:
        """See ``TriggerSource``."""
        try:
            from watchfiles import DefaultFilter, awatch  # noqa: PLC0415 - the extra
        except ImportError as error:
            raise self._place.missing("file_watch", error) from error
        announce(self._place.line(f"file_watch {', '.join(self._paths)}{self._only()}"))
        if self._trigger.process_existing:
            for path in self._existing(self._paths, DefaultFilter()):
                offer(self._event(path))
        is_wanted, waiting = self._filter(DefaultFilter()), dict[str, asyncio.TimerHandle]()
        new: list[str] = []  # of what is watched, what was replaced since
        try:
            while True:
                known, self._lost = self._identities(), set()
                looking = awatch(*self._paths, watch_filter=is_wanted, yield_on_timeout=True, rust_timeout=LOOK_MS)
                async with aclosing(looking) as noticed:
                    async for changes in noticed:
                        found = {path for _, path in changes} | set(self._existing(new, DefaultFilter()))
                        self._rest(found, waiting, offer)
                        new = [path for path in self._paths if path in self._lost or known[path] != _identity(path)]
                        if new:
                            break
                await self._wait_until_back(announce)
        except (OSError, RuntimeError) as error:  # the system has no more watches to give
            raise self._place.error(f"cannot be watched: {error}", "paths") from error
        finally:
            for timer in waiting.values():
                timer.cancel()

    def _rest(self, found: Iterable[str], waiting: dict[str, asyncio.TimerHandle], offer: Offer) -> None:
        """Offer each file when it has not changed for a while."""
        loop = asyncio.get_running_loop()
        for path in sorted(found):
            if before := waiting.pop(path, None):
                before.cancel()
            waiting[path] = loop.call_later(self._trigger.debounce_seconds, offer, self._event(path))

    async def _wait_until_back(self, announce: Notify) -> None:
        """Wait until everything that is watched exists: a folder may be recreated, an editor may save by renaming."""
        announced = False
        while missing := [path for path, identity in self._identities().items() if identity is None]:
            await asyncio.sleep(LOOK_MS / 1000)
            if not announced and _identity(missing[0]) is None:
                announce(self._place.line(f"file_watch {missing[0]} is gone, and is watched again when it is back"))
                announced = True

    def _identities(self) -> dict[str, tuple[int, int] | None]:
        return {path: _identity(path) for path in self._paths}

    def _event(self, path: str) -> TriggerEvent:
        trigger = self._trigger
        return TriggerEvent(
            trigger=trigger.type, prompt=trigger.prompt_template.replace("{path}", path),
            autonomous=trigger.autonomous, agent=self._place.agent,
            key=f"{self._place.agent}/{self._place.path}/{path}",
        )  # fmt: skip

    def _filter(self, usual: Callable[[Change, str], bool]) -> Callable[[Change, str], bool]:
        from watchfiles import Change  # noqa: PLC0415 - see watch

        def is_wanted(change: Change, path: str) -> bool:
            if change == Change.deleted and path in self._paths:
                self._lost.add(path)  # another one may have its number by now
            return (
                change != Change.deleted and usual(change, path) and self._is_watched(path) and not os.path.isdir(path)
            )

        return is_wanted

    def _is_watched(self, path: str) -> bool:
        ends = not self._endings or path.lower().endswith(self._endings)
        return ends and not os.path.realpath(path).startswith(self._own)

    def _existing(self, tops: Iterable[str], usual: Callable[[Change, str], bool]) -> Iterator[str]:
        """Return the files that exist, in the order of their names."""
        is_wanted = self._filter(usual)
        from watchfiles import Change  # noqa: PLC0415 - see watch

        for top in tops:
            found = [top] if os.path.isfile(top) else [
                os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names
            ]  # fmt: skip
            yield from (path for path in sorted(found) if is_wanted(Change.added, path))

    def _only(self) -> str:
        return f" ({', '.join(self._endings)})" if self._endings else ""


def _identity(path: str) -> tuple[int, int] | None:
    """Return which file or folder has this path; None: none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _ending(extension: str) -> str:
    return "." + extension.lower().lstrip("*").lstrip(".")


class WebhookSource:
    """Calls.  See ``webhook`` for what is refused."""

    def __init__(self, trigger: WebhookTrigger, place: TriggerPlace, *, env: Mapping[str, str]) -> None:
        self._trigger, self._place = trigger, place
        if not trigger.path.startswith("/") or "{" in trigger.path:
            raise place.error(f"should begin with a slash and have no braces, not {trigger.path!r}", "path")
        self._secret = env.get(trigger.secret_env, "").strip() if trigger.secret_env else ""
        if trigger.secret_env and not self._secret:
            raise place.error(f"names {trigger.secret_env}, which is not set", "secret_env")
        if not self._secret and not is_loopback(trigger.host):
            reason = f"{trigger.host!r} can be reached from elsewhere, which needs a shared secret: say `secret_env`"
            raise place.error(reason, "host")

    async def watch(self, offer: Offer, announce: Notify) -> None:
        """See ``TriggerSource``."""
        try:
            from commonplace.roles.webhook import webhook  # noqa: PLC0415 - the extra
        except ImportError as error:
            raise self._place.missing("webhook", error) from error
        trigger = self._trigger

        def accept(prompt: str) -> bool:
            agent = self._place.agent
            return offer(TriggerEvent(trigger=trigger.type, prompt=prompt, autonomous=trigger.autonomous, agent=agent))

        try:
            async with webhook(trigger, self._secret, accept) as url:
                guarded = "with a secret" if self._secret else "without a secret"
                announce(self._place.line(f"webhook {trigger.method} {url} ({guarded})"))
                await asyncio.Event().wait()
        except OSError as error:
            where = f"{trigger.host}:{trigger.port}"
            raise self._place.error(f"cannot listen at {where}: {error.strerror or error}", "port") from error
