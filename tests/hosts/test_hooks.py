"""Hooks of coding agents, through the real command: what one session says, the next one is shown; no agent suffers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from commonplace.app import open_app
from commonplace.hosts.hook import CONTEXT_CHARS, handle, parse_call
from hosts import recorded
from hosts.conftest import COMMAND
from stands import rows

SAID = "Use pnpm, not npm, in this repo."
LEARNED = "Use pnpm, not npm, in this repo."


def base(person, session, event, **more):
    """What every agent says to a hook."""
    return {"session_id": session, "cwd": str(person.work), "hook_event_name": event} | more


def context(answer):
    """What an answer of Claude's form shows the model."""
    return answer["hookSpecificOutput"]["additionalContext"]


def claude_session(person):
    """Session 1 in Claude Code."""
    path = recorded.claude(person, "s1", SAID)
    end = base(person, "s1", "SessionEnd", transcript_path=str(path), reason="prompt_input_exit")
    person.hook("session-end", end, "--host", "claude-code")
    return person.hook("session-start", base(person, "s2", "SessionStart", source="startup"), "--host", "claude-code")


def codex_session(person):
    """Session 1 in Codex, which may not say where its transcript is."""
    recorded.codex(person, "019a-s1", SAID)
    end = base(
        person, "019a-s1", "SessionEnd", transcript_path=None, reason="other", model="x", permission_mode="default"
    )
    person.hook("session-end", end, "--host", "codex")
    return person.hook("session-start", base(person, "019a-s2", "SessionStart", source="startup"), "--host", "codex")


def gemini_session(person):
    """Session 1 in Gemini CLI, whose end nobody waits for: it is told at the end of the turn."""
    path = recorded.gemini(person, "s1", SAID)
    stop = base(person, "s1", "AfterAgent", transcript_path=str(path), prompt="x", prompt_response="y", timestamp="t")
    person.hook("stop", stop, "--host", "gemini")
    return person.hook("session-start", base(person, "s2", "SessionStart", source="startup"), "--host", "gemini")


def cursor_session(person):
    """Session 1 in Cursor, which keeps no transcript that could be read."""
    said = {
        "conversation_id": "c-1",
        "generation_id": "g",
        "workspace_roots": [str(person.work)],
        "cursor_version": "2",
    }
    person.hook("prompt", said | {"hook_event_name": "beforeSubmitPrompt", "prompt": SAID}, "--host", "cursor")
    person.hook("answer", said | {"hook_event_name": "afterAgentResponse", "text": "Switched."}, "--host", "cursor")
    person.hook("session-end", said | {"hook_event_name": "sessionEnd", "reason": "completed"}, "--host", "cursor")
    start = said | {"conversation_id": "c-2", "hook_event_name": "sessionStart"}
    return {"hookSpecificOutput": {"additionalContext": person.hook("session-start", start)["additional_context"]}}


def opencode_session(person):
    """Session 1 in OpenCode, whose plugin tells that it is idle."""
    recorded.opencode(person, "ses_1", SAID)
    person.hook("stop", base(person, "ses_1", "stop"), "--host", "opencode")
    answer = person.hook("session-start", base(person, "ses_2", "session-start"), "--host", "opencode")
    return {"hookSpecificOutput": {"additionalContext": answer["context"]}}


SESSIONS = {
    "claude-code": claude_session, "codex": codex_session, "gemini": gemini_session, "cursor": cursor_session,
    "opencode": opencode_session,
}  # fmt: skip


@pytest.mark.parametrize("host", list(SESSIONS))
def test_what_one_session_says_the_next_one_is_shown(person, host):
    """A convention of session 1 is a record by the start of session 2, and stands in its brief."""
    person.learns()
    shown = context(SESSIONS[host](person))
    assert shown.count(LEARNED) == 1  # in the summary or among the notes
    assert "trust agent" in shown
    assert person.log == ""


def test_the_audit_log_names_the_host_and_the_session(person):
    """Who learned from a session is the hook that did it; of the session's name only what can be no sentence."""
    person.learns()
    context(claude_session(person))
    actors = {one["actor"] for one in person.ok("audit", "list", "--json").json["entries"]}
    assert any(actor.startswith("user, hook of claude-code, session ") for actor in actors)


