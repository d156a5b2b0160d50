"""Role memory end to end: the document's YAML and commands through the real command, and what reached the model."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import time

import pexpect
import pytest

from commonplace.agents import answer_call
from commonplace.roles import role_tools
from desk import COMMAND, MINIMAL, PROCEDURES, QUICK_START, RECALLED, MemoryAccess, model
from loopback import LoopbackServer, fails, says


@pytest.fixture
def desk(tmp_path):
    """A desk, with a model that answers."""
    with LoopbackServer(answers=model, dimensions=1536) as server:
        yield MemoryAccess(tmp_path, server)


@pytest.mark.slow
def test_a_conversation_at_a_terminal_is_gone_on_with_the_next_day(desk):
    """Chat, quit, resume, ask: the model has the old words, the new role and what it remembered, in every turn."""
    child = desk.sits_down("run", "role.yaml", "-i")
    for line, answer in [
        ("My name is Ada", "You told me: nothing"),
        ("fact: Ada drinks green tea", "Done: Remembered"),
        ("rule: Answer in one sentence", "Done: Learned procedure"),
    ]:
        child.sendline(line)
        child.expect(re.escape(answer))
        child.expect("> ")
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    desk.writes(QUICK_START.replace("a helpful assistant", "a terse assistant"))

    child = pexpect.spawn(COMMAND, ["run", "role.yaml", "-i", "--resume"], cwd=str(desk.folder), env=desk.env,
                          encoding="utf-8", timeout=30, echo=False, use_poll=True)  # fmt: skip
    child.expect(r"Resumed session with 10 messages\.")
    child.expect(r"Loaded relevant memories from previous sessions\.")
    child.expect("> ")
    for line in ("What is my name?", "And what do I drink?"):
        child.sendline(line)
        child.expect("You told me: My name is Ada / fact: Ada drinks green tea")
        child.expect("> ")
        system = desk.last.system
        assert "a terse assistant" in system
        assert "a helpful assistant" not in json.dumps(desk.last.body)
        assert f"{PROCEDURES}\n\n- [user_preferences] Answer in one sentence" in system
        assert f"{RECALLED}\n\n- [semantic] Ada drinks green tea" in system
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


@pytest.mark.slow
def test_ctrl_c_at_a_terminal_interrupts_an_answer_and_not_the_program(tmp_path):
    """The prompt comes back at once, lines can be edited and fetched again, and the end is a clean one."""
    with LoopbackServer(answers=[says("late", delay_s=60), "quick", "once more"]) as server:
        desk = MemoryAccess(tmp_path, server)
        desk.env["TERM"] = "xterm"
        child = desk.sits_down("run", "role.yaml")
        child.logfile_read = screen = io.StringIO()
        child.sendline("a long story")
        while not server.chats:
            child.expect(pexpect.TIMEOUT, timeout=0.1)
        child.sendintr()
        child.expect("the answer was interrupted")
        child.expect("> ")
        child.sendline("shoort\x02\x02\x08")  # two back, one away: short
        child.expect("quick")
        child.expect("> ")
        child.send("\x1b[A\r")  # up: the same again
        child.expect("once more")
        child.expect("> ")
        child.sendintr()
        while child.expect(["say /quit or press Ctrl-D", pexpect.TIMEOUT], timeout=2):
            child.sendintr()  # Python does not hear one that comes just before it starts to wait for a line
        child.sendline("/quit")
        child.expect(pexpect.EOF)
        child.close()
    assert child.exitstatus == 0
    assert [chat.prompt for chat in server.chats] == ["a long story", "short", "short"]
    assert "pydantic" not in screen.getvalue()  # the framework's banner is for programs that do not own their output


@pytest.mark.slow
def test_what_one_run_learns_the_next_one_knows(desk):
    """Facts are found, procedures stand before every run, and the tools answer in the document's words."""
    saved = desk("run", "role.yaml", "-p", "fact: The user prefers dark mode and vim keybindings.")
    assert re.fullmatch(r"Done: Remembered \(id=\w+, category=user_preferences\)\n", saved.stdout)
    desk("run", "role.yaml", "-p", "rule: Always run tests before deploying to production")
    found = desk("run", "role.yaml", "-p", "find: dark mode")
    assert found.stdout == "Done: The user prefers dark mode and vim keybindings.\n"
    [told] = [message["content"] for message in desk.last.body["messages"] if message["role"] == "tool"]
    assert re.match(r"\[Type: semantic \| Category: user_preferences \| Score: \d\.\d{3} \| \d{4}-\S+\+00:00\]\n", told)
    rules = f"{PROCEDURES}\n\n- [user_preferences] Always run tests before deploying to production"
    assert rules in desk.last.system


