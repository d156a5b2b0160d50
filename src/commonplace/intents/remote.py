"""A server as the backend of a client: one request for each call.

Nothing is sent twice: a call whose answer is lost may have been made, and only the caller knows whether it can be
repeated.  So there are no retries; the pool opens a new connection where the server has closed an idle one.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from inspect import signature
from typing import Any, ParamSpec, TypeVar
from urllib.parse import SplitResult, urlsplit

import httpx

from commonplace.intents.entries import make_scope
from commonplace.intents.verbs import IntentAccess
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
from commonplace.verbs import Verb
from commonplace.wire import decode_known

P = ParamSpec("P")
R = TypeVar("R")
PATH = "v1/intents"
SOCKET = "unix"  # the scheme of a server that listens at a Unix socket: unix:///path
LOCAL = "http://localhost"  # what such a server is called in a request
IDLE_SECONDS = 4.0  # that a connection is reused; the server closes it after five


class Remote:
    """A client's connection to a server."""

    def __init__(self, url: str, *, agent: str | None, api_key: str | None, timeout: float) -> None:
        address = urlsplit(url)
        if not _is_server(address):
            shape = "unix:///run/user/1000/commonplace.sock" if address.scheme == SOCKET else "http://127.0.0.1:8000"
            raise InvalidInput(f"{url!r} is not the address of a server; it should look like {shape!r}")
        if api_key is not None and not (isinstance(api_key, str) and api_key.isascii() and api_key.isprintable()):
            raise InvalidInput("the api_key is invalid: it holds something else than printable ASCII characters")
        if agent is not None:
            make_scope(("agent", agent))  # raises for what is no name, or cannot stand in a header
        self._socket = address.path if address.scheme == SOCKET else None
        self._name = url if self._socket else f"{address.scheme}://{address.netloc}"
        self._url = f"{LOCAL if self._socket else self._name + address.path.rstrip('/')}/{PATH}"
        self._timeout = timeout
        self._headers = {b"Content-Type": b"application/json"}
        self._headers |= {b"X-API-Key": api_key.encode()} if api_key else {}
        self._headers |= {b"X-Agent-ID": agent.encode()} if agent else {}
        self._verify = ssl.create_default_context() if address.scheme == "https" else False
        self._pid, self._http = os.getpid(), self._pool()

    def call(self, verb: Verb[IntentAccess, P, R], *args: P.args, **given: P.kwargs) -> R:
        """Call a verb on the server."""
        bound = signature(verb.function).bind(None, *args, **given).arguments
        _, *arguments = bound.items()
        answer = self._post(verb.name, verb.encode(dict(arguments)))
        try:
            result: R = decode_known(verb.result, answer)
        except InvalidInput as error:
            raise StoreError(f"{self._name} answered with something else than a result: {error}") from error
        return result

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _pool(self) -> httpx.Client:
        # Proxies and passwords of the environment are not for a server that was named by its address.
        limits = httpx.Limits(max_connections=None, keepalive_expiry=IDLE_SECONDS)
        carrier = httpx.HTTPTransport(verify=self._verify, trust_env=False, limits=limits, uds=self._socket)
        return httpx.Client(headers=self._headers, timeout=self._timeout, trust_env=False, transport=carrier)

    def _post(self, name: str, arguments: Mapping[str, Any]) -> Any:
        try:
            body = json.dumps(arguments, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"the value is not JSON: {error}") from error
        response = self._send(f"{self._url}/{name}", body)
        try:
            answer = response.json()
        except ValueError as error:
            raise StoreError(f"{self._name} answered {response.status_code} with something that is not JSON") from error
        if response.status_code != HTTPStatus.OK:
            raise _error(response.status_code, answer if isinstance(answer, dict) else {}, self._name)
        return answer

    def _send(self, url: str, body: bytes) -> httpx.Response:
        if self._pid != os.getpid():  # connections of the parent: each process would read the other's answers
            self._pid, self._http = os.getpid(), self._pool()
        try:
            return self._http.post(url, content=body)
        except httpx.TimeoutException as error:
            raise StoreBusy(f"{self._name} did not answer within {self._timeout:g} seconds") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise StoreError(f"{self._name} cannot be reached: {error or type(error).__name__}") from error


def _is_server(address: SplitResult) -> bool:
    """Tell whether an address names a server, and nothing else."""
    try:
        port = address.port
    except ValueError:  # no number, or too large
        return False
    if address.scheme == SOCKET:
        return len(address.path) > 1 and not (address.netloc or address.query or address.fragment)
    return bool(address.hostname) and port != 0 and not (address.query or address.fragment or address.username)


def _error(status: int, answer: Mapping[str, Any], name: str) -> CommonplaceError:
    """Return the error of a response as the one that a local store would raise."""
    message = str(answer.get("message") or answer.get("detail") or f"{name} answered {status}")
    if status == HTTPStatus.CONFLICT:
        return Conflict(message, current=answer.get("current_version"))
    if status == HTTPStatus.TOO_MANY_REQUESTS and isinstance(answer.get("most"), int):
        return CapacityExceeded(message, current=answer["current"], limit=answer["most"])
    return next((kind for statuses, kind in _ERRORS if status in statuses), StoreError)(message)


_ERRORS: tuple[tuple[tuple[int, ...], type[CommonplaceError]], ...] = (
    ((400, 413, 422), InvalidInput),
    ((401, 403), Forbidden),
    ((404,), NotFound),
    ((429, 503), StoreBusy),
)
