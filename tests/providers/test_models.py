"""Language models, asked on a server of this machine: what is sent, what comes back, and what becomes of failures."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from commonplace.install import hint
from commonplace.model.errors import InvalidInput, ProviderError
from commonplace.model.ports import ModelAnswer
from commonplace.providers import event_loop as loop
from commonplace.providers.models import model_of
from loopback import LoopbackServer, calls, fails, hangs, raw, says
from stands import rows

SECRET = "sk-very-secret-456"


class Naps(list):
    """Instead of sleeping: how long one would have slept."""

    async def __call__(self, seconds):
        self.append(seconds)


@pytest.fixture
def naps():
    """No test waits for real."""
    return Naps()


def at(server, *, spec="some-model", **options):
    """A model behind an OpenAI-compatible endpoint."""
    return model_of(spec, base_url=server.base_url, api_key_env="KEY", env={"KEY": SECRET}, **options)


def failure(model):
    """The sentence with which a question fails."""
    with pytest.raises(ProviderError) as caught:
        model.ask("be brief", "hello", max_tokens=100)
    return str(caught.value)


def test_a_question_and_its_answer():
    """The instructions, the prompt and the limit are sent, and the answer says who gave it and what it cost."""
    with LoopbackServer(answers=[says("Paris", tokens=(21, 3))]) as server:
        answer = at(server).ask("be brief", "capital of France?", max_tokens=100)
    assert answer == ModelAnswer(text="Paris", model="some-model", tokens_in=21, tokens_out=3)
    [request] = server.chats
    assert (request.path, request.system, request.prompt) == ("/v1/chat/completions", "be brief", "capital of France?")
    assert (request.body["model"], request.body["max_tokens"], request.body["stream"]) == ("some-model", 100, False)
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert "tools" not in request.body


def test_no_instructions_are_no_message():
    """An empty system text is left out."""
    with LoopbackServer(answers=["yes"]) as server:
        at(server).ask("", "hello", max_tokens=10)
    assert [message["role"] for message in server.chats[0].body["messages"]] == ["user"]


PROVIDERS = [
    ("openai:gpt-4o-mini", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "{base}"}, "/v1/chat/completions"),
    ("anthropic:claude-haiku-4-5", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "{root}"}, "/v1/messages"),
    ("google:gemini-2.0-flash", {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "{root}"}, ":generateContent"),
    ("ollama:llama3.2", {"OLLAMA_HOST": "{root}"}, "/v1/chat/completions"),
]


@pytest.mark.parametrize(("spec", "env", "path"), PROVIDERS, ids=[case[0] for case in PROVIDERS])
def test_every_provider_answers_in_its_own_protocol(spec, env, path):
    """At the address that its own variable names, with its own key."""
    with LoopbackServer(answers=["Rome"]) as server:
        env = {name: value.format(base=server.base_url, root=server.root_url) for name, value in env.items()}
        model = model_of(spec, env=env)
        answer = model.ask("be brief", "capital of Italy?", max_tokens=100)
    assert (model.name, answer.text, answer.tokens_in, answer.tokens_out) == (spec, "Rome", 11, 7)
    [request] = server.requests
    assert request.path.endswith(path)
    assert (request.system, request.prompt) == ("be brief", "capital of Italy?")


def sent(spec, env, effort):
    """What a provider is sent for a question at an effort."""
    with LoopbackServer(answers=["yes"]) as server:
        env = {name: value.format(base=server.base_url, root=server.root_url) for name, value in env.items()}
        model_of(spec, env=env).ask("", "hello", max_tokens=100, effort=effort)
        return server.chats[0].body


def test_a_model_that_thinks_is_told_how_long_and_gets_room_for_it():
    """Thoughts count as output, so they have tokens of their own beside those of the answer."""
    _, env, _ = PROVIDERS[0]
    low, medium = sent("openai:gpt-5-mini", env, "low"), sent("openai:gpt-5-mini", env, "medium")
    assert (low["reasoning_effort"], low["max_completion_tokens"]) == ("low", 100 + 4_096)
    assert (medium["reasoning_effort"], medium["max_completion_tokens"]) == ("medium", 100 + 12_288)


def test_a_model_that_does_not_think_is_not_told_to():
    """Others would refuse the field."""
    body = sent(*PROVIDERS[0][:2], "medium")
    assert "reasoning_effort" not in body
    assert body["max_completion_tokens"] == 100


def test_claude_thinks_only_at_medium_effort():
    """And its budget is below its limit, as Anthropic wants it."""
    spec, env, _ = PROVIDERS[1]
    low, medium = sent(spec, env, "low"), sent(spec, env, "medium")
    assert (low["max_tokens"], "thinking" in low) == (100, False)
    assert medium["thinking"]["budget_tokens"] < medium["max_tokens"]


@pytest.mark.parametrize("spec", ["anthropic:claude", "google:gemini", "llama3.2:8b", "org/model"])
def test_a_base_url_means_openais_protocol(spec):
    """For every provider, and for any model's name."""
    with LoopbackServer(answers=["yes"]) as server:
        model = at(server, spec=spec)
        assert model.ask("", "hello", max_tokens=10).text == "yes"
    known = spec.startswith(("anthropic", "google"))
    assert model.name == (spec if known else f"endpoint:{spec}")
    assert server.chats[0].path == "/v1/chat/completions"
    assert server.chats[0].body["model"] == (spec.partition(":")[2] if known else spec)