@pytest.mark.slow
def test_a_run_by_itself_leaves_an_episode_and_its_end_makes_a_fact_of_it(desk):
    """The summary is an episode; the consolidation at the end has it, and the fact is found by the next run."""
    done = desk("run", "role.yaml", "--autonomous", "--prompt", "finish: Ordered green tea for the user.")
    assert done.stdout == "Ordered green tea for the user.\n"
    assert "Created 1 semantic memories from episodic data." in done.stderr
    [thought] = [chat for chat in desk.server.chats if "tools" not in chat.body]
    assert "[autonomous_run]" in thought.prompt
    assert "Ordered green tea for the user." in thought.prompt
    assert desk("run", "role.yaml", "-p", "find: which tea?").stdout.startswith("Done: ")
    assert "The user drinks green tea" in str(desk.last.body["messages"])


@pytest.mark.slow
def test_a_run_by_itself_that_is_interrupted_has_kept_what_it_did(tmp_path):
    """Ctrl-C ends it at once with its exit code, and what was done until then can be resumed."""
    with LoopbackServer(answers=["I began", says("late", delay_s=60), "fine"]) as server:
        desk = MemoryAccess(tmp_path, server)
        arguments = [COMMAND, "run", "role.yaml", "-a", "-p", "Work"]
        with subprocess.Popen(arguments, cwd=desk.folder, env=desk.env, stderr=subprocess.PIPE, text=True) as working:
            while len(server.chats) < 2:
                time.sleep(0.01)
            working.send_signal(signal.SIGINT)
            assert working.stderr.read().endswith("commonplace: interrupted\n")
        assert working.returncode == 130
        assert "Resumed session with 2 messages." in desk("run", "role.yaml", "--resume", "-p", "and?").stderr


@pytest.mark.slow
def test_one_nested_key_is_enough(desk):
    """The minimal memory has every tool and keeps its sessions."""
    desk.writes(MINIMAL)
    desk("run", "role.yaml", "-i", stdin="My name is Ada\n")
    names = [tool["function"]["name"] for tool in desk.last.body["tools"]]
    assert names[:5] == ["remember", "learn_procedure", "record_episode", "recall", "list_memories"]
    assert "Resumed session with 2 messages." in desk("run", "role.yaml", "-i", "--resume", stdin="hi\n").stderr


@pytest.mark.slow
def test_without_a_file_memory_is_on_unless_it_is_switched_off(desk):
    """``run``, ``run --resume`` and ``run --no-memory``, as the document has them."""
    desk("run", stdin="My name is Ada\n")
    resumed = desk("run", "--resume", stdin="Who am I?\n")
    assert resumed.stdout == "You told me: My name is Ada\n"
    assert "remember" in str(desk.last.body["tools"])
    desk("run", "--no-memory", stdin="hi\n")
    assert "tools" not in desk.server.chats[-1].body


@pytest.mark.slow
def test_as_many_sessions_stay_as_the_role_says_however_many_turns_they_have(desk):
    """Three conversations, one of them long, two to keep: two are there, the newest whole (defects 7 and 8)."""
    desk.writes(QUICK_START.replace("max_sessions: 10", "max_sessions: 2"))
    for turns in (1, 1, 6):
        desk("run", "role.yaml", "-i", stdin="".join(f"turn {turn}\n" for turn in range(turns)))
    with desk.memory() as held:
        assert [saved.messages for saved in held.sessions.all()] == [12, 2]


# The document's commands


