"""The protocol on standard input and output: one JSON message per line, answered in order, without a library.

A server lives as long as the process that started it: it ends when its input ends, when its output is closed, and when
its parent is gone although another process holds the other end of the pipe.  Between requests it holds nothing.
"""

from __future__ import annotations

import json
import os
import select
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from commonplace.agents.surface import Surface
from commonplace.mcp.protocol import PARSE, REQUEST, ProtocolError, handle

LINE_BYTES = 4 * 1024 * 1024  # of one message: as much as the HTTP transport takes
READ_BYTES = 65_536
QUEUE_LIMIT = 100  # messages that are read ahead of the one in progress, so that cancellations are seen in time
PARENT_SECONDS = 1.0  # how often an idle server checks that its parent lives

TOO_LONG = object()  # stands for a line over the limit


class Inbox:
    """Lines from a descriptor, as they arrive."""

    def __init__(self, source: int) -> None:
        """Read from a descriptor, which may be a pipe, a socket, a terminal or a file."""
        self.ended = False
        self._source = source
        self._left = b""  #: the beginning of a line that has not ended yet
        self._skipping = False  #: whether that line is too long already
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)

    def lines(self, wait: float) -> Iterator[Any]:
        """Return the lines that arrive within so many seconds; ``TOO_LONG`` stands for one over the limit."""
        if self.ended or not self._poll.poll(int(wait * 1000)):
            return
        data = os.read(self._source, READ_BYTES)
        if not data:
            self.ended = True
            data = b"\n"  # the last line may have no end
        *whole, rest = data.split(b"\n")
        for piece in whole:
            line, self._left = self._left + piece, b""
            skipping, self._skipping = self._skipping, False
            if skipping or len(line) > LINE_BYTES:
                yield TOO_LONG
            elif line.strip():
                yield line
        self._left = b"" if self._skipping else self._left + rest
        if len(self._left) > LINE_BYTES:
            self._left, self._skipping = b"", True


class Server:
    """Serves one client."""

    def __init__(self, surface: Surface, *, source: int, sink: int) -> None:
        self._surface = surface
        self._inbox = Inbox(source)
        self._sink = sink
        self._parent = os.getppid()
        self._messages: deque[Any] = deque()

    def serve(self) -> None:
        """Answer until the client or the parent is gone."""
        try:
            while self._messages or not self._inbox.ended:
                if len(self._messages) < QUEUE_LIMIT:
                    for line in self._inbox.lines(0 if self._messages else PARENT_SECONDS):
                        self._queue(line)
                if os.getppid() != self._parent:
                    return
                if self._messages:
                    self._send(self._answer(self._messages.popleft()))
        except ConnectionError:  # the client is gone: a pipe is broken, a socket was reset
            return

    def _queue(self, line: Any) -> None:
        """Put a message into the queue; a cancellation removes another one from it."""
        if line is TOO_LONG:
            self._send(_error(None, ProtocolError(REQUEST, f"a message may have at most {LINE_BYTES} bytes")))
            return
        try:
            message = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            self._send(_error(None, ProtocolError(PARSE, f"that is not JSON: {error}")))
            return
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            self._cancel(message.get("params"))
        else:
            self._messages.append(message)

    def _cancel(self, params: Any) -> None:
        """Remove a request that has not begun."""
        unwanted = params.get("requestId") if isinstance(params, dict) else None
        if unwanted is not None:
            self._messages = deque(one for one in self._messages if not _is_request(one, unwanted))

    def _answer(self, message: Any) -> Any:
        if isinstance(message, list) and message:  # the revision of 2025-03-26 knows batches
            answers = [answer for one in message if (answer := self._answer_one(one)) is not None]
            return answers or None
        return self._answer_one(message)

    def _answer_one(self, message: Any) -> dict[str, Any] | None:
        """Return the answer to a message; None if there is none."""
        if isinstance(message, dict) and "method" not in message and message.keys() & {"result", "error"}:
            return None  # a response, though this server sends no requests
        try:
            request_id, method, params = _parse(message)
        except ProtocolError as error:
            return _error(message.get("id") if isinstance(message, dict) else None, error)
        if "id" not in message:
            return None  # a notification; none changes anything here
        try:
            return {"jsonrpc": "2.0", "id": request_id, "result": handle(self._surface, method, params)}
        except ProtocolError as error:
            return _error(request_id, error)

    def _send(self, answer: Any) -> None:
        if answer is None:
            return
        # A lone surrogate cannot be written as UTF-8; its escape is the same character in JSON.
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        data = memoryview(text.encode("utf-8", "backslashreplace") + b"\n")
        while data:
            data = data[os.write(self._sink, data) :]


def serve(surface: Surface) -> None:
    """Serve the client at standard input and output; anything else that is printed goes to standard error."""
    source, sink = os.dup(0), os.dup(1)
    os.set_blocking(sink, True)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # a program that is started from here must not read the client's messages
    os.close(nothing)
    try:
        Server(surface, source=source, sink=sink).serve()
    finally:
        os.close(source)
        os.close(sink)


def _parse(message: Any) -> tuple[Any, str, Mapping[str, Any]]:
    """Return the id, the method and the parameters of a request or a notification."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise ProtocolError(REQUEST, "a message is an object with 'jsonrpc': '2.0'")
    request_id, method, params = message.get("id"), message.get("method"), message.get("params")
    if "id" in message and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        raise ProtocolError(REQUEST, "an id is a string or a whole number")
    if not isinstance(method, str):
        raise ProtocolError(REQUEST, "a request needs a 'method'")
    if params is not None and not isinstance(params, dict):
        raise ProtocolError(REQUEST, "'params' must be an object")
    return request_id, method, params or {}


def _is_request(message: Any, id: Any) -> bool:
    return isinstance(message, dict) and message.get("id") == id and message.get("method") != "initialize"


def _error(id: Any, error: ProtocolError) -> dict[str, Any]:
    known = id if isinstance(id, str | int) and not isinstance(id, bool) else None
    return {"jsonrpc": "2.0", "id": known, "error": {"code": error.code, "message": str(error)}}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
