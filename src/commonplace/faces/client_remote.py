"""The server answers a client's calls: one request for each, over connections that are kept, one for each thread.

Nothing is sent twice: a call whose answer is lost may have been made, and only its caller knows whether it can be made
again.  So a kept connection is looked at before it is used: one that the server has closed is opened anew.
"""

from __future__ import annotations

import http.client
import json
import select
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from commonplace.domain.errors import (
    CapacityExceeded,
    CommonplaceError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    StoreBusy,
    StoreError,
)
from commonplace.domain.scopes import Scope
from commonplace.engine.intents import Entry, EntryDraft, EntryFilter, Page, Permissions, Policy, Task

ROUTES = "/v1/intents"
_TIMES = ("created_at", "updated_at", "expires_at")


class Remote:
    """A server that is asked."""

    def __init__(self, url: str, *, agent: str | None, api_key: str | None, timeout: float) -> None:
        address = urlsplit(url)
        if not address.hostname or address.query or address.fragment or address.username:
            raise InvalidInput(f"{url!r} is not the address of a server; it should look like 'http://127.0.0.1:8000'")
        self._address = address
        self._name = f"{address.scheme}://{address.netloc}"
        self._timeout = timeout
        if agent is not None:
            Scope.of(("agent", agent))  # refuses what cannot name an agent, or stand in a header
        self._headers: dict[str, str | bytes] = {"Content-Type": "application/json", "Accept": "application/json"}
        self._headers |= {"X-API-Key": api_key} if api_key else {}
        self._headers |= {"X-Agent-ID": agent.encode()} if agent else {}
        self._mine = threading.local()
        self._all: list[http.client.HTTPConnection] = []

    # What a client asks

    def entry(self, verb: str, **arguments: Any) -> Entry:
        """See ``Behind``."""
        return _entry(self._ask(verb, arguments))

    def entries(self, verb: str, **arguments: Any) -> list[Entry]:
        """See ``Behind``."""
        return [_entry(found) for found in self._ask(verb, arguments)["entries"]]

    def batch(self, items: Sequence[EntryDraft]) -> list[Entry]:
        """See ``Behind``."""
        if not items:
            return []
        said = [{name: getattr(item, name) for name in EntryDraft.fields} for item in items]
        answer = self._ask("batch", {"items": [_said(fields) for fields in said]})
        return [_entry(found) for found in answer["entries"]]

    def page(self, where: EntryFilter, *, limit: int, offset: int) -> Page:
        """See ``Behind``."""
        fields = {name: getattr(where, name) for name in EntryFilter.fields}
        answer = self._ask("list", fields | {"limit": limit, "offset": offset})
        entries = tuple(_entry(found) for found in answer["entries"])
        return Page(entries=entries, total=answer["total"], limit=answer["limit"], offset=answer["offset"])

    def forget(self, **arguments: Any) -> None:
        """See ``Behind``."""
        self._ask("forget", arguments)

    def permit(self, namespace: str, permissions: Permissions) -> Permissions:
        """See ``Behind``."""
        said = {"namespace": namespace, "default": permissions.default, "allow": dict(permissions.allow)}
        return _permissions(self._ask("permit", said))

    def permissions(self, namespace: str) -> Permissions:
        """See ``Behind``."""
        return _permissions(self._ask("permissions", {"namespace": namespace}))

    def task(self, verb: str, **arguments: Any) -> Task:
        """See ``Behind``."""
        found = self._ask(f"tasks/{verb}", arguments)
        policy = Policy(**found["policy"]) if found.get("policy") else Policy()
        return Task(**found | {"former": tuple(found["former"]), "policy": policy})

    def erase(self, task: str) -> None:
        """See ``Behind``."""
        self._ask("tasks/erase", {"task": task})

    def close(self) -> None:
        """See ``Behind``."""
        while self._all:
            self._all.pop().close()

    # How it is asked

    def _ask(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        try:
            body = json.dumps(_said(arguments), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"the value is not JSON: {error}") from error
        status, text = self._sent(f"{self._address.path.rstrip('/')}{ROUTES}/{verb}", body)
        try:
            answer = json.loads(text)
        except ValueError as error:
            raise StoreError(f"{self._name} answered {status} with something that is not JSON") from error
        if status != http.client.OK:
            raise _error(status, answer if isinstance(answer, dict) else {}, self._name)
        return answer

    def _sent(self, path: str, body: bytes) -> tuple[int, bytes]:
        try:
            connection = self._connection()
            connection.request("POST", path, body, self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except TimeoutError as error:
            self._drop()
            raise StoreBusy(f"{self._name} did not answer within {self._timeout:g} seconds") from error
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            raise StoreError(f"{self._name} cannot be reached: {error or type(error).__name__}") from error

    def _connection(self) -> http.client.HTTPConnection:
        held: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if held is not None and held.sock is not None and not _is_over(held):
            return held
        self._drop()
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        made = kind(self._address.hostname or "", self._address.port, timeout=self._timeout)
        self._mine.connection = made
        self._all.append(made)
        return made

    def _drop(self) -> None:
        held = getattr(self._mine, "connection", None)
        self._mine.connection = None
        if held is not None:
            held.close()
            if held in self._all:
                self._all.remove(held)


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed a connection on which nothing is asked just now."""
    readable, _, _ = select.select([connection.sock], [], [], 0)
    return bool(readable)


def _said(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as JSON; what is not said is left out, but a value may be nothing."""
    return {name: _plain(value) for name, value in arguments.items() if value is not None or name == "value"}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _entry(found: Mapping[str, Any]) -> Entry:
    times = {name: None if found[name] is None else datetime.fromisoformat(found[name]) for name in _TIMES}
    return Entry(**{name: found[name] for name in Entry.fields} | times | {"tags": tuple(found["tags"])})


def _permissions(found: Mapping[str, Any]) -> Permissions:
    return Permissions(default=found["default"], allow=found["allow"])


def _error(status: int, answer: Mapping[str, Any], name: str) -> CommonplaceError:
    """What the server refused, as the same error that a store of one's own raises."""
    said = str(answer.get("message") or answer.get("detail") or f"{name} answered {status}")
    if status == http.client.CONFLICT:
        return Conflict(said, current=answer.get("current_version"))
    if status == http.client.TOO_MANY_REQUESTS and isinstance(answer.get("most"), int):
        return CapacityExceeded(said, current=answer["current"], most=answer["most"])
    return next((kind for statuses, kind in _KINDS if status in statuses), StoreError)(said)


_KINDS: tuple[tuple[tuple[int, ...], type[CommonplaceError]], ...] = (
    ((400, 413, 422), InvalidInput),
    ((401, 403), Forbidden),
    ((404,), NotFound),
    ((429, 503), StoreBusy),
)