def test_the_answers_are_in_the_hosts_own_words(person):
    """Claude Code and Codex, and Gemini under its own name for a prompt."""
    person.ok("init")
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    said = base(person, "s1", "x", prompt="how do we deploy?")
    for host, name in (("claude-code", "UserPromptSubmit"), ("codex", "UserPromptSubmit"), ("gemini", "BeforeAgent")):
        answer = person.hook("prompt", said, "--host", host)["hookSpecificOutput"]
        assert answer["hookEventName"] == name
        assert "make deploy" in answer["additionalContext"]


def test_an_event_goes_by_the_hosts_name_too_and_a_host_by_what_it_says(person):
    """A plugin serves two hosts with the same line, and hosts call events as they like."""
    person.ok("init")
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    assert "hookSpecificOutput" in person.hook("UserPromptSubmit", base(person, "s1", "x", prompt="how do we deploy?"))
    said = {"conversation_id": "c", "workspace_roots": [str(person.work)], "prompt": "how do we deploy?"}
    assert "additional_context" in person.hook("beforeSubmitPrompt", said)


def test_a_prompt_is_shown_what_bears_on_it_and_never_more_than_a_host_takes(person):
    """Ten long notes do not fit, and what is shown is whole."""
    person.ok("init")
    with open_app(str(person.work), env=person.env) as place:
        for number in range(10):
            text = f"Note {number} on the deploy: {'the deploy needs care and patience, ' * 40}"
            place.memory.remember(text, category="procedures")
    for event in ("prompt", "session-start"):
        shown = context(person.hook(event, base(person, "s1", event, prompt="what about the deploy?")))
        assert "Note" in shown
        assert len(shown) <= CONTEXT_CHARS < 10_000
        assert shown.startswith("<memory seal=")
        assert shown.count("</memory seal=") == 1


@pytest.mark.parametrize("prompt", ["", "yes", "go on, please", "!!!"])
def test_a_prompt_that_asks_nothing_is_shown_nothing(person, prompt):
    """Whoever says yes is not told the newest notes each time."""
    person.ok("init")
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    assert person.hook("prompt", base(person, "s1", "UserPromptSubmit", prompt=prompt)) == {}


TALK = (
    "do it", "go on", "thanks, that looks good", "take care of the next one", "what is 17 times 23?",
    "who wrote that book?", "how many days does it take to get there?",
)  # fmt: skip


def test_small_talk_and_other_matters_are_not_answered(person):
    """Words that every conversation has are no evidence, however few notes have them; a note that fits is shown."""
    person.ok("init")
    with open_app(str(person.work), env=person.env) as app:
        for words in ("Do not delete it by hand", "The map has a link to go back", "Ada takes care of the invoices"):
            app.memory.remember(words, category="decisions")

        def answer(prompt):
            said = []
            payload = json.dumps(base(person, "s1", "UserPromptSubmit", prompt=prompt)).encode()
            handle(parse_call("prompt", "claude-code", payload, person.env), answer=said.append, note=print)
            return said[-1] if said else ""

        assert [prompt for prompt in TALK if answer(prompt)] == []
        assert "Ada" in answer("who looks after invoices?")


def test_a_session_is_not_shown_its_own_words(person):
    """It has them already."""
    person.ok("init")
    path = recorded.claude(person, "s1", SAID)
    person.hook("stop", base(person, "s1", "Stop", transcript_path=str(path)))
    asked = {"prompt": "do we use pnpm in this repo?"}
    assert person.hook("prompt", base(person, "s1", "UserPromptSubmit", **asked)) == {}
    assert SAID in context(person.hook("prompt", base(person, "s2", "UserPromptSubmit", **asked)))


def test_what_was_injected_is_neither_asked_for_nor_learned(person):
    """Gemini hands back what a hook has put into the prompt."""
    person.ok("init")
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    prompt = "ok\n<hook_context>how do we deploy?</hook_context>"
    assert person.hook("prompt", base(person, "s1", "BeforeAgent", prompt=prompt), "--host", "gemini") == {}


def test_a_subagent_neither_reads_nor_writes(person):
    """The session that started it is the one that remembers."""
    person.learns()
    path = recorded.claude(person, "s1", SAID)
    person.hook("stop", base(person, "s1", "Stop", transcript_path=str(path), agent_id="a1"))
    assert "Nothing found" in person.ok("recall", "pnpm npm repo").err


