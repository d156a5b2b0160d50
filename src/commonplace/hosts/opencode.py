"""OpenCode: a small plugin of ours and MCP in ``opencode.json``; sessions in its SQLite database, which is only read.

The database is another program's: it is opened for reading with the standard library's driver, and every column that
is asked for may be missing one day.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from commonplace.hosts.registry import (
    COMPACT,
    END,
    PROMPT,
    START,
    STOP,
    Host,
    HostTranscript,
    SettingsPart,
    SettingsPlace,
    user_home,
)
from commonplace.model.errors import InvalidInput

if TYPE_CHECKING:
    import sqlite3


PLUGIN = "opencode_plugin.js"
SCRIPT = "__COMMONPLACE__"  # in the plugin: where the script's path goes
_SESSIONS = (
    "select s.id, s.directory, max(s.time_updated, coalesce(max(p.time_updated), 0)), count(p.id) from session s"
    " left join part p on p.session_id = s.id where s.parent_id is null group by s.id order by s.id"
)
OURS = (START, PROMPT, COMPACT, STOP, END)
CONFIGS = ("opencode.jsonc", "opencode.json")


def _parts(db: sqlite3.Connection, message: str) -> Iterator[Mapping[str, Any]]:
    from commonplace.hosts.transcripts import text_part, tool_call, tool_result  # noqa: PLC0415 - see above

    for (data,) in _rows(db, "select data from part where message_id = ? order by time_created, id", (message,)):
        part = _object(data)
        if part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored"):
            yield text_part(part.get("text"))
        elif part.get("type") == "tool" and isinstance(state := part.get("state"), dict):
            yield tool_call(part.get("tool"), state.get("input"), part.get("callID"))
            if state.get("status") == "completed":
                yield tool_result(part.get("tool"), str(state.get("output") or ""), part.get("callID"))


def _rows(db: sqlite3.Connection, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    import sqlite3  # noqa: PLC0415 - see above

    try:
        yield from db.execute(sql, values)
    except sqlite3.Error as error:
        raise InvalidInput(f"is not a database of OpenCode that can be read: {error}") from error


class _Reading:
    """A connection that cannot write, closed in the end."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 - see above
        from urllib.parse import quote  # noqa: PLC0415 - see above

        try:
            self._db = sqlite3.connect(f"file:{quote(self._path)}?mode=ro", uri=True, timeout=1.0)
        except sqlite3.Error as error:
            raise InvalidInput(f"cannot be opened: {error}") from error
        return self._db

    def __exit__(self, *exception: object) -> None:
        self._db.close()


def _object(data: object) -> Mapping[str, Any]:
    import json  # noqa: PLC0415 - see above

    try:
        entry = json.loads(data) if isinstance(data, str | bytes) else None
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _moment(milliseconds: object) -> str | None:
    if not isinstance(milliseconds, int):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


class OpenCode(Host):
    """OpenCode."""

    NAME = "opencode"
    TITLE = "OpenCode"
    PROGRAM = "opencode"
    KEEPS_LOGS = True
    EVENTS: Mapping[str, str] = {
        START: START,
        PROMPT: PROMPT,
        COMPACT: COMPACT,
        STOP: STOP,
        END: END,
    }  # our plugin speaks our words

    def ask(self, text: str) -> Mapping[str, Any]:
        """See ``Host``; the plugin puts it to the session."""
        return {"ask": text}

    def answer(self, event: str, name: str, text: str) -> Mapping[str, Any]:
        """See ``Host``; our plugin reads it."""
        del name
        return {"context": text} if event in (START, PROMPT) else {}

    def history(self, env: Mapping[str, str]) -> Iterator[HostTranscript]:
        """See ``Host``; sessions of subagents, which have a parent, are left out."""
        path = _database(env)
        if not os.path.isfile(path):
            return
        try:
            with _Reading(path) as db:
                rows = list(_rows(db, _SESSIONS, ()))
        except InvalidInput as error:
            raise InvalidInput(f"{path!r} {error}") from error
        for session, cwd, at, count in rows:
            yield HostTranscript(path=path, session=session, cwd=cwd, stamp={"updated": at, "parts": count})

    def lines(self, found: HostTranscript) -> Iterator[Mapping[str, Any]]:
        """See ``Host``; the rows of one message at a time."""
        from commonplace.hosts.transcripts import header, message  # noqa: PLC0415 - a prompt reads no transcript

        yield header(found.session, found.cwd, None)
        with _Reading(found.path) as db:
            sql = "select id, time_created, data from message where session_id = ? order by time_created, id"
            for row, created, data in _rows(db, sql, (found.session,)):
                role = _object(data).get("role")
                if role in ("user", "assistant") and (spoken := list(_parts(db, row))):
                    yield message(role, spoken, _moment(created))

    def parts(self, script: str, place: SettingsPlace) -> Sequence[SettingsPart]:
        """See ``Host``; settings with comments are kept where they are."""
        import json  # noqa: PLC0415 - see above

        root = self.root(place.env) if place.project is None else place.project
        plugins = os.path.join(root if place.project is None else os.path.join(root, ".opencode"), "plugins")
        named = [os.path.join(root, name) for name in CONFIGS]
        config = next((path for path in named if os.path.exists(path)), named[-1])
        server = {"type": "local", "command": [script, "mcp"], "enabled": True}
        with open(os.path.join(os.path.dirname(__file__), PLUGIN), encoding="utf-8") as file:
            plugin = file.read().replace(f'"{SCRIPT}"', json.dumps(script))
        return [
            SettingsPart(file=os.path.join(plugins, "commonplace.js"), kind="text", value=plugin),
            SettingsPart(file=config, kind="json", path=("mcp", "commonplace"), value=server),
        ]

    def root(self, env: Mapping[str, str]) -> str:
        """See ``Host``."""
        return os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(user_home(env), ".config"), "opencode")


def _database(env: Mapping[str, str]) -> str:
    base = env.get("XDG_DATA_HOME") or os.path.join(user_home(env), ".local", "share")
    return os.path.join(base, "opencode", "opencode.db")


HOST = OpenCode()