def test_another_services_key_goes_to_no_endpoint(monkeypatch):
    """Neither from the environment that was given nor from that of the process."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with LoopbackServer(answers=["yes", "yes"]) as server:
        model_of("some-model", base_url=server.base_url, env={"OPENAI_API_KEY": SECRET}).ask("", "hello", max_tokens=10)
        model_of("ollama:m", base_url=server.root_url, env={"OPENAI_API_KEY": SECRET}).ask("", "hello", max_tokens=10)
    assert all(SECRET not in json.dumps(request.headers) for request in server.requests)


def test_the_window_is_what_was_said_or_is_known():
    """And None where nobody knows."""
    env = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    assert model_of("anthropic:claude-haiku-4-5", env=env).window == 200_000
    assert model_of("anthropic:claude-haiku-4-5", window=5_000, env=env).window == 5_000
    assert model_of("some-model", base_url="http://127.0.0.1:1/v1", env={}).window is None


@pytest.mark.parametrize(
    ("spec", "variable"),
    [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY"), ("google:m", "GOOGLE_API_KEY")],
)
def test_a_missing_key_is_one_sentence(spec, variable):
    """It says what to set, before anything else is done."""
    with pytest.raises(
        ProviderError, match=rf"^the model '{spec}' needs a key: set the environment variable {variable}$"
    ):
        model_of(spec, env={})
    with pytest.raises(ProviderError, match=r"set the environment variable MINE$"):
        model_of(spec, api_key_env="MINE", env={variable: "k"})


@rows("spec", ["", "gpt-5", "openai", "openai:", "nope:model"])
def test_an_unknown_model_is_refused_by_name(spec):
    """The sentence lists what there is."""
    with pytest.raises(InvalidInput, match=rf"there is no model '{spec}'; there are: openai:MODEL, anthropic:MODEL"):
        model_of(spec, env={})


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_busy_provider_is_asked_again(naps, status):
    """A moment later it answers; every wait is about twice the one before."""
    with LoopbackServer(answers=[fails(status), fails(status), "at last"]) as server:
        assert at(server, sleep=naps).ask("", "hello", max_tokens=10).text == "at last"
    assert len(server.chats) == 3
    assert 0.25 <= naps[0] <= 0.5 <= naps[1] <= 1


def test_what_the_provider_says_about_waiting_is_kept_to(naps):
    """Unless it asks for too much, which is given up and said."""
    with LoopbackServer(answers=[fails(429, retry_after=9), "at last", fails(429, "slow", retry_after=900)]) as server:
        model = at(server, sleep=naps)
        assert model.ask("", "hello", max_tokens=10).text == "at last"
        assert failure(model) == "the model 'endpoint:some-model' answered 429: slow, and asks to wait 900 s"
    assert len(naps) == 1
    assert 9 <= naps[0] <= 9.5


def test_tries_come_to_an_end(naps):
    """Four in all; the libraries' own tries are turned off."""
    with LoopbackServer(answers=[fails(503, "overloaded")] * 20) as server:
        assert failure(at(server, sleep=naps)) == (
            "the model 'endpoint:some-model' answered 503 after 4 tries: overloaded"
        )
        assert (len(server.chats), len(naps)) == (4, 3)


@pytest.mark.parametrize(("spec", "env", "path"), PROVIDERS[1:3], ids=[case[0] for case in PROVIDERS[1:3]])
def test_other_protocols_are_tried_as_often(naps, spec, env, path):
    """Each library's own retries are off, whichever it is."""
    with LoopbackServer(answers=[fails(503), fails(500), "at last"]) as server:
        env = {name: value.format(base=server.base_url, root=server.root_url) for name, value in env.items()}
        assert model_of(spec, env=env, sleep=naps).ask("", "hello", max_tokens=10).text == "at last"
    assert [request.path.endswith(path) for request in server.chats] == [True] * 3
    assert len(naps) == 2