def test_a_session_that_goes_on_is_queued_and_taken_at_the_next_start(person):
    """A stop does not extract; whoever starts next does."""
    person.learns()
    path = recorded.claude(person, "s1", SAID)
    person.hook("stop", base(person, "s1", "Stop", transcript_path=str(path), stop_hook_active=False))
    assert "pending: extract s1" in person.ok("status", "--jobs").out
    assert LEARNED in context(person.hook("session-start", base(person, "s2", "SessionStart", source="startup")))
    assert "done: extract s1" in person.ok("status", "--jobs").out


def test_compaction_takes_in_what_was_said_so_far(person):
    """What the summary will leave out can still be found."""
    person.ok("init")
    path = recorded.claude(person, "s1", SAID)
    person.hook("compact", base(person, "s1", "PreCompact", transcript_path=str(path), trigger="auto"))
    assert SAID in person.ok("recall", "pnpm npm repo").out


def test_a_receipt_says_what_prompts_were_shown(person):
    """One receipt for all prompts of a turn, beside that of the brief."""
    person.learns()
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    person.hook("session-start", base(person, "s1", "SessionStart"))
    for _ in range(2):
        person.hook("prompt", base(person, "s1", "UserPromptSubmit", prompt="how do we deploy?"))
    path = recorded.claude(person, "s1", SAID)
    person.hook("stop", base(person, "s1", "Stop", transcript_path=str(path)))
    used = person.ok("used", "s1", "--json").json
    assert len(used["briefs"]) == 2
    assert [item["text"] for item in used["items"]] == ["Deploy with make deploy"]
    assert list((person.data / "shown").iterdir()) == []


def test_nothing_is_captured_where_memory_is_switched_off(person):
    """A switch is a switch, for hooks too."""
    person.learns()
    person.ok("disable", "--scope", "project")
    path = recorded.claude(person, "s1", SAID)
    person.hook("session-end", base(person, "s1", "SessionEnd", transcript_path=str(path)))
    person.ok("enable", "--scope", "project")
    assert "Nothing found" in person.ok("recall", "pnpm npm repo").err


def test_what_a_person_edits_is_known_from_the_next_stop_on(person):
    """Records are files: a prompt does not look at them, a stop does."""
    person.ok("init")
    path = person.work / ".commonplace" / "decisions" / "charts.md"
    path.parent.mkdir()
    path.write_text("Charts are drawn with uPlot.\n")
    asked = base(person, "s1", "UserPromptSubmit", prompt="what are charts drawn with?")
    assert person.hook("prompt", asked) == {}
    person.hook("stop", base(person, "s1", "Stop"))
    assert "uPlot" in context(person.hook("prompt", asked))


# It never breaks the host


@rows(
    "arguments, stdin",
    [
        (["prompt"], "{not json"),
        (["prompt"], "[1, 2]"),
        (["prompt"], "[" * 100_000),
        (["session-start", "--host", "emacs"], "{}"),
        (["no-such-event"], "{}"),
        ([], "{}"),
        (["prompt", "--nonsense", "--time-limit", "soon"], '{"prompt": 7, "cwd": 8, "session_id": 9}'),
        (["prompt"], '{"prompt": "half a character \\ud800 of deploy", "session_id": "\\udfff"}'),
        (["session-end"], '{"session_id": "x", "transcript_path": "/dev/zero"}'),
        (["session-end"], '{"session_id": "x", "transcript_path": "/no/such/file.jsonl"}'),
        (["stop"], '{"session_id": "\\u0000\\n../../x", "transcript_path": "/"}'),
    ],
)
def test_whatever_a_host_says_it_ends_well(person, arguments, stdin):
    """Exit code 0, and nothing or JSON."""
    person.learns()
    done = person("hook", *arguments, stdin=stdin)
    assert done.code == 0
    assert done.out == "" or done.json
    assert done.err == ""


def test_trouble_is_in_the_log_that_status_shows(person):
    """A person finds out, the host does not."""
    person.ok("init")
    person("hook", "prompt", "--host", "codex", stdin="{not json")
    assert "codex, prompt: the input of the hook is not JSON" in person.log
    assert "hooks had trouble once in the last days" in person.ok("status").err


def test_a_transcript_without_a_heading_is_no_trouble(person):
    """A host that does not say what a session is called has still said what was said."""
    person.ok("init")
    said = {"type": "user", "cwd": str(person.work), "message": {"role": "user", "content": SAID}}
    path = person.lines("t.jsonl", said)
    person.hook("stop", base(person, "s1", "Stop", transcript_path=str(path)), "--host", "claude-code")
    assert person.log == ""
    assert SAID in person.ok("recall", "pnpm").out


