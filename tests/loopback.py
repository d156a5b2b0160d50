"""A service on this machine that answers as language models and embedders do: what tests ask instead of the network.

It speaks OpenAI's protocol (``/v1/chat/completions``, plain and streamed, and ``/v1/embeddings``), Anthropic's
(``/v1/messages``), Google's (``:generateContent``, ``:batchEmbedContents``) and Ollama's (``/api/embed``)::

    with LoopbackServer(answers=["Paris", says("half a", finish="length"), fails(429, retry_after=1)]) as server:
        ...                                  # server.base_url is "http://127.0.0.1:PORT/v1"
    assert server.chats[0].prompt == "What is the capital of France?"

An answer is a text, a ``Reply``, or a function of the ``Request`` that returns either; ``answers`` is a list of them,
taken one by one, or one function for all.  When the list is used up, chat gets a 500 and the test will see it.
Embedding needs no answers: a text's vector is made from its words, the same words giving the same vector.
``embeddings`` is a list of replies that come first, such as failures; None in it is a proper answer.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from binascii import crc32
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """What is sent back; see ``says``, ``calls``, ``fails``, ``raw`` and ``hangs``."""

    text: str | None = None
    tools: tuple = ()  # of (name, arguments)
    finish: str = "stop"
    refusal: str | None = None
    status: int = 200
    headers: tuple = ()  # of (name, value)
    body: bytes | None = None  # sent as it is, instead of an answer
    delay_s: float = 0  # before anything is sent
    cut: bool = False  # the connection ends in the middle of the body
    tokens: tuple = (11, 7)  # in and out, as the usage says


def says(text, **fields):
    """An answer in words; ``finish="length"`` was cut off, ``refusal="..."`` refuses, ``delay_s=1`` takes its time."""
    return Reply(text=text, **fields)


def calls(*tools, text=None):
    """An answer that calls tools: each is a name and its arguments, as a dict or as text."""
    return Reply(text=text, tools=tools, finish="tool_calls")


def fails(status, message="it went wrong", *, retry_after=None, **fields):
    """An error with a status, said as OpenAI says it."""
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    body = json.dumps({"error": {"message": message, "type": "error", "code": None}}).encode()
    return Reply(status=status, body=body, headers=headers, **fields)


def raw(body, **fields):
    """Bytes or text sent as they are, with status 200 unless said: half a JSON, nothing at all, a web page."""
    return Reply(body=body.encode() if isinstance(body, str) else body, **fields)


def hangs(seconds=3600):
    """No answer before that many seconds; the server's end ends it too."""
    return Reply(text="late", delay_s=seconds)


class Request(NamedTuple):
    """What was asked: header names are in lower case, the body is parsed."""

    method: str
    path: str
    headers: dict
    body: Any

    @property
    def system(self):
        """The instructions, in whichever protocol."""
        if "systemInstruction" in self.body:
            return _parts(self.body["systemInstruction"])
        if "system" in self.body:
            return _text(self.body["system"])
        return "\n".join(_text(m["content"]) for m in self.body["messages"] if m["role"] in {"system", "developer"})

    @property
    def prompt(self):
        """What the user said last, in whichever protocol."""
        if "contents" in self.body:
            return _parts(self.body["contents"][-1])
        return [_text(m["content"]) for m in self.body["messages"] if m["role"] == "user"][-1]

    @property
    def texts(self):
        """What is to be embedded, in whichever protocol."""
        if "requests" in self.body:
            return [_parts(one["content"]) for one in self.body["requests"]]
        given = self.body["input"]
        return [given] if isinstance(given, str) else given