def test_an_answer_that_breaks_off_is_asked_for_again(naps):
    """A connection that ends in the middle is as good as none."""
    with LoopbackServer(answers=[says("half", cut=True), "whole"]) as server:
        assert at(server, sleep=naps).ask("", "hello", max_tokens=10).text == "whole"


def test_a_server_that_is_not_there_is_tried_and_named(naps):
    """The sentence has the address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        model = model_of("m", base_url=address, env={}, sleep=naps)
        assert failure(model).startswith(f"the model 'endpoint:m' cannot be reached at {address} after 4 tries")
    assert len(naps) == 3


def test_a_server_that_never_answers_is_given_up_after_the_timeout():
    """One limit for all tries, and the connection is not kept."""
    with LoopbackServer(answers=[hangs()] * 9) as server:
        began = time.monotonic()
        assert failure(at(server, timeout=0.4)) == "the model 'endpoint:some-model' did not answer within 0.4 s"
        assert time.monotonic() - began < 5
        assert len(server.chats) == 1


def test_the_limit_holds_for_tries_and_waits_together():
    """A provider that is busy again and again does not get the limit each time."""
    with LoopbackServer(answers=lambda _: fails(503, delay_s=0.15)) as server:
        began = time.monotonic()
        assert "some-model" in failure(at(server, timeout=0.5))
        assert time.monotonic() - began < 3


def test_an_empty_answer_is_an_empty_answer():
    """What it means is for the one who asked."""
    with LoopbackServer(answers=["", says(None)]) as server:
        model = at(server)
        assert [model.ask("", "hello", max_tokens=10).text for _ in range(2)] == ["", ""]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (says(None, refusal="I would rather not."), "refused to answer: I would rather not."),
        (says(None, finish="content_filter"), "did not answer: its provider filtered the content"),
        (says(None, finish="length"), "used up 100 tokens before it answered"),
    ],
)
def test_an_answer_that_was_kept_back_is_a_sentence(answer, sentence):
    """A refusal, a filter and a limit are told apart, and none is asked again."""
    with LoopbackServer(answers=[answer]) as server:
        assert failure(at(server)) == f"the model 'endpoint:some-model' {sentence}"
        assert len(server.chats) == 1


def test_an_answer_that_was_cut_off_is_what_there_is():
    """Half an answer may be of use to the one who asked."""
    with LoopbackServer(answers=[says('{"facts": [', finish="length")]) as server:
        assert at(server).ask("", "hello", max_tokens=10).text == '{"facts": ['


@rows(
    "answer",
    [
        raw('{"id": "x", "choices": [{"mess'),
        raw(""),
        raw("{}"),
        raw("null"),
        raw("[1]"),
        raw('{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'),
        raw("<html>Not here</html>", headers=(("Content-Type", "text/html"),)),
        raw(b"\xff\xfe\x00"),
    ],
)
def test_garbage_is_a_provider_error(answer):
    """Half a JSON, nothing, another page: one sentence with the model's name, and no other sort of error."""
    with LoopbackServer(answers=[answer]) as server:
        assert failure(at(server)).startswith("the model 'endpoint:some-model' failed: ")


def test_a_call_of_tools_that_nobody_offered_is_an_empty_answer():
    """Only words count."""
    with LoopbackServer(answers=[calls(("delete", {"everything": True}))]) as server:
        assert at(server).ask("", "hello", max_tokens=10).text == ""


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (fails(401, f"{SECRET} is wrong"), "refused the key: check the environment variable KEY"),
        (fails(403, f"{SECRET} is wrong"), "refused the key: check the environment variable KEY"),
        (fails(402, "pay"), "has no quota left for this account"),
        (fails(404, "no such model"), "answered 404: no such model"),
        (fails(400, f"what is {SECRET}?"), "answered 400: what is ...?"),
    ],
)
def test_what_will_not_pass_is_not_asked_again(naps, reply, sentence):
    """It is a sentence that says what to do, and the key is in none of it."""
    with LoopbackServer(answers=[reply]) as server:
        with pytest.raises(ProviderError) as caught:
            at(server, sleep=naps).ask("", "hello", max_tokens=10)
        assert (str(caught.value), naps) == (f"the model 'endpoint:some-model' {sentence}", [])
        assert len(server.chats) == 1
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_the_cause_is_kept():
    """What went wrong underneath can be looked at."""
    with LoopbackServer(answers=[fails(404, "no such model")]) as server, pytest.raises(ProviderError) as caught:
        at(server).ask("", "hello", max_tokens=10)
    assert type(caught.value.__cause__).__name__ == "ModelNotFoundError"


