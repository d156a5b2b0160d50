"""Verbs that look after a memory: how much there is, what is wrong, jobs, connected agents, settings, a backup.

They are for the owner of a memory on this machine: an agent that calls a server has a memory without files, and models
are offered none of them.  ``verbs`` lists them with the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from commonplace.model.errors import Forbidden
from commonplace.model.queries import State
from commonplace.model.records import Json
from commonplace.model.values import QUOTED, Value
from commonplace.verbs import verb
from commonplace.wire import Length, Range

if TYPE_CHECKING:  # with the first call: the MCP server loads this while its host waits
    from commonplace.app import App
    from commonplace.records.access import MemoryAccess

SettingsScope: TypeAlias = Literal["project", "assistant"]
SettingName: TypeAlias = Annotated[str, Length(200, least=1)]


class ScopeHealth(Value):
    """One of the two memories here."""

    name: str  #: project or assistant
    called: str
    scope: str  #: as it is stored
    enabled: bool
    folder: str | None = None  #: of its files
    files: int | None = None
    checked_at: datetime | None = None  #: when every file was last compared with its record


class Stored(Value):
    """How many things of one sort a scope holds."""

    scope: str  #: as people call it
    kind: str
    state: State
    count: int
    bytes: int


class Status(Value):
    """What is stored where, and how much."""

    version: str
    database: str
    bytes: int
    last_backup: datetime | None
    scopes: tuple[ScopeHealth, ...]
    stored: tuple[Stored, ...]


class GrowthOfScope(Value):
    """How much of one sort a scope held at the end of each week, the oldest first."""

    scope: str  #: as people call it
    what: str  #: records, or a kind of document
    counts: tuple[int, ...]
    bytes: tuple[int, ...]


class GrowthReport(Value):
    """Every scope and sort."""

    rows: tuple[GrowthOfScope, ...]


class Trouble(Value):
    """Something that needs a person."""

    kind: str  #: file, conflict, missing, job, hook or folder
    what: Annotated[str, QUOTED]
    path: str | None = None  #: of a file
    line: int | None = None  #: in it
    key: str | None = None  #: of a job: the session, for one that extracts


class Troubles(Value):
    """What needs a person, files first."""

    troubles: tuple[Trouble, ...]


class CheckResult(Value):
    """What one check has found."""

    name: str
    problems: tuple[str, ...]
    fixable: int  #: of these, `commonplace doctor --fix` repairs so many


class CheckReport(Value):
    """Every check."""

    healthy: bool
    checks: tuple[CheckResult, ...]


class JobReport(Value):
    """A job of learning."""

    kind: str
    key: str
    scope: str
    state: str  #: failed, exhausted, running, pending or done
    error: Annotated[str | None, QUOTED] = None
    tries_left: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_at: datetime | None = None


class JobList(Value):
    """Every job, those that need attention first."""

    learning: bool  #: whether it is switched on here
    mode: str
    jobs: tuple[JobReport, ...]
    skipped: tuple[str, ...] = ()  #: sessions that the last run left out, with the reason
    last_run: datetime | None = None
    trouble: Annotated[str | None, QUOTED] = None  #: what prevented the last run in the background


class Backup(Value):
    """A copy of the store."""

    path: str
    records: int


class AgentConnection(Value):
    """A coding agent, and whether it is connected."""

    name: str  #: what people type
    title: str
    found: bool  #: its folder or its program is on this machine
    connected: tuple[str, ...]  #: user, project
    last_session: datetime | None = None  #: when something was last said in one that is indexed here
    trouble: str | None = None  #: its settings cannot be read


class AgentList(Value):
    """Every coding agent that is known."""

    agents: tuple[AgentConnection, ...]
    hook_troubles: tuple[str, ...] = ()  #: of the last days, the oldest first


class SettingValue(Value):
    """One setting."""

    name: str  #: ``group.name`` in a group
    help: str
    kind: str  #: switch, whole number, number or text
    value: Json
    default: Json
    is_set: bool  #: the file names it
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    advanced: bool = False
    by_hand: bool = False  #: it is only changed in the file


class SettingsFile(Value):
    """A settings file."""

    scope: str
    path: str
    digest: str  #: of its text
    settings: tuple[SettingValue, ...]


class ChangedSettings(Value):
    """What was changed in a settings file, or would be."""

    path: str
    changed: tuple[str, ...]  #: names; empty: the file says it already
    diff: str


class RecordFile(Value):
    """The Markdown file of a record."""

    path: str
    text: Annotated[str, QUOTED]


def _app(caller: MemoryAccess) -> App:
    """Return what is at the caller's directory; raises where there is none."""
    from commonplace.records.access import AppAccess  # noqa: PLC0415 - see the top

    if not isinstance(caller, AppAccess):
        raise Forbidden("this is a memory in a store of its own, without files, settings and jobs")
    return caller.app