@pytest.fixture
def filled(desk):
    """An assistant that knows one thing of each sort, and has talked once."""
    with desk.memory() as held:
        offered = role_tools(held.memory())
        for tool, content in (
            ("remember", "The user prefers dark mode."),
            ("record_episode", "Deployed v2.1 to staging successfully."),
            ("learn_procedure", "Always run tests before deploying to production"),
        ):
            answer_call(offered, tool, {"content": content, "category": "User Preferences"})
        held.sessions.save(
            "0123456789ab", [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}]
        )
    return desk


@pytest.mark.slow
def test_list_shows_what_the_document_shows(filled):
    """``memory list`` and its options: newest first, with type and category (defect 9)."""
    lines = filled("memory", "list", "role.yaml").stdout.splitlines()
    shown = [re.fullmatch(r"#\w+ \[(\w+:\w+)\] \(\S+\+00:00\) (.+)", line).groups() for line in lines[:-1]]
    assert shown == [
        ("procedural:user_preferences", "Always run tests before deploying to production"),
        ("episodic:user_preferences", "Deployed v2.1 to staging successfully."),
        ("semantic:user_preferences", "The user prefers dark mode."),
    ]
    assert lines[-1] == "3 memories shown."
    assert "1 memories shown." in filled("memory", "list", "role.yaml", "--type", "episodic").stdout
    assert "1 memories shown." in filled("memory", "list", "role.yaml", "--type", "procedural").stdout
    assert filled("memory", "list", "role.yaml", "--category", "deployment").stdout == "No memories found.\n"
    assert "3 memories shown." in filled("memory", "list", "role.yaml", "--limit", "50").stdout
    refused = filled("memory", "list", "role.yaml", "--type", "dream", code=1)
    assert refused.stderr == "commonplace: Invalid type 'dream'. Use: episodic, semantic, procedural\n"


@pytest.mark.slow
def test_clear_takes_what_the_document_says_and_nothing_else(filled):
    """Each form of ``memory clear``: one type leaves the other types and the sessions (defect 10)."""
    asked = filled("memory", "clear", "role.yaml", stdin="n\n")
    assert "Clear all memory data for assistant? [y/N]" in asked.stderr
    assert asked.stdout == "Aborted.\n"
    done = filled("memory", "clear", "role.yaml", "--type", "semantic", "--force")
    assert done.stdout == "Cleared memory for assistant.\n"
    assert "2 memories shown." in filled("memory", "list", "role.yaml").stdout
    filled("memory", "clear", "role.yaml", "--type", "episodic", "--what", "sessions", "--force", code=1)
    with filled.memory() as held:
        assert len(held.sessions.all()) == 1
    filled("memory", "clear", "role.yaml", "--what", "sessions", "--force")
    with filled.memory() as held:
        assert (held.sessions.all(), len(held.memory().list())) == ([], 2)
    filled("memory", "clear", "role.yaml", "--what", "memories", "--force")
    assert filled("memory", "list", "role.yaml").stdout == "No memories found.\n"
    filled("memory", "clear", "role.yaml", "--what", "all", "--force")


@pytest.mark.slow
def test_the_documents_round_trip_between_two_agents(filled):
    """``memory export`` and ``memory import``: the shape, other embedders, twice as once (defects 14 and 15)."""
    (filled.folder / "roles").mkdir()
    other = QUICK_START.replace("name: assistant", "name: agent-b").replace("    max_sessions", LOCALLY, 1)
    filled.writes(QUICK_START, "roles/agent-a.yaml")
    filled.writes(other, "roles/agent-b.yaml")
    file = str(filled.folder / "mem.json")
    assert filled("memory", "export", "roles/agent-a.yaml", "-o", file).stdout == f"Exported 3 memories to {file}.\n"
    entries = json.loads((filled.folder / "mem.json").read_text())
    assert list(entries[0]) == ["id", "content", "category", "created_at", "memory_type", "metadata"]
    assert filled("memory", "import", "roles/agent-b.yaml", file).stdout == "Imported 3 memories into agent-b.\n"
    again = filled("memory", "import", "roles/agent-b.yaml", file).stdout
    assert again == "Imported 0 memories into agent-b. 3 known already.\n"
    filled("memory", "export", "roles/agent-b.yaml")
    kept = json.loads((filled.folder / "memories.json").read_text())
    assert [{**entry, "id": 0} for entry in kept] == [{**entry, "id": 0} for entry in entries]
    assert filled("run", "roles/agent-b.yaml", "-p", "find: dark mode").stdout == "Done: The user prefers dark mode.\n"