def test_many_threads_ask_at_once():
    """Thirty-two are answered together, each with its own answer."""
    everybody = threading.Barrier(32)

    def echo(request):
        everybody.wait(10)  # nobody is answered before all have asked
        return f"you said {request.prompt}"

    with LoopbackServer(answers=echo) as server, ThreadPoolExecutor(32) as threads:
        model = at(server)
        texts = [f"word {number}" for number in range(32)]
        answers = list(threads.map(lambda text: model.ask("", text, max_tokens=10).text, texts))
    assert answers == [f"you said {text}" for text in texts]
    assert server.busiest == 32


def test_a_tool_may_ask_from_inside_a_running_loop():
    """From a worker thread of the loop, and even from the loop's own thread, where others refuse to wait."""
    with LoopbackServer(answers=["one", "two", "three"]) as server:
        model = at(server)

        async def main():
            first = await asyncio.to_thread(model.ask, "", "hello", max_tokens=10)
            return [first.text, model.ask("", "hello", max_tokens=10).text]

        assert asyncio.run(main()) == ["one", "two"]
        assert model.ask("", "hello", max_tokens=10).text == "three"


def test_all_coroutines_run_in_one_thread():
    """There is one loop, whoever asks, and from that loop itself nobody may wait for it."""

    async def here():
        return threading.current_thread().name, id(asyncio.get_running_loop())

    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: loop.run(here()), range(16)))
    assert [name for name, _ in found] == ["commonplace providers"]

    async def again():
        return loop.run(here())

    with pytest.raises(RuntimeError, match="await it"):
        loop.run(again())


def test_whoever_is_interrupted_leaves_nothing_running():
    """An error goes through to the one who asked, and the loop goes on."""

    async def wrong():
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        loop.run(wrong())

    async def right():
        return 7

    assert loop.run(right()) == 7


def run(program, *arguments, **env):
    """Run a program in a fresh interpreter, with the tests' names at hand, and return what it prints."""
    where = {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(
        command, env=os.environ | where | env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_process_that_asked_ends_quietly():
    """No thread, loop or connection is complained about, after a fork neither."""
    program = """import os, sys
from commonplace.providers.models import model_of
model = model_of("m", base_url=sys.argv[1], env={})
print(model.ask("", "hello", max_tokens=10).text, flush=True)
child = os.fork()
print(model.ask("", "hello", max_tokens=10).text, flush=True)
if child:
    os.waitpid(child, 0)"""
    with LoopbackServer(answers=["one", "two", "two"]) as server:
        assert run(program, server.base_url).split() == ["one", "two", "two"]


def test_a_missing_library_is_told_with_the_command():
    """When something is asked, not before."""
    program = """import sys
sys.modules["pydantic_ai"] = None  # as if it were not installed
from commonplace.providers.models import model_of
from commonplace.model.errors import ProviderError
model = model_of("openai:gpt-5-mini", env={"OPENAI_API_KEY": "k"})
for attempt in (lambda: model.ask("", "hello", max_tokens=10), lambda: model.window):
    try:
        attempt()
    except ProviderError as error:
        print(error)"""
    assert run(program) == f"{hint('language models need pydantic-ai', 'agent')}\n" * 2


def test_naming_a_model_imports_no_library():
    """Seconds of imports are for those who ask."""
    program = """import sys
from commonplace.providers.models import model_of
model_of("openai:gpt-5-mini", env={"OPENAI_API_KEY": "k"})
print(*{"pydantic_ai", "pydantic", "openai", "httpx2"} & set(sys.modules))"""
    assert run(program).split() == []


def test_an_agent_may_run_on_the_same_model():
    """Whoever needs tools and history gets pydantic-ai's own model, and the same sentences for its failures."""
    with LoopbackServer(answers=[fails(404, f"no model for {SECRET}")]) as server:
        model = at(server)
        from pydantic_ai import Agent  # noqa: PLC0415 - only this test is about agents

        async def at_work():
            async with model.to_pydantic_model() as spoken:
                await Agent(spoken).run("hello")

        with pytest.raises(RuntimeError) as caught:
            asyncio.run(at_work())
        told = model.failure(caught.value)
    assert (str(told), told.__cause__) == ("the model 'endpoint:some-model' answered 404: no model for ...", None)


def test_the_loopback_streams_when_it_is_asked_to():
    """Word by word, with tools and what it cost: other tests stand on it."""
    with LoopbackServer(answers=[calls(("look", {"at": "tea"}), text="let me see")]) as server:
        import openai  # noqa: PLC0415 - only this test speaks to it directly

        with openai.OpenAI(base_url=server.base_url, api_key="k") as client:
            chunks = list(
                client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "hi"}],
                    stream=True,
                    stream_options={"include_usage": True},
                )
            )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "let me see"
    [call] = [call for delta in deltas for call in delta.tool_calls or []]
    assert (call.function.name, call.function.arguments) == ("look", '{"at": "tea"}')
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (11, 7)
