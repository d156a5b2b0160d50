"""A webhook: a small HTTP server of the standard library that takes the body of a call as a prompt, and nothing else.

Whoever calls is answered at once; what the agent makes of it is not awaited.  With a secret a call has to prove that
it knows it; without one only this machine is served, and what a web page sends from a browser here is refused.
"""

from __future__ import annotations

import hmac
import json
import re
import socket
import socketserver
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from commonplace.agents.quietly import log
from commonplace.roles.dialect import WebhookTrigger

BODY_BYTES = 262_144  # a prompt; more would fill any model's window
UNREAD_BYTES = 4_194_304  # of a body that is too long: read, so that the caller gets to see the answer
CALLS = 32  # at once; whoever comes then is sent away
PATIENCE_SECONDS = 10.0  # for a call to say what it has to say, from its first byte to its last
MINUTE_SECONDS = 60.0
POLL_SECONDS = 0.05  # how soon the end is noticed
PIECE_BYTES = 65_536
NAME = "commonplace"
SIGNATURE = "X-Hub-Signature-256"  # as GitHub and others sign
LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")

Take = Callable[[str], bool]  #: whether there was room for it


def listening(
    trigger: WebhookTrigger, secret: str, take: Take, *, patience: float = PATIENCE_SECONDS
) -> AbstractContextManager[str]:
    """Listen where a trigger says; the context is the address, and its end is the end.  Raises ``OSError``."""
    return _serving(_Server(trigger, secret, take, patience))


@contextmanager
def _serving(server: _Server) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, args=[POLL_SECONDS], name=f"{NAME}-webhook", daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    """Listens, with a thread for each call and a limit on how many there are."""

    daemon_threads = True
    request_queue_size = CALLS

    def __init__(self, trigger: WebhookTrigger, secret: str, take: Take, patience: float) -> None:
        self.trigger, self.secret, self.take = trigger, secret.encode(), take
        self._patience = patience
        self._calls = threading.BoundedSemaphore(CALLS)
        self._lock = threading.Lock()
        self._taken: deque[float] = deque()  # when, in the last minute
        found = socket.getaddrinfo(trigger.host, trigger.port, type=socket.SOCK_STREAM)
        self.address_family = found[0][0]
        super().__init__((trigger.host, trigger.port), _Call)

    @property
    def url(self) -> str:
        """Where it is called."""
        host = f"[{self.trigger.host}]" if ":" in self.trigger.host else self.trigger.host
        return f"http://{host}:{self.server_address[1]}{self.trigger.path}"

    def server_bind(self) -> None:
        """Bind without asking what this machine is called, which may take a while."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """See ``socketserver``."""
        if self._calls.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See ``socketserver``; whoever takes too long is hung up on, however the bytes trickle in."""
        ending = threading.Timer(self._patience, _hung_up, [request])
        ending.daemon = True
        ending.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            ending.cancel()
            self._calls.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who hangs up is no news to whoever reads the terminal."""
        del request, client_address
        log.info("a call of the webhook broke off", exc_info=True)

    def fast(self) -> bool:
        """Whether there were as many calls in the last minute as there may be; if not, this is one."""
        now = time.monotonic()
        with self._lock:
            while self._taken and now - self._taken[0] >= MINUTE_SECONDS:
                self._taken.popleft()
            if len(self._taken) >= self.trigger.rate_limit_rpm:
                return True
            self._taken.append(now)
        return False


def _hung_up(request: socket.socket) -> None:
    with suppress(OSError):  # it has ended by itself
        request.shutdown(socket.SHUT_RDWR)


class _Call(BaseHTTPRequestHandler):
    """One call."""

    server: _Server
    server_version = NAME
    sys_version = ""

    def do_POST(self) -> None:
        """Answer, whatever the method is; the name is ``http.server``'s."""
        self.close_connection = True
        try:
            body = self._body()
            self._addressed()
            self._allowed(body)
            self._taken(_prompt(body))
        except _Refused as refused:
            self._send(refused.status, {"error": str(refused)})
        else:
            self._send(HTTPStatus.ACCEPTED, {"status": "accepted"})

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_POST  # noqa: N815 - see do_POST

    def _addressed(self) -> None:
        trigger = self.server.trigger
        if self.path.partition("?")[0] != trigger.path:
            raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing here")
        if self.command != trigger.method:
            raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"only {trigger.method} is answered")

    def _allowed(self, body: bytes) -> None:
        if self.server.secret and not self._proved(body):
            reason = f"the secret, or a signature in {SIGNATURE}, is missing or wrong"
            raise _Refused(HTTPStatus.UNAUTHORIZED, reason)
        if not self.server.secret and not self._local():
            raise _Refused(HTTPStatus.FORBIDDEN, "without a secret only programs of this machine are answered")

    def _taken(self, prompt: str) -> None:
        if self.server.fast():
            most = self.server.trigger.rate_limit_rpm
            raise _Refused(HTTPStatus.TOO_MANY_REQUESTS, f"at most {most} calls a minute are taken")
        if not self.server.take(prompt):
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too much is waiting already")

    def _proved(self, body: bytes) -> bool:
        """Whether the caller knows the secret; how long that takes says nothing about it."""
        secret = self.server.secret
        signed = "sha256=" + hmac.new(secret, body, "sha256").hexdigest()
        shown = self.headers.get(SIGNATURE, "").encode(errors="replace")
        borne = self.headers.get("Authorization", "").encode(errors="replace")
        by_signature = hmac.compare_digest(shown, signed.encode())
        return hmac.compare_digest(borne, b"Bearer " + secret) or by_signature

    def _local(self) -> bool:
        """Whether a program of this machine calls: a page in a browser says where it is from, or calls another name."""
        host = re.sub(r":\d*$", "", self.headers.get("Host", ""))
        return "Origin" not in self.headers and host.lower() in LOCAL_NAMES

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Transfer-Encoding") or not length.isdecimal():
            if self.command in {"GET", "HEAD", "DELETE", "OPTIONS"} and not length:
                return b""
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
        wanted, read, kept = int(length), 0, bytearray()
        while read < min(wanted, UNREAD_BYTES):
            piece = self.rfile.read1(min(PIECE_BYTES, wanted - read))
            if not piece:
                raise _Refused(HTTPStatus.REQUEST_TIMEOUT, "the body did not come")
            read += len(piece)
            kept += piece if wanted <= BODY_BYTES else b""
        if wanted > BODY_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {BODY_BYTES} bytes are taken")
        return bytes(kept)

    def _send(self, status: HTTPStatus, told: dict[str, str]) -> None:
        answer = json.dumps(told).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", self.server.trigger.method)
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self.send_header("Retry-After", str(int(MINUTE_SECONDS)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def log_message(self, *_told: Any) -> None:
        """Say nothing: what is run is told by whoever runs it."""


def _prompt(body: bytes) -> str:
    try:
        prompt = body.decode()
    except UnicodeDecodeError as error:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"the body is not UTF-8 at byte {error.start}") from error
    if not prompt.strip():
        raise _Refused(HTTPStatus.BAD_REQUEST, "the body is blank")
    return prompt


class _Refused(Exception):
    """A call that is not read to its end."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