def test_a_prompt_that_is_pasted_full_is_answered_and_taken_down(person):
    """Cursor: of megabytes the beginning is kept, so that there is time for the answer."""
    person.ok("init")
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    said = {"conversation_id": "c-1", "workspace_roots": [str(person.work)]}
    pasted = f"how do we deploy? {'log line 7 ' * 500_000}"
    answer = person.hook("prompt", said | {"prompt": pasted}, "--host", "cursor")
    assert "make deploy" in answer["additional_context"]
    [taken] = (person.data / "taken-down").iterdir()
    assert "how do we deploy? log line 7" in taken.read_text()
    assert taken.stat().st_size < 210_000


def test_a_folder_that_is_gone_is_no_trouble_for_the_host(person):
    """The project was deleted under the agent: the hook ends well and says nothing."""
    for event in ("session-start", "prompt", "stop", "session-end"):
        script = f"mkdir gone && cd gone && rmdir ../gone && exec {COMMAND} hook {event} --host claude-code"
        said = json.dumps({"session_id": "s1", "prompt": "how do we deploy?", "cwd": str(person.work / "gone")})
        done = subprocess.run(["bash", "-c", script], input=said, env=person.env, cwd=person.work, text=True,
                              check=False, capture_output=True, timeout=60)  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_store_that_cannot_be_used_is_no_trouble_for_the_host(person):
    """A database that is none, a data folder that is a file, settings that are no YAML."""
    person.learns().ok("status")
    said = json.dumps(base(person, "s1", "UserPromptSubmit", prompt="how do we deploy?"))
    (person.data / "commonplace.db").write_text("garbage" * 999)
    for data in (person.data, person.work / ".commonplace" / "config.yaml"):
        for event in ("session-start", "prompt", "stop"):
            done = person("hook", event, stdin=said, COMMONPLACE_HOME=str(data))
            assert (done.code, done.out, done.err) == (0, "", "")
    (person.work / ".commonplace" / "config.yaml").write_text("project: [")
    assert person("hook", "prompt", stdin=said).code == 0
    assert "damaged" in person.log


def test_a_full_disk_is_no_trouble_for_the_host(person):
    """Nothing can be written, not even the log: files may not grow in this process."""
    person.learns()
    path = recorded.claude(person, "s1", SAID)
    said = json.dumps(base(person, "s1", "SessionEnd", transcript_path=str(path)))
    script = f"trap '' XFSZ; ulimit -f 0; exec {COMMAND} hook session-end --host claude-code 2>/dev/null"
    done = subprocess.run(["bash", "-c", script], input=said, env=person.env, cwd=person.work, text=True, check=False,
                          stdout=subprocess.PIPE, timeout=60)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert person.ok("status").code == 0


def timed(person, *arguments, stdin=subprocess.PIPE, **env):
    """Run a hook whose input stays open, or is given; returns how long it took."""
    began = time.monotonic()
    done = subprocess.Popen([COMMAND, "hook", *arguments], stdin=stdin, stdout=subprocess.PIPE, cwd=person.work,
                            env=person.env | env)  # fmt: skip
    assert done.wait(timeout=30) == 0
    out = done.stdout.read()
    done.stdout.close()
    if done.stdin:
        done.stdin.close()
    return time.monotonic() - began, out


def test_an_input_that_never_ends_is_not_waited_for(person):
    """Time is up, whatever it is spent on."""
    person.ok("init")
    took, out = timed(person, "prompt", "--time-limit", "0.5")
    assert took < 5
    assert out == b""
    assert "it was not done within 0.5 seconds and was ended" in person.log


def test_a_store_that_somebody_holds_is_not_waited_for(person):
    """A writer's turn may take long; the host does not wait for it, and a prompt needs no turn."""
    import fcntl  # noqa: PLC0415 - not everywhere

    person.learns()
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    said = person.file("said.json", json.dumps(base(person, "s1", "Stop", prompt="how do we deploy?",
                       transcript_path=str(recorded.claude(person, "s1", SAID)))))  # fmt: skip
    with open(person.data / "commonplace.db.lock", "rb") as lock, open(said, "rb") as first, open(said, "rb") as second:
        fcntl.flock(lock, fcntl.LOCK_EX)
        took, out = timed(person, "prompt", stdin=first)
        assert b"make deploy" in out
        took, _ = timed(person, "stop", "--time-limit", "1", stdin=second)
    assert took < 6
    assert "it was not done within 1 seconds" in person.log


