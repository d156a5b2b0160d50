"""``commonplace run``: what it writes where, how it ends, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from loopback import LoopbackServer, calls, fails, raw, says
from stands import agree, rows

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL")


@pytest.fixture
def server():
    """A model that says what it is told to say."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def cli(outside, server):
    """The command beside a role whose model is at an address."""
    for key in KEYS:
        outside.monkeypatch.delenv(key, raising=False)
    (outside.folder / "work" / "role.yaml").write_text(
        f"name: assistant\nrole: You help.\nmodel: {{provider: local, name: m, base_url: '{server.base_url}'}}\n"
        "memory: {semantic: {max_memories: 1000}, embeddings: {provider: local}}\n"
    )
    agree(outside.folder / "work")
    return outside


def test_a_single_shot_writes_the_answer_and_saves_no_session(cli, server):
    """The answer alone is on standard output; the next run finds nothing to resume."""
    server.add("hello", "again")
    done = cli.ok("run", "role.yaml", "-p", "hi")
    assert (done.out, done.err) == ("hello\n", "")
    assert cli.ok("run", "role.yaml", "-p", "hi", "--resume").err == "No previous session found.\n"


def test_a_call_of_a_tool_is_one_quiet_line_beside_the_answer(cli, server):
    """It goes to standard error, and what was found is counted."""
    server.add(calls(("remember", {"content": "Tea"})), calls(("recall", {"query": "tea"})), "You like tea")
    done = cli.ok("run", "role.yaml", "--prompt", "I like tea")
    assert done.out == "You like tea\n"
    first, second = done.err.splitlines()
    assert first.startswith("· remember: Remembered (id=")
    assert second == "· recall: 1 memory"


def test_lines_from_a_pipe_are_a_conversation(cli, server):
    """Without a terminal there is no prompt in the output; the session can be resumed."""
    server.add("hello Ada", "fine", "Ada")
    done = cli.ok("run", "role.yaml", "-i", stdin=b"I am Ada\nhow are you?\n/quit\n")
    assert done.out == "hello Ada\nfine\n"
    resumed = cli.ok("run", "role.yaml", "-i", "--resume", stdin=b"who am I?\n")
    assert resumed.err == "Resumed session with 4 messages.\n"
    assert [message["content"] for message in server.chats[2].body["messages"]] == [
        "You help.", "I am Ada", "hello Ada", "how are you?", "fine", "who am I?",
    ]  # fmt: skip


def test_what_memory_has_for_a_resumed_conversation_is_said_and_sent(cli, server):
    """The sentence is true: the model gets what was recalled (defect 6)."""
    server.add(calls(("remember", {"content": "Ada likes green tea"})), "noted", "green tea")
    cli.ok("run", "role.yaml", stdin=b"I like green tea\n")
    done = cli.ok("run", "role.yaml", "--resume", stdin=b"What do I like?\n")
    assert done.err == "Resumed session with 4 messages.\nLoaded relevant memories from previous sessions.\n"
    assert "- [semantic] Ada likes green tea" in server.chats[2].system


def test_a_run_by_itself_ends_with_its_summary(cli, server):
    """Steps are quiet lines; the summary is an episode, which then becomes a fact."""
    server.add("working", calls(("finish_task", {"summary": "It is done."})), "fact: it is done [1]")
    done = cli.ok("run", "role.yaml", "-a", "-p", "Do it")
    assert done.out == "working\nIt is done.\n"
    assert done.err == "· step 1 of 10\n· step 2 of 10\nCreated 1 semantic memories from episodic data.\n"
    assert "It is done." in server.chats[2].prompt


def test_a_run_by_itself_that_is_stopped_needs_somebody(cli, server):
    """Why is said, and the exit code is not that of success."""
    server.add("working", "working")
    done = cli("run", "role.yaml", "-a", "-p", "Do it", "--max-iterations", "2")
    assert done.code == 1
    assert "commonplace: stopped after 2 steps without a call of finish_task" in done.err
    server.add("working")
    assert "its 18 tokens are used up" in cli("run", "role.yaml", "-a", "-p", "x", "--token-budget", "18").err


def test_without_a_file_an_agent_remembers_from_one_run_to_the_next(cli, server):
    """It is called ephemeral, uses the model of the key that is there, and resumes like any other."""
    cli.env(OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=server.base_url)
    server.add("hello", "again")
    cli.ok("run", stdin=b"hi\n")
    done = cli.ok("run", "--resume", stdin=b"hi again\n")
    assert "Resumed session with 2 messages." in done.err
    assert server.chats[1].body["model"] == "gpt-5-mini"
    assert (cli.home / "memory" / "ephemeral.db").exists()
    assert "remember" in str(server.chats[0].body["tools"])


def test_without_memory_nothing_is_offered_and_nothing_is_kept(cli, server):
    """Neither tools nor a store nor a session."""
    cli.env(OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=server.base_url)
    server.add("hello", "hello")
    cli.ok("run", "--no-memory", stdin=b"hi\n")
    cli.ok("run", "role.yaml", "--no-memory", "-p", "hi")
    assert not any("tools" in chat.body for chat in server.chats)
    assert not (cli.home / "memory").exists()


