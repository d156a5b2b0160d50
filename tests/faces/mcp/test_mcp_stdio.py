"""The stdio loop, without a client's manners: whatever is sent, it answers in kind and goes on."""

from __future__ import annotations

import json
import os

import pytest

from commonplace.mcp.stdio import LINE_BYTES
from stands import rows


def code(answer):
    return answer["error"]["code"]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_revision_with_a_handshake_is_spoken(raw, revision):
    """A client gets the revision that it asks for."""
    result = raw.ask("initialize", protocolVersion=revision, capabilities={}, clientInfo={})["result"]
    assert result["protocolVersion"] == revision
    assert result["serverInfo"]["name"] == "commonplace"
    assert result["capabilities"].keys() == {"tools", "resources", "prompts"}


def test_an_unknown_revision_gets_the_newest_that_is_known(raw):
    """A client from the future can decide whether that is good enough."""
    assert raw.ask("initialize", protocolVersion="2031-01-01")["result"]["protocolVersion"] == "2025-11-25"


def test_a_handshake_without_a_revision_is_refused(raw):
    """The error says what is missing."""
    assert code(raw.ask("initialize")) == -32602


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdk_settles_on_the_newest_revision_with_a_handshake(cli, over_stdio, mode):
    """A client that first asks for the stateless protocol falls back by itself."""
    assert cli
    with over_stdio(mode=mode) as talk:
        assert talk.client.protocol_version == "2025-11-25"
        assert talk.list_tools().tools


@rows("line", [
        b"nonsense\n", b"{\n", b'{"jsonrpc": "2.0"\xff}\n', b"[" * 100_000 + b"\n", b'{"jsonrpc":"2.0","id":NaN}\n',
        b"\xef\xbb\xbf\n",
    ])  # fmt: skip
def test_what_is_no_json_is_said_to_be_none(raw, line):
    """The error has no id, and the next request is answered."""
    raw.say(line)
    answer = raw.hear()
    assert (code(answer), answer["id"]) == (-32700, None)
    assert raw.ask("ping", id=7) == {"jsonrpc": "2.0", "id": 7, "result": {}}


@rows("message", [
        5, "ping", None, [], {}, {"jsonrpc": "1.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": None, "method": "ping"}, {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
    ])  # fmt: skip
def test_what_is_no_request_is_said_to_be_none(raw, message):
    """Shapes that the protocol does not know are refused, and the next request is answered."""
    raw.say(message)
    assert code(raw.hear()) == -32600
    assert raw.ask("ping", id=7)["result"] == {}


@rows("method", ["server/discover", "logging/setLevel", "completion/complete", "tools/drop", ""])
def test_an_unknown_method_is_refused_by_name(raw, method):
    """The client hears which method it was."""
    answer = raw.ask(method)
    assert code(answer) == -32601
    assert repr(method) in answer["error"]["message"]


def test_a_huge_line_is_dropped_and_the_next_is_heard(raw):
    """A message beyond the limit costs its sender an error, and nobody anything else."""
    raw.say(b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * (LINE_BYTES + 100_000) + b'"}\n')
    answer = raw.hear()
    assert code(answer) == -32600
    assert str(LINE_BYTES) in answer["error"]["message"]
    assert raw.ask("ping", id=7)["id"] == 7


def test_a_long_text_is_refused_by_memory_and_not_by_the_loop(raw):
    """A record that is too long is a mistake that the model hears of."""
    content = "word " * 200_000
    result = raw.ask("tools/call", name="remember", arguments={"content": content, "category": "decisions"})["result"]
    assert result["isError"]
    assert "16384" in result["content"][0]["text"]


def test_notifications_are_never_answered(raw):
    """Neither known nor unknown nor malformed ones: the next thing that is said is the answer to the next request."""
    for method in ("notifications/initialized", "notifications/made-up", "tools/list"):
        raw.say({"jsonrpc": "2.0", "method": method})
    raw.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}})
    raw.say({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    raw.say({"jsonrpc": "2.0", "id": 5, "result": {}})
    assert raw.ask("ping", id=7)["id"] == 7


def test_a_request_that_is_called_off_in_time_is_not_done(raw, cli):
    """A write that was cancelled before its turn is neither made nor answered."""
    fact = {"content": "This was called off", "category": "decisions"}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "remember", "arguments": fact}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}},
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
    ]
    raw.say(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    assert [raw.hear()["id"], raw.hear()["id"]] == [1, 3]
    assert cli.ok("record", "list", "--json").json["records"] == []


def test_a_batch_is_answered_as_one(raw):
    """What wants an answer in it gets one, in order; the rest is silent."""
    ask = [{"jsonrpc": "2.0", "id": one, "method": "ping"} for one in (1, "two")]
    raw.say([ask[0], {"jsonrpc": "2.0", "method": "notifications/initialized"}, 5, ask[1]])
    assert [answer["id"] for answer in raw.hear()] == [1, None, "two"]


def test_half_a_character_is_neither_kept_nor_fatal(raw):
    """A lone surrogate comes back as JSON writes it."""
    raw.say(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n')
    assert raw.hear()["id"] == "\ud800"
    asked = (
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"recall","arguments":{"query":"\\ud800"}}}\n'
    )
    raw.say(asked)
    assert raw.hear()["result"]["isError"] is False


def test_a_cursor_that_nobody_gave_out_is_refused(raw):
    """Every list is one page."""
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        assert code(raw.ask(method, cursor="x")) == -32602


def test_requests_are_answered_before_the_input_ends_and_after(raw):
    """What was asked before the end of the input is answered, then the server ends well."""
    asked = [json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}) for number in range(50)]
    raw.say("\n".join([*asked, ""]).encode())
    rest, exit_code = raw.end()
    assert [answer["id"] for answer in rest] == list(range(50))
    assert exit_code == 0


def test_a_last_line_without_an_end_is_heard(raw):
    """A request that ends with the input is one."""
    raw.say(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    rest, exit_code = raw.end()
    assert [answer["id"] for answer in rest] == [1]
    assert exit_code == 0


def test_a_broken_setting_is_told_call_by_call(raw, cli):
    """A server outlives a mistake in a settings file, and says what it is."""
    config = cli.home / "config.yaml"
    config.write_text("colour: blue\n", encoding="utf-8")
    result = raw.ask("tools/call", name="list", arguments={})["result"]
    assert result["isError"]
    assert "colour" in result["content"][0]["text"]
    config.unlink()
    assert not raw.ask("tools/call", name="list", arguments={})["result"]["isError"]


def test_nothing_is_held_between_calls(raw, cli):
    """After an answer the server has no file of the store open, so nobody waits for it."""
    assert not raw.ask("tools/call", name="list", arguments={})["result"]["isError"]
    folder = f"/proc/{raw.process.pid}/fd"
    held = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
    assert [path for path in held if str(cli.home) in path] == []