def test_a_start_is_answered_also_if_nothing_can_be_learned_now(person):
    """A session waits, but somebody holds the store: the brief is what is known already."""
    import fcntl  # noqa: PLC0415 - not everywhere

    person.learns()
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    path = recorded.claude(person, "s1", SAID)
    person.hook("stop", base(person, "s1", "Stop", transcript_path=str(path)))
    said = person.file("said.json", json.dumps(base(person, "s2", "SessionStart")))
    with open(person.data / "commonplace.db.lock", "rb") as lock, open(said, "rb") as stdin:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _, out = timed(person, "session-start", "--time-limit", "2", stdin=stdin)
    assert "make deploy" in context(json.loads(out))
    assert LEARNED in context(person.hook("session-start", base(person, "s3", "SessionStart")))


def test_an_embedder_that_hangs_is_not_waited_for(person):
    """A service that takes a question and never answers: what words alone find is shown."""
    person.ok("init")
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    with socket.socket() as service:
        service.bind(("127.0.0.1", 0))
        service.listen()
        url = f"http://127.0.0.1:{service.getsockname()[1]}/v1"
        (person.data / "config.yaml").write_text(f"embedder: openai:x\nembedder_base_url: {url}\n")
        said = person.file("said.json", json.dumps(base(person, "s1", "x", prompt="how do we deploy?")))
        with open(said, "rb") as stdin:
            took, out = timed(person, "prompt", "--time-limit", "2", stdin=stdin, OPENAI_API_KEY="x")
    assert took < 7
    assert "make deploy" in context(json.loads(out))
    assert "it was not done within 2 seconds" in person.log


def processes(mark):
    """The processes that have a mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes())
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks at /proc")
def test_a_hook_leaves_no_process_behind(person):
    """Neither learning nor a git that hangs lives longer than the hook that started it."""
    person.env["HOOK_TEST_MARK"] = mark = f"mark-{os.getpid()}-{time.time_ns()}"
    person.learns()
    path = recorded.claude(person, "s1", SAID)
    for event in ("session-start", "prompt", "stop", "compact", "session-end"):
        person.hook(event, base(person, "s1", event, transcript_path=str(path), prompt="which manager?"))
    assert processes(mark) == []
    bare = person.work.parent / "bare"
    subprocess.run(["git", "init", "-q", str(bare)], check=True)
    slow = person.file("bin/git", "#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    said = json.dumps({"session_id": "s1", "cwd": str(bare), "prompt": "which manager?"})
    done = person("hook", "prompt", "--time-limit", "1", stdin=said, PATH=f"{slow.parent}:{person.env['PATH']}")
    assert done.code == 0
    assert processes(mark) == []


# It starts quickly

LIST = """
import json, sys
from commonplace.hosts.hook import handle, parse_call, handle, parse_call
call = parse_call("prompt", "claude-code", sys.stdin.buffer.read(), __import__("os").environ)
handle(call, answer=lambda text: None, note=lambda text: None)
print(*sorted(sys.modules))
"""
DENIED = {
    *("click", "yaml", "dataclasses", "inspect", "pathlib", "hashlib", "_hashlib", "logging", "subprocess", "asyncio"),
    *("shutil", "tempfile", "importlib.metadata", "random", "socket", "ssl", "decimal", "sqlite3", "urllib.parse"),
    *("commonplace.engine.admission", "commonplace.files.sync", "commonplace.records.index"),
    *("commonplace.learning.receipts", "commonplace.hosts.capture", "commonplace.hosts.settings"),
}


def test_a_prompt_loads_nothing_that_it_can_do_without(person):
    """It runs at every prompt: no command-line library, no writing half, no reader of transcripts."""
    import sys  # noqa: PLC0415 - for the interpreter only

    person.ok("init")
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    said = json.dumps(base(person, "s1", "UserPromptSubmit", prompt="how do we deploy?"))
    done = subprocess.run([sys.executable, "-c", LIST], input=said, capture_output=True, text=True, env=person.env,
                          cwd=person.work, check=True)  # fmt: skip
    assert set(done.stdout.split()) & DENIED == set()


def test_help_is_for_people(person):
    """Whoever asks what it does is told, with a code of their own."""
    assert "JSON on standard input" in person.ok("hook", "--help").out
