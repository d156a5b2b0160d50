"""Agents of pipelines at work on PydanticAI: what the model is given, what it is told, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from commonplace.ci.dialect import load
from commonplace.ci.registry import open_registry
from commonplace.ci.runner import Run, TaskFailed, call_line, pipeline
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput, NotFound, ProviderError
from loopback import LoopbackServer, calls, fails, raw, says
from stands import agree, rows

ON = {"enabled": True}
LESSON = "always run go fmt before building"


@pytest.fixture
def store(tmp_path):
    """The store's file."""
    return str(tmp_path / "memory.db")


@pytest.fixture
def watched():
    """The calls of tools, as they are seen by whoever looks on."""
    return []


@pytest.fixture
def run(store, watched):
    """Run one agent of the pipeline ``release``, with the model at an address if one is given."""

    def run(model="openai:gpt-5", *, address=None, env=None, memory=ON, **options):
        key = {"OPENAI_API_KEY": "sk-test"} | ({"OPENAI_BASE_URL": address} if address else {})
        with pipeline("release", store=store, env=key if env is None else env, watch=watched.append) as agent:
            given = {"name": "reviewer", "prompt": "look", "model": model, "memory": memory}
            return asyncio.run(agent.run(**given | options))

    return run


def scripted(*turns):
    """A model that makes these calls, each a list of (tool, arguments), and then repeats what it was answered."""
    left = list(turns)

    def answer(messages, _info):
        if left:
            return ModelResponse(parts=[ToolCallPart(tool, arguments) for tool, arguments in left.pop(0)])
        told = [part.content for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(json.dumps(told))])

    return FunctionModel(answer)


def test_an_agent_saves_and_recalls_with_any_model(run):
    """The tools are PydanticAI's like any others; what they return is what the functions return."""
    saved = run(scripted([("save_memory", {"content": LESSON, "tags": ["go"]})]))
    assert json.loads(saved.output) == [{"saved": True, "deduped": False}]
    [[memory]] = [answer["memories"] for answer in json.loads(run(scripted([("recall_memory", {})])).output)]
    assert (memory["content"], memory["tags"], memory["recall_count"]) == (LESSON, ["go"], 1)


def test_the_model_is_sent_our_schemas(run):
    """What reaches a service over the wire has the names, the guidance and the schemas of the tools."""
    with LoopbackServer(answers=["done"]) as server:
        assert run(address=server.base_url).output == "done"
    recall, save = (tool["function"] for tool in server.chats[0].body["tools"])
    assert (recall["name"], save["name"]) == ("recall_memory", "save_memory")
    assert "run-specific state" in save["description"]
    assert save["parameters"]["required"] == ["content"]
    assert server.chats[0].prompt == "look"


@pytest.mark.parametrize("memory", [None, {}, {"enabled": False}])
def test_an_agent_without_memory_is_sent_no_tools(run, memory):
    """Strictly opt-in, on the wire too."""
    with LoopbackServer(answers=["done"]) as server:
        run(address=server.base_url, memory=memory)
    assert "tools" not in server.chats[0].body


def test_a_mistake_is_told_to_the_model_which_goes_on(run, watched):
    """A save that is refused ends no run: the model reads why, and can do better."""
    turns = (
        [("save_memory", {"content": "x" * 5000})],
        [("save_memory", {"content": ""})],
        [("save_memory", {"content": "x"})],
    )
    ran = run(scripted(*turns))
    assert json.loads(ran.output) == [
        {"error": "content exceeds max 4096 bytes"},
        {"error": "content is required"},
        {"saved": True, "deduped": False},
    ]
    assert [call_line(call) for call in watched] == [
        "reviewer called save_memory: content exceeds max 4096 bytes",
        "reviewer called save_memory: content is required",
        "reviewer called save_memory: saved",
    ]
    assert ran.calls == tuple(watched)


@pytest.mark.parametrize("arguments", ["{nonsense", "[1]", "null", "7"])
def test_a_model_that_sends_no_json_is_told_or_ends_the_run_in_one_sentence(run, arguments):
    """Arguments that nobody can read never reach the memory."""
    with LoopbackServer(answers=[calls(("save_memory", arguments)), says("sorry")]) as server:
        ran = run(address=server.base_url)
    assert ran.output == "sorry"
    assert [call.tool for call in ran.calls if "error" not in call.answer] == []


def test_a_call_shows_counts_and_never_contents(run, watched):
    """A quiet line for each call; a secret that was taken out is said there."""
    run(scripted([("save_memory", {"content": "the password is hunter22 for the wiki"})], [("recall_memory", {})]))
    first, second = map(call_line, watched)
    assert first.startswith("reviewer called save_memory: saved; a secret (password) was removed; [secret:password:")
    assert second == "reviewer called recall_memory: 1 memory"
    assert "hunter22" not in first + second