def test_another_model_than_the_roles_can_be_named(cli, server):
    """``--model`` holds for this run."""
    cli.env(OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=server.base_url)
    server.add("hello")
    cli.ok("run", "role.yaml", "--model", "openai:gpt-9", "-p", "hi")
    assert server.chats[0].body["model"] == "gpt-9"


def test_without_a_key_one_sentence_says_what_to_set(cli):
    """For a role it names the variable, without one every way there is; both say what works all the same."""
    bare = cli("run", "-p", "hi")
    assert (bare.code, bare.out) == (6, "")
    assert bare.err.startswith("commonplace: no model is named and no key is set: set OPENAI_API_KEY, ")
    named = cli("run", "role.yaml", "--model", "anthropic:claude", "-p", "hi")
    assert named.code == 6
    for done in (bare, named):
        assert "memory commands, such as `commonplace role list`, work without" in done.err
        assert len(done.err.splitlines()) <= 2
    assert "set the environment variable ANTHROPIC_API_KEY" in named.err


def test_a_key_beside_the_role_is_found(cli, server):
    """A ``.env`` in the role's folder holds for its agent."""
    text = (cli.folder / "work" / "role.yaml").read_text().replace("name: m,", "name: m, api_key_env: MY_KEY,")
    (cli.folder / "work" / "role.yaml").write_text(text)
    (cli.folder / "work" / ".env").write_text("MY_KEY=k-1\n")
    server.add("hello")
    cli.ok("run", "role.yaml", "-p", "hi")
    assert server.chats[0].headers["authorization"] == "Bearer k-1"


@rows(
    "arguments, complaint",
    [
        (["-a"], "--autonomous needs a task: say it with --prompt"),
        (["-a", "-i", "-p", "x"], "--autonomous and --interactive exclude each other: choose one of them"),
        (["-p", " "], "the prompt is blank"),
        (["-p", "x", "--max-iterations", "3"], "--max-iterations and --token-budget are limits of --autonomous"),
        (["--resume", "--no-memory"], "--resume needs the memory that --no-memory leaves out"),
    ],
)
def test_what_does_not_go_together_is_refused(cli, arguments, complaint):
    """In one sentence, before anything is opened."""
    done = cli("run", "role.yaml", *arguments)
    assert (done.code, done.err) == (2, f"commonplace: {complaint}\n")


def test_files_and_models_that_are_not_there_are_named(cli):
    """The sentence has the file, or the word that was given."""
    assert (
        cli("run", "none.yaml", "-p", "x").err == "commonplace: none.yaml: cannot be read: No such file or directory\n"
    )
    done = cli("run", "--model", "nobody:x", "-p", "x")
    assert done.code == 5
    assert "--model" in done.err
    assert "nobody" in done.err


def test_a_provider_that_fails_is_one_sentence(cli, server):
    """No traceback, and the exit code of a store or a disk that failed."""
    server.add(fails(400, "no such model"))
    done = cli("run", "role.yaml", "-p", "hi")
    assert (done.code, done.out) == (6, "")
    assert done.err.startswith("commonplace: agent 'assistant': the model 'endpoint:m' answered 400: no such model")


def test_what_a_model_says_cannot_move_the_cursor(cli, server):
    """Control characters are shown, not obeyed, also when they come in pieces."""
    server.add(says("red \x1b[31m alert"))
    assert cli.ok("run", "role.yaml", "-p", "hi").out == "red \\u001b[31m alert\n"


def test_words_that_are_no_unicode_are_refused_in_one_sentence(cli, server):
    """As an argument they end the command, in a conversation the next line may be better."""
    assert cli("run", "role.yaml", "-p", "caf\udce9").code == 2
    server.add("hello")
    done = cli.ok("run", "role.yaml", stdin=b"caf\xe9\nhi\n")
    assert done.out == "hello\n"
    assert "commonplace: the prompt is not valid Unicode at character 3" in done.err


def test_what_libraries_warn_of_is_not_written_to_the_terminal(cli, server):
    """A service that does not count tokens makes the framework warn; an answer is an answer."""
    chunk = '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]}'
    pieces = ['{"index":0,"delta":{"content":"hello"}}', '{"index":0,"delta":{},"finish_reason":"stop"}']
    body = "".join(f"data: {chunk % piece}\n\n" for piece in pieces) + "data: [DONE]\n\n"
    server.add(raw(body))
    done = cli.start("run", "role.yaml", "-p", "hi")
    assert (done.code, done.out, done.err) == (0, "hello\n", "")


def test_help_loads_no_agent():
    """The framework is not imported to say what there is."""
    look = "import sys; from commonplace.cli import main; main.run(['run', '-h']); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert "--resume" in done.stdout
    assert done.stdout.endswith("False\n")
