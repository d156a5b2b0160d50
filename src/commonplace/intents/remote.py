"""The server answers a client's calls: one request for each, over connections that are kept, one for each at a time.

Nothing is sent twice: a call whose answer is lost may have been made, and only its caller knows whether it can be made
again.  So a kept connection is looked at before it is used: one that the server has closed is opened anew.
"""

from __future__ import annotations

import http.client
import json
import os
import selectors
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from commonplace.intents.entries import scope_named
from commonplace.intents.intents import Entry, EntryDraft, EntryFilter, Page, Permissions, Policy, Task
from commonplace.model.errors import (
    CapacityExceeded,
    CommonplaceError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    StoreBusy,
    StoreError,
)

ROUTES = "/v1/intents"
_TIMES = ("created_at", "updated_at", "expires_at")


class Remote:
    """A server that is asked."""

    def __init__(self, url: str, *, agent: str | None, api_key: str | None, timeout: float) -> None:
        address = urlsplit(url)
        if not _is_whole(address):
            raise InvalidInput(f"{url!r} is not the address of a server; it should look like 'http://127.0.0.1:8000'")
        if api_key is not None and not (isinstance(api_key, str) and api_key.isascii() and api_key.isprintable()):
            raise InvalidInput("the api_key cannot be one: it holds something else than printable ASCII characters")
        self._address = address
        self._name = f"{address.scheme}://{address.netloc}"
        self._timeout = timeout
        if agent is not None:
            scope_named(("agent", agent))  # refuses what cannot name an agent, or stand in a header
        self._headers: dict[str, str | bytes] = {"Content-Type": "application/json", "Accept": "application/json"}
        self._headers |= {"X-API-Key": api_key} if api_key else {}
        self._headers |= {"X-Agent-ID": agent.encode()} if agent else {}
        self._pid = os.getpid()
        self._idle: list[http.client.HTTPConnection] = []  # on which nothing is asked; as many as were needed at once

    # What a client asks

    def entry(self, verb: str, **arguments: Any) -> Entry:
        """See ``Backend``."""
        return _entry(self._ask(verb, arguments))

    def entries(self, verb: str, **arguments: Any) -> list[Entry]:
        """See ``Backend``."""
        return [_entry(found) for found in self._ask(verb, arguments)["entries"]]

    def batch(self, items: Sequence[EntryDraft]) -> list[Entry]:
        """See ``Backend``."""
        if not items:
            return []
        said = [{name: getattr(item, name) for name in EntryDraft.fields} for item in items]
        answer = self._ask("batch", {"items": [_said(fields) for fields in said]})
        return [_entry(found) for found in answer["entries"]]

    def page(self, where: EntryFilter, *, limit: int, offset: int) -> Page:
        """See ``Backend``."""
        fields = {name: getattr(where, name) for name in EntryFilter.fields}
        answer = self._ask("list", fields | {"limit": limit, "offset": offset})
        entries = tuple(_entry(found) for found in answer["entries"])
        return Page(entries=entries, total=answer["total"], limit=answer["limit"], offset=answer["offset"])

    def forget(self, **arguments: Any) -> None:
        """See ``Backend``."""
        self._ask("forget", arguments)

    def permit(self, namespace: str, permissions: Permissions) -> Permissions:
        """See ``Backend``."""
        said = {"namespace": namespace, "default": permissions.default, "allow": dict(permissions.allow)}
        return _permissions(self._ask("permit", said))

    def permissions(self, namespace: str) -> Permissions:
        """See ``Backend``."""
        return _permissions(self._ask("permissions", {"namespace": namespace}))

    def task(self, verb: str, **arguments: Any) -> Task:
        """See ``Backend``."""
        found = self._ask(f"tasks/{verb}", arguments)
        policy = Policy(**found["policy"]) if found.get("policy") else Policy()
        return Task(**found | {"former": tuple(found["former"]), "policy": policy})

    def erase(self, task: str) -> None:
        """See ``Backend``."""
        self._ask("tasks/erase", {"task": task})

    def close(self) -> None:
        """See ``Backend``."""
        for connection in iter(self._kept, None):
            connection.close()

    # How it is asked

    def _ask(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        try:
            body = json.dumps(_said(arguments), allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
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
        connection, whole = self._connection(), False
        try:
            connection.request("POST", path, body, self._headers)
            answer = connection.getresponse()
            text, whole = answer.read(), True
        except TimeoutError as error:
            raise StoreBusy(f"{self._name} did not answer within {self._timeout:g} seconds") from error
        except (OSError, http.client.HTTPException) as error:
            raise StoreError(f"{self._name} cannot be reached: {error or type(error).__name__}") from error
        else:
            return answer.status, text
        finally:
            if whole and connection.sock is not None:
                self._idle.append(connection)
            else:  # what is still to come would be taken for the answer to the next question
                connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._pid != os.getpid():  # those are the parent's: each would read what the other has asked for
            self._pid, self._idle = os.getpid(), []
        for held in iter(self._kept, None):
            if held.sock is not None and not _is_over(held):
                return held
            held.close()
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        return kind(self._address.hostname or "", self._address.port, timeout=self._timeout)

    def _kept(self) -> http.client.HTTPConnection | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may have been sooner
            return None


def _is_whole(address: SplitResult) -> bool:
    """Whether an address names a server, and nothing else."""
    try:
        port = address.port
    except ValueError:  # none that there can be
        return False
    return bool(address.hostname) and port != 0 and not (address.query or address.fragment or address.username)


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed a connection on which nothing is asked just now.

    Not by ``select``, which knows no file beyond the thousandth that a program has open.
    """
    with selectors.DefaultSelector() as looking:
        looking.register(connection.sock, selectors.EVENT_READ)
        return bool(looking.select(0))


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