@pytest.mark.parametrize(
    ("env", "model", "said"),
    [
        ({}, "openai:gpt-5", "needs a key: set the environment variable OPENAI_API_KEY"),
        ({}, "anthropic/claude-opus-4-7", "'anthropic:claude-opus-4-7' needs a key: set the environment variable ANTH"),
        ({"OPENAI_API_KEY": "x"}, "gpt-5", "there is no model 'gpt-5'"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_asked_is_one_sentence(run, env, model, said):
    """No key, no such provider: said before anything is sent."""
    with pytest.raises((ProviderError, InvalidInput), match=said):
        run(model, env=env)


def test_an_address_of_its_own_needs_no_key_of_openai(run):
    """``base_url`` and ``api_key_env`` lead to any compatible service, whose model names may hold a slash."""
    with LoopbackServer(answers=["done", "done"]) as server:
        run("qwen/qwen3", env={}, base_url=server.base_url)
        run("qwen/qwen3", env={"MY_KEY": "k-1"}, base_url=server.base_url, api_key_env="MY_KEY")
    assert [chat.body["model"] for chat in server.chats] == ["qwen/qwen3"] * 2
    assert server.chats[1].headers["authorization"] == "Bearer k-1"


def test_a_refused_key_is_told_without_the_key(run):
    """What the service says may repeat it; we do not."""
    with LoopbackServer(answers=[fails(401, "bad key sk-test")]) as server, pytest.raises(ProviderError) as raised:
        run(address=server.base_url)
    assert str(raised.value) == (
        "agent 'reviewer': the model 'openai:gpt-5' refused the key: check the environment variable OPENAI_API_KEY"
    )


def test_what_was_saved_before_a_failure_stays(run):
    """The model breaks off after its first save; the lesson is there in the next run."""
    broken = [calls(("save_memory", {"content": LESSON})), fails(400, "too long")]
    with (
        LoopbackServer(answers=broken) as server,
        pytest.raises(ProviderError, match=r"agent 'reviewer': .* answered 400"),
    ):
        run(address=server.base_url)
    assert LESSON in run(scripted([("recall_memory", {"query": "go fmt"})])).output


def test_half_a_character_is_told_as_what_it_is(run):
    """What an agent says can be written to any file."""
    with LoopbackServer(answers=[says("half \ud83d")]) as server:
        assert run(address=server.base_url).output == "half �"


def test_an_answer_that_was_cut_off_is_told_apart(run):
    """Whoever reads half an answer should know."""
    with LoopbackServer(answers=[says("half a", finish="length"), "whole"]) as server:
        ran = [run(address=server.base_url) for _ in range(2)]
    assert [(one.output, one.truncated) for one in ran] == [("half a", True), ("whole", False)]


NO_CHOICE = '{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'


@rows("odd", [raw("<html>"), raw(""), raw("null"), raw('{"choices": []}'), raw(NO_CHOICE), calls(("nope", {}))])
def test_a_service_that_answers_nonsense_is_one_sentence(run, odd):
    """Whatever comes back, the run ends with one sort of error that names agent and model."""
    with (
        LoopbackServer(answers=lambda _request: odd) as server,
        pytest.raises(ProviderError, match=r"^agent 'reviewer': the model 'openai:gpt-5' failed: "),
    ):
        run(address=server.base_url)


@pytest.mark.slow
def test_a_service_that_is_not_there_is_named_with_its_address(run):
    """Nobody listens: one sentence."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{reserved.getsockname()[1]}/v1"
        with pytest.raises(ProviderError, match=f"agent 'reviewer': .* cannot be reached at {address}"):
            run(address=address)


def test_an_agent_that_never_stops_is_stopped(run):
    """PydanticAI's limit of requests holds, and is said."""
    endless = FunctionModel(lambda _messages, _info: ModelResponse(parts=[ToolCallPart("recall_memory", {})]))
    with pytest.raises(ProviderError, match=r"agent 'reviewer': .* failed: .*limit"):
        run(endless)


# Files


@pytest.fixture
def running(tmp_path, store):
    """Open a run of a file that says this."""
    entered = []

    def running(text, file="release.yml"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
        entered.append(open_registry(store, env={"COMMONPLACE_HOME": str(tmp_path / "data")}))
        return Run(load(str(tmp_path / file)), entered[-1].__enter__(), env={"PATH": "/usr/bin:/bin"})

    yield running
    for one in entered:
        one.__exit__(None, None, None)


TASK = "- task: unit\n  config: {run: {path: %s, args: %s}, params: {WORD: hello}}\n"


def test_a_task_is_refused_unless_it_is_allowed(running):
    """The whole run is refused, before its first step, and the message says how to allow it."""
    run, seen = running("- {agent: a, prompt: p, model: test}\n" + TASK % ("/bin/true", "[]")), []
    with pytest.raises(
        Forbidden, match="task 'unit' of job 'release' would run '/bin/true' on this machine; --allow-tasks"
    ):
        asyncio.run(run.run(on_start=lambda _job, step: seen.append(step.name)))
    assert seen == []
    results = asyncio.run(run.run(allow_tasks=True, on_start=lambda _job, step: seen.append(step.name)))
    assert [result.step.name for result in results] == seen == ["a", "unit"]


@pytest.mark.parametrize("program", ["exit 0", 'test "$WORD" = hello'])
def test_a_task_runs_its_command(running, program):
    """``params`` are in its environment."""
    run = running(TASK % ("sh", json.dumps(["-c", program])))
    assert [result.exit_code for result in asyncio.run(run.run(allow_tasks=True))] == [0]


def test_a_task_that_fails_ends_the_run(running):
    """Its exit code is in the sentence, and the steps after it do not run."""
    run, ended = running(TASK % ("sh", '["-c", "exit 3"]') + "- {agent: a, prompt: p, model: test}\n"), []
    with pytest.raises(TaskFailed, match="task 'unit' of job 'release' failed with exit code 3"):
        asyncio.run(run.run(allow_tasks=True, on_end=ended.append))
    assert ended == []


def test_a_task_that_cannot_be_started_is_named(running):
    """A program that is not there is a mistake in the file."""
    run = running(TASK % ("/nowhere/at/all", "[]"))
    with pytest.raises(InvalidInput, match="task 'unit' cannot run '/nowhere/at/all': No such file"):
        asyncio.run(run.run(allow_tasks=True))


def test_two_files_of_one_name_are_not_one_pipeline(running, tmp_path):
    """A pipeline that is called after its file keeps to that file; whoever wants to share says the name."""
    plan = "[{agent: a, prompt: p, model: test}]"
    named = f"name: release\njobs: [{{name: j, plan: {plan}}}]"
    running(f"jobs: [{{name: j, plan: {plan}}}]")
    running(f"jobs: [{{name: j, plan: {plan}}}]")
    belongs = f"the pipeline 'release' belongs to {tmp_path}/release.yml; say `name: release` in a file of a folder"
    with pytest.raises(ConfigError, match=belongs):
        running(f"jobs: [{{name: j, plan: {plan}}}]", "other/release.yml")
    with pytest.raises(ConfigError, match="in a file of a folder that you trust"):
        running(named, "other/release.yml")
    agree(tmp_path / "other", tmp_path / "data")
    running(named, "other/release.yml")


# The ledger


@rows("turn", range(5))
def test_two_files_of_one_name_are_told_apart_though_they_run_for_the_first_time_at_once(store, turn):
    """One of them has the name, and the other one is refused: they never share a memory by chance."""
    meeting, came = threading.Barrier(4), []

    def register(number):
        with open_registry(store, env={}) as known:
            meeting.wait()
            try:
                came.append(known.register(f"release-{turn}", file=f"/{number}/release.yml").value["file"])
            except ConfigError as error:
                came.append(str(error).partition("belongs to ")[2].partition(";")[0])

    threads = [threading.Thread(target=register, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(came) == 4
    assert len(set(came)) == 1


def test_a_pipeline_is_known_from_its_first_run(run, store):
    """Listed by name with what each agent has learned; unknown ones are not found."""
    run("test", memory=None)
    with open_registry(store, env={}) as known:
        assert [(one.name, dict(one.agents)) for one in known.all()] == [("release", {})]
        with pytest.raises(NotFound, match="there is no pipeline 'nightly'"):
            known.get("nightly")
        with pytest.raises(NotFound, match="there is no pipeline 'nightly'"):
            known.delete("nightly")


def test_looking_counts_as_no_recall(run, store):
    """What people look at is not what agents use."""
    run(scripted([("save_memory", {"content": LESSON})]))
    with open_registry(store, env={}) as known:
        for _ in range(2):
            [record] = known.memories("release", "reviewer", limit=5)
            assert record.usage.recalls == 0


def test_the_shared_store_is_in_the_data_folder(tmp_path):
    """Without a path it is the database of all of Commonplace."""
    with pipeline("release", env={"COMMONPLACE_HOME": str(tmp_path / "data")}):
        pass
    assert (tmp_path / "data" / "commonplace.db").exists()


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("commonplace.ci.command", "{'pydantic_ai', 'openai', 'pydantic', 'asyncio'}"),
        ("commonplace.ci.runner", "{'pydantic_ai', 'openai', 'pydantic'}"),
    ],
)
def test_looking_loads_no_framework(module, banned):
    """Commands that run no agent do not pay for PydanticAI, nor does an import."""
    program = f"import sys, {module}; sys.exit(str({banned} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