def _text(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _parts(content):
    return "".join(part.get("text", "") for part in content["parts"])


def vector_of(text, dimensions=64):
    """A vector made from a text's words: always the same, near where words are shared, not zero, not of unit length."""
    numbers = [0.01] * dimensions
    for word in text.lower().split():
        numbers[crc32(word.encode()) % dimensions] += 1.0
    return numbers


class LoopbackServer:
    """The service, from ``with`` to its end; ``requests`` has all that was asked, in the order it came."""

    def __init__(self, answers=(), *, embeddings=(), dimensions=64):
        self.requests = []
        self.dimensions = dimensions
        self.busiest = 0  # most requests that were being answered at one time
        self.closing = threading.Event()
        self._every = answers if callable(answers) else None
        self._answers = [] if callable(answers) else list(answers)
        self._embeddings = list(embeddings)
        self._lock = threading.Lock()
        self._busy = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"service": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def root_url(self):
        """The address without a path: for Ollama, Anthropic and Google."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self):
        """The address as OpenAI-compatible clients want it."""
        return f"{self.root_url}/v1"

    @property
    def chats(self):
        """The requests to language models."""
        return [request for request in self.requests if not _embeds(request.path)]

    @property
    def embedded(self):
        """The requests to embedders."""
        return [request for request in self.requests if _embeds(request.path)]

    def add(self, *answers):
        """More answers, after those that are still to be given."""
        with self._lock:
            self._answers += answers

    def hear(self, request):
        """Keep a request and take the reply to it."""
        with self._lock:
            self.requests.append(request)
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            if _embeds(request.path):
                return (self._embeddings.pop(0) if self._embeddings else None) or Reply()
            found = self._every or (self._answers.pop(0) if self._answers else fails(500, "no answers are left"))
        found = found(request) if callable(found) else found
        return says(found) if isinstance(found, str) else found

    def wait_for_event(self):
        """One request less is being answered."""
        with self._lock:
            self._busy -= 1


def _embeds(path):
    return path.endswith(("/embeddings", "/api/embed", ":batchEmbedContents", ":embedContent"))


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    service: LoopbackServer
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        """Answer in the protocol of the path."""
        raw_body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path.partition("?")[0], headers, json.loads(raw_body or b"null"))
        reply = self.service.hear(request)
        if request.body is None and reply.body is None:
            reply = fails(404, "there is nothing to answer")
        try:
            if reply.delay_s and self.service.closing.wait(reply.delay_s):
                self.close_connection = True
                return
            with contextlib.suppress(ConnectionError):  # who gave up does not listen any more
                self._send(reply, *self._rendered(request, reply))
        finally:
            self.service.wait_for_event()

    do_GET = do_POST  # noqa: N815 - the name is http.server's; kept so that a test can see who came by GET

    def _rendered(self, request, reply):
        if reply.body is not None:
            return "application/json", reply.body
        if request.path.endswith("/chat/completions") and request.body.get("stream"):
            return "text/event-stream", "".join(f"data: {piece}\n\n" for piece in _streamed(request, reply)).encode()
        if request.path.endswith("/messages") and request.body.get("stream"):
            return "text/event-stream", _events(_anthropic_events(_anthropic(request.body, reply)))
        if request.path.endswith("/responses"):
            return "text/event-stream", _events(_response_events(_response(request.body, reply)))
        if request.path.endswith(":streamGenerateContent"):
            return "text/event-stream", f"data: {json.dumps(_google(request.path, reply))}\r\n\r\n".encode()
        return "application/json", json.dumps(_answer(request, reply, self.service.dimensions)).encode()

    def _send(self, reply, kind, body):
        self.send_response(reply.status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *reply.headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if reply.cut else body)
        self.close_connection = self.close_connection or reply.cut

    def log_message(self, *_):
        """Say nothing: tests look at ``requests``."""


def _answer(request, reply, dimensions):
    path, body = request.path, request.body
    if path.endswith("/embeddings"):
        rows = [vector_of(text, body.get("dimensions", dimensions)) for text in request.texts]
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        return {"object": "list", "data": data[::-1], "model": body["model"]}  # in any order: the index counts
    if path.endswith("/api/embed"):
        rows = [vector_of(text, body.get("dimensions", dimensions)) for text in request.texts]
        return {"model": body["model"], "embeddings": rows}
    if path.endswith(":batchEmbedContents"):
        size = body["requests"][0].get("outputDimensionality", dimensions)
        return {"embeddings": [{"values": vector_of(text, size)} for text in request.texts]}
    if path.endswith("/messages"):
        return _anthropic(body, reply)
    if path.endswith(":generateContent"):
        return _google(path, reply)
    return _chat(body, reply)


def _chat(body, reply):
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.tools:
        message["tool_calls"] = _tool_calls(reply)
    taken, given = reply.tokens
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given},
    }


def _tool_calls(reply):
    texts = [(name, told if isinstance(told, str) else json.dumps(told)) for name, told in reply.tools]
    return [
        {"id": f"call-{at}", "type": "function", "index": at, "function": {"name": name, "arguments": told}}
        for at, (name, told) in enumerate(texts)
    ]


def _streamed(request, reply):
    """The pieces of a streamed answer: word by word, then the tools, then why it ended, then what it cost."""
    common = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": request.body["model"]}
    words = [word + " " for word in (reply.text or "").split(" ")]
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in [*words[:-1], words[-1][:-1]] if word]
    deltas += [{"tool_calls": _tool_calls(reply)}] if reply.tools else []
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reply.finish})
    yield from (json.dumps({**common, "choices": [choice]}) for choice in choices)
    if (request.body.get("stream_options") or {}).get("include_usage"):
        taken, given = reply.tokens
        usage = {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}
        yield json.dumps({**common, "choices": [], "usage": usage})
    yield "[DONE]"


def _anthropic(body, reply):
    taken, given = reply.tokens
    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
    content = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": f"call-{at}", "name": name, "input": told}
        for at, (name, told) in enumerate(reply.tools)
    ]
    return {
        "id": "msg-1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": reasons[reply.finish],
        "stop_sequence": None,
        "usage": {"input_tokens": taken, "output_tokens": given},
    }


def _events(events):
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


def _anthropic_events(message):
    """A message of Anthropic's as it is streamed."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for at, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        begun = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        yield {"type": "content_block_start", "index": at, "content_block": begun}
        yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _response(body, reply):
    """An answer of OpenAI's newer protocol."""
    words = {"type": "output_text", "text": reply.text or "", "annotations": []}
    output = [{"type": "message", "id": "msg-1", "role": "assistant", "status": "completed", "content": [words]}]
    output = output if reply.text else []
    output += [
        {"type": "function_call", "id": f"fc-{at}", "call_id": f"call-{at}", "status": "completed",
         "arguments": json.dumps(told), **_spaced(name)}
        for at, (name, told) in enumerate(reply.tools)
    ]  # fmt: skip
    taken, given = reply.tokens
    usage = {"input_tokens": taken, "output_tokens": given, "total_tokens": taken + given}
    return {"id": "resp-1", "object": "response", "status": "completed", "model": body["model"], "output": output,
            "usage": usage}  # fmt: skip


def _spaced(name):
    """A tool's name, and the namespace before it where there is one: ``space/name``."""
    space, slash, plain = name.rpartition("/")
    return {"name": plain, "namespace": space} if slash else {"name": name}


def _response_events(response):
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    for at, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": at, "item": item}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": "response.completed", "response": response}


def _google(path, reply):
    taken, given = reply.tokens
    reasons = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "tool_calls": "STOP"}
    parts = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": name, "args": told}} for name, told in reply.tools]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reasons[reply.finish]}],
        "usageMetadata": {
            "promptTokenCount": taken,
            "candidatesTokenCount": given,
            "totalTokenCount": taken + given,
        },
        "modelVersion": path.rpartition("/")[2].partition(":")[0],
    }


def unit(numbers):
    """The same direction at length one."""
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]