LOCALLY = "    embeddings: {provider: local}\n    max_sessions"


@pytest.mark.slow
def test_consolidate_makes_facts_with_the_roles_own_model(filled):
    """``memory consolidate`` works whatever the interval is, once for each episode (defect 11)."""
    done = filled("memory", "consolidate", "role.yaml")
    assert done.stdout == "Created 1 semantic memories from episodic data.\n"
    assert "- [user_preferences] (" in filled.server.chats[-1].prompt
    assert "The user drinks green tea" in filled("memory", "list", "role.yaml").stdout
    assert filled("memory", "consolidate", "role.yaml").stdout == "No episodic memories to consolidate.\n"


@pytest.mark.slow
def test_consolidate_that_fails_says_so_with_its_exit_code(tmp_path):
    """Never `nothing to consolidate`, never a traceback; the episodes wait (defects 11 and 12)."""
    with LoopbackServer(answers=lambda _request: fails(400, "no such model"), dimensions=1536) as server:
        desk = MemoryAccess(tmp_path, server)
        with desk.memory() as held:
            answer_call(role_tools(held.memory()), "record_episode", {"content": "Deployed v2.1 to staging."})
        for _ in range(2):
            done = desk("memory", "consolidate", "role.yaml", code=6)
            assert (done.stdout, "answered 400: no such model" in done.stderr) == ("", True)
            assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_commands_of_a_role_without_a_store_or_without_a_memory(desk):
    """Nothing is made by looking; a role without the section gets a hint and exit code 1."""
    assert desk("memory", "clear", "role.yaml").stdout == "No memory store found.\n"
    assert desk("memory", "export", "role.yaml").stdout == "No memory store found.\n"
    assert desk("memory", "consolidate", "role.yaml").stdout == "No episodic memories to consolidate.\n"
    assert not (desk.folder / "home" / "memory").exists()
    desk.writes(QUICK_START[: QUICK_START.index("  memory:")])
    for command in (["list"], ["clear"], ["export"], ["consolidate"], ["reembed"]):
        assert "spec.memory: is missing" in desk("memory", *command, "role.yaml", code=1).stderr


@pytest.mark.slow
def test_init_writes_a_role_that_runs(desk):
    """``init --name assistant --template memory``, then a run of what it wrote."""
    (desk.folder / "role.yaml").unlink()
    desk("init", "--name", "assistant", "--template", "memory")
    assert desk("run", "role.yaml", "-p", "fact: Tea").stdout.startswith("Done: Remembered (id=")
    for tool in ("remember()", "recall()", "list_memories()"):
        assert tool in desk.last.system


@pytest.mark.slow
def test_memories_that_had_no_vector_get_one_at_the_next_run(tmp_path):
    """An embedder that failed is asked again when an agent starts, and that is one quiet line."""
    with LoopbackServer(answers=model, embeddings=[fails(400, "no")] * 4) as server:
        desk = MemoryAccess(tmp_path, server)
        custom = f"    embeddings: {{model: embed, base_url: '{server.base_url}'}}\n    max_sessions"
        desk.writes(QUICK_START.replace("    max_sessions", custom, 1))
        desk("run", "role.yaml", "-p", "fact: The user prefers dark mode.")
        server._embeddings.clear()
        before = len(server.embedded)
        done = desk("run", "role.yaml", "-p", "hi")
        assert "· 1 text that had no vector yet got one\n" in done.stderr
        assert any("The user prefers dark mode." in one.texts for one in server.embedded[before:])
        before = len(server.embedded)
        assert "vector" not in desk("run", "role.yaml", "-p", "hi").stderr
        assert not any("The user prefers dark mode." in one.texts for one in server.embedded[before:])
