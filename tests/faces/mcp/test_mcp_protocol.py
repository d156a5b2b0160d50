"""The protocol over a surface, and arguments against their schema: in this process, with whatever can be sent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Annotated, Any, Literal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.agents import VerbTool
from commonplace.agents.surface import Surface
from commonplace.mcp.protocol import METHODS, ProtocolError, error_text, handle
from commonplace.mcp.stdio import Server
from commonplace.model.errors import ConfigError, Conflict, Forbidden, InvalidInput, NotFound, StoreBusy
from commonplace.verbs import verb
from commonplace.wire import Range
from stands import rows

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={"jsonrpc": st.just("2.0") | ANY, "id": st.integers() | ANY, "params": ANY, "error": ANY,
              "method": st.sampled_from([*METHODS, "notifications/cancelled", "x"]) | ANY},
)  # fmt: skip


@verb
def do(
    caller: Callable[[Any], str], text: str, *, one_of: Literal["a", "b"] = "a", flag: bool = False, any: Any = None,
    number: Annotated[int, Range(1, 5)] = 1, least: Annotated[int, Range(1)] = 1, texts: Sequence[str] = (),
) -> str:  # fmt: skip
    """Do it."""
    assert text or one_of or flag or number or least or texts
    return caller(any)


def surface(call=lambda _: "done"):
    return Surface(instructions="", tools=lambda: (VerbTool(do, lambda: nullcontext(call)),))


def called(tools, **arguments):
    return handle(tools, "tools/call", {"name": "do", "arguments": arguments})


@given(ANY)
def test_any_arguments_are_taken_or_refused_with_a_sentence(sent):
    """Whatever a model sends, it is checked, never an accident."""
    with suppress(InvalidInput):
        assert isinstance(do.check(sent)["text"], str)


@rows(
    "sent, said",
    [
        ([], "the arguments of do should be an object, not []"),
        ({"text": "x" * 9, "what": 1}, "do takes no 'what'; it takes text, one_of"),
        ({"text": ["y" * 99]}, "text must be a string, not ['yyyy"),
        ({"text": "x", "flag": "yes"}, "flag must be true or false, not 'yes'"),
        ({"text": "x", "number": 6}, "number must be a whole number from 1 to 5, not 6"),
        ({"text": "x", "number": 1.5}, "number must be a whole number from 1 to 5, not 1.5"),
        ({"text": "x", "least": 0}, "least must be a whole number of at least 1, not 0"),
        ({"text": "x", "one_of": "c"}, "one_of must be one of a, b, not 'c'"),
        ({"text": None}, "text is required"),
    ],
)
def test_a_refusal_says_what_would_be_right(sent, said):
    """The sentence names the argument, what it must be, and what it was."""
    with pytest.raises(InvalidInput) as refused:
        do.check(sent)
    assert str(refused.value).startswith(said)


def test_whatever_json_can_say_is_taken_where_a_schema_says_nothing():
    """A value of any form goes through as it is."""
    assert do.check({"text": "x", "any": {"deep": [1, None]}, "flag": None}) == {
        "text": "x",
        "any": {"deep": [1, None]},
    }


@given(MESSAGES | ANY)
def test_any_message_is_answered_in_the_form_of_the_protocol(message):
    """Whatever comes over the wire, what goes back is nothing, or one answer with a result or an error."""
    reads, writes = os.pipe()
    try:
        server = Server(surface(), source=reads, sink=writes)
        answer = server._answer(message)
        for one in answer if isinstance(answer, list) else [answer] if answer else []:
            assert one["jsonrpc"] == "2.0"
            assert ("result" in one) is not ("error" in one)
            assert json.dumps(one)
    finally:
        os.close(reads)
        os.close(writes)


def test_a_fault_of_our_own_is_one_failed_call():
    """A bug in a tool is told without a traceback, and the next call is answered."""

    def broken(given):
        return f"done {len(given)}"

    result = called(surface(broken), text="x", any=5)
    assert result["isError"]
    assert result["content"][0]["text"] == (
        "Not done: do failed by a fault of its own: object of type 'int' has no len()."
    )
    assert not called(surface(broken), text="x", any=[5])["isError"]


def test_a_full_disk_is_a_sentence():
    """What the system says is passed on."""

    def full(_given):
        raise OSError(28, "No space left on device")

    assert "the disk failed: No space left on device" in called(surface(full), text="x")["content"][0]["text"]


@rows(
    "error, advice",
    [
        (Conflict("too late", current=3), "it is at version 3 now: read it again with get"),
        (StoreBusy("busy"), "try again in a moment"),
        (NotFound("gone"), "recall shows what there is"),
        (Forbidden("off"), "only the user can change that"),
        (ConfigError("bad", file="config.yaml"), "only the user can change that"),
        (InvalidInput("blank."), "blank."),
        (OSError(13, "Permission denied", "/x/db"), "the disk failed: Permission denied ('/x/db')."),
        (FileNotFoundError(2, "No such file"), "the folder that this server was started in is gone; start the server"),
    ],
)
def test_an_error_says_what_to_do(error, advice):
    """Each sort of failure has its advice."""
    assert advice in error_text(error)


def test_a_surface_without_resources_and_prompts_says_so():
    """A bound agent's server refuses what it does not offer."""
    able = handle(surface(), "initialize", {"protocolVersion": "2025-06-18"})["capabilities"]
    assert able.keys() == {"tools"}
    for method in ("resources/list", "resources/read"):
        with pytest.raises(ProtocolError, match="no resources"):
            handle(surface(), method, {"uri": "memory://root"})