@verb(reads=True, offers=())
def status(caller: MemoryAccess) -> Status:
    """Return what is stored where, and how much."""
    from commonplace.records.overview import get_status  # noqa: PLC0415 - see the top

    return get_status(caller)


@verb(reads=True, offers=())
def growth(caller: MemoryAccess, *, weeks: Annotated[int, Range(1, 104)] = 12) -> GrowthReport:
    """Return how much every scope held at the end of each week; what was erased since was never there.

    Args:
        weeks: How many weeks back.
    """
    memory = caller.memory
    found = memory.store.growth(
        memory.binding.reads, until=memory.clock(), step=timedelta(weeks=1), steps=weeks + 1
    )  # fmt: skip
    return GrowthReport(
        rows=tuple(
            GrowthOfScope(scope=caller.name_of(one.scope), what=one.what, counts=one.counts, bytes=one.bytes)
            for one in found
        )
    )


@verb(reads=True, offers=())
def troubles(caller: MemoryAccess) -> Troubles:
    """List what needs a person: files that cannot be read, with their line, conflicts, failed jobs, hooks."""
    from commonplace.records.overview import list_troubles  # noqa: PLC0415 - see the top

    return Troubles(troubles=tuple(list_troubles(caller)))


@verb(reads=True, offers=())
def check(caller: MemoryAccess) -> CheckReport:
    """Check the database, its index, every row, the files against the rows, and the permissions.  Reads everything."""
    from commonplace.records.health import check_health  # noqa: PLC0415 - see the top

    found = check_health(_app(caller))
    return CheckReport(
        healthy=not any(found.values()),
        checks=tuple(
            CheckResult(
                name=name, problems=tuple(one.what for one in problems), fixable=sum(one.fixable for one in problems)
            )
            for name, problems in found.items()
        ),
    )


@verb(reads=True, offers=())
def jobs(caller: MemoryAccess) -> JobList:
    """List the jobs of learning, those that need attention first, with their last error."""
    from commonplace.records.overview import list_jobs  # noqa: PLC0415 - see the top

    return list_jobs(_app(caller))


@verb(offers=())
def backup(caller: MemoryAccess) -> Backup:
    """Copy the whole store to a new file in the folder of backups."""
    from commonplace.records.health import back_up  # noqa: PLC0415 - see the top

    path, count = back_up(_app(caller))
    return Backup(path=path, records=count)


@verb(reads=True, offers=())
def agents(caller: MemoryAccess) -> AgentList:
    """List the coding agents that are known, which are on this machine, and which are connected."""
    from commonplace.records.overview import list_agents  # noqa: PLC0415 - see the top

    return list_agents(_app(caller))


@verb(reads=True, offers=())
def settings(caller: MemoryAccess, *, scope: SettingsScope = "project") -> SettingsFile:
    """List the settings of the project, or of the user's own memory.

    Args:
        scope: project, or assistant: the user's own settings.
    """
    from commonplace.records.settings_file import read_settings  # noqa: PLC0415 - see the top

    return read_settings(_app(caller).where, scope)


@verb(repeats=True, offers=())
def change_settings(
    caller: MemoryAccess, changes: Mapping[str, Json], *, scope: SettingsScope = "project", digest: str | None = None,
    preview: bool = False,
) -> ChangedSettings:  # fmt: skip
    """Change settings in their file; its comments and its order stay.

    Args:
        changes: New values by the name of the setting; null takes the default again.
        scope: project, or assistant: the user's own settings.
        digest: Of the file as it was read; if it was changed meanwhile, nothing is written.
        preview: Return the difference, and write nothing.
    """
    from commonplace.records.settings_file import change_settings as change  # noqa: PLC0415 - see the top

    return change(_app(caller).where, scope, changes, digest=digest, preview=preview)


@verb(reads=True, offers=())
def file(caller: MemoryAccess, id: str) -> RecordFile:
    """Return the Markdown file of a record.

    Args:
        id: The id of the record, or a beginning of it that no other record shares.
    """
    from commonplace.records.overview import read_record_file  # noqa: PLC0415 - see the top

    return read_record_file(_app(caller), id)


HEALTH_VERBS = (status, growth, troubles, check, jobs, backup, agents, settings, change_settings, file)