def test_a_session_that_was_indexed_is_recalled_as_what_it_is(talk, cli):
    """A turn is found beside records, named by its session."""
    (cli.folder / "s9.jsonl").write_text('{"role": "user", "content": "The kiosk runs Debian"}\n', encoding="utf-8")
    cli.ok("index", cli.folder / "s9.jsonl")
    [hit] = talk.done("recall", query="what does the kiosk run?")["hits"]
    assert (hit["chunk"]["kind"], hit["uri"].partition("#")[0]) == ("session", "session:s9")


def test_a_client_that_loses_patience_is_served_again(talk, portal):
    """A call that its client has given up does not stand in the way of the next one."""

    async def given_up():
        with anyio.move_on_after(0.001) as scope:
            await talk.client.call_tool("list", {})
        return scope.cancelled_caught

    portal.call(given_up)
    assert talk.done("list")["records"] == []


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_over_http_both_generations_are_spoken(cli, over_http, mode, revision):
    """A client with and one without a handshake get the same tools."""
    assert cli
    with over_http(mode=mode) as talk:
        assert talk.client.protocol_version == revision
        assert len(talk.list_tools().tools) == 10
        assert talk.done("list")["records"] == []


def test_many_calls_of_one_client_at_once_are_all_made(talk, portal):
    """Whether they are answered in turn or side by side, each is answered and nothing is lost."""
    answers = []

    async def keep(number):
        fact = {"content": f"Fact number {number} of many", "category": "decisions"}
        answers.append(await talk.client.call_tool("remember", fact))

    async def keep_all():
        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(keep, number)

    portal.call(keep_all)
    assert not any(answer.is_error for answer in answers)
    assert len(talk.done("list")["records"]) == 12


def test_a_host_that_starts_elsewhere_names_the_folder(cli, over_stdio):
    """With --directory it is the project there, whatever folder the server runs in."""
    project = cli.folder / "work"
    cli.add("Only this project knows of the kiosk")
    cli.at(cli.folder / "elsewhere")
    with over_stdio() as talk:
        assert talk.done("recall", query="kiosk")["hits"] == []
    with over_stdio("--directory", project) as talk:
        assert talk.done("recall", query="kiosk")["hits"][0]["record"]["scope"].startswith("project:")
