"""What agents write and say, in the form in which they do: transcripts and hook inputs, written after the formats."""

from __future__ import annotations

import json
import sqlite3

RUN, RESULT = "pnpm install", "Lockfile is up to date"
AT = "2026-11-15T10:00:0{}.000Z"


def claude(person, session, *said, cwd=None):
    """A transcript of Claude Code with what it has between the words."""
    common = {"sessionId": session, "cwd": str(cwd or person.work), "version": "2.1.325", "gitBranch": "main"}
    own = {"isSidechain": False, "userType": "external"} | common
    lines = [{"type": "queue-operation", "operation": "enqueue", "sessionId": session}]
    for number, text in enumerate(said):
        lines.append(own | {"type": "user", "uuid": f"u{number}", "timestamp": AT.format(number), "message": {
            "role": "user", "content": text}})  # fmt: skip
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": RUN}}
    answer = [
        {"type": "thinking", "thinking": "The lock file is stale."},
        {"type": "text", "text": "Installing."},
        call,
    ]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": RESULT}
    lines += [
        own | {"type": "assistant", "uuid": "a1", "timestamp": AT.format(5), "message": {
            "role": "assistant", "content": answer}},
        own | {"type": "user", "uuid": "r1", "timestamp": AT.format(6), "toolUseResult": {}, "message": {
            "role": "user", "content": [result]}},
        own | {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["from memory"]}},
        own | {"type": "user", "isMeta": True, "message": {"role": "user", "content": "Caveat: from the program"}},
        own | {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "We always use yarn."}},
        own | {"type": "user", "isSidechain": True, "message": {"role": "user", "content": "For the subagent."}},
        {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}},
        {"type": "never-seen-before", "payload": [1, 2, 3]},
    ]  # fmt: skip
    folder = "".join(letter if letter.isalnum() else "-" for letter in str(cwd or person.work))
    return person.lines(f".claude/projects/{folder}/{session}.jsonl", *lines)


def codex(person, session, *said, cwd=None):
    """A rollout of Codex."""

    def item(number, **payload):
        return {"timestamp": AT.format(number), "type": "response_item", "payload": payload}

    def message(number, role, text):
        kind = "output_text" if role == "assistant" else "input_text"
        return item(number, type="message", role=role, content=[{"type": kind, "text": text}])

    meta = {"id": session, "cwd": str(cwd or person.work), "originator": "codex_cli_rs", "cli_version": "0.166.0"}
    output = json.dumps({"output": RESULT, "metadata": {"exit_code": 0}})
    arguments = json.dumps({"command": ["pnpm", "install"]})
    lines = [
        {"timestamp": AT.format(0), "type": "session_meta", "payload": meta},
        message(0, "developer", "<permissions instructions>never shown</permissions instructions>"),
        message(0, "user", "<environment_context><cwd>/x</cwd></environment_context>"),
        *(message(1, "user", text) for text in said),
        item(2, type="reasoning", summary=[], encrypted_content="x"),
        item(3, type="function_call", name="shell", arguments=arguments, call_id="c1"),
        item(4, type="function_call_output", call_id="c1", output=output),
        {"timestamp": AT.format(5), "type": "event_msg", "payload": {"type": "token_count", "info": None}},
        message(6, "assistant", "Installed."),
        {"timestamp": AT.format(7), "type": "world_state", "payload": {"x": 1}},
    ]
    return person.lines(f".codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-{session}.jsonl", *lines)


def pi(person, session, *said, cwd=None, root=".pi"):
    """A session tree of pi, version 3."""

    def entry(number, **fields):
        return {"id": f"e{number}", "parentId": f"e{number - 1}", "timestamp": AT.format(number)} | fields

    def message(number, role, **fields):
        return entry(number, type="message", message={"role": role} | fields)

    call = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": RUN}}
    lines = [
        {"type": "session", "version": 3, "id": session, "timestamp": AT.format(0), "cwd": str(cwd or person.work)},
        entry(1, type="model_change", provider="x", modelId="y"),
        *(message(2, "user", content=[{"type": "text", "text": text}]) for text in said),
        message(3, "assistant", content=[{"type": "thinking"}, {"type": "text", "text": "Yes."}, call]),
        message(4, "toolResult", toolCallId="c1", toolName="bash", content=[{"type": "text", "text": RESULT}]),
        message(5, "bashExecution", command="git status", output="clean"),
        entry(6, type="custom_message", customType="commonplace", content="from memory"),
        entry(7, type="compaction", summary="We always use yarn.", firstKeptEntryId="e2"),
        entry(8, type="credential_pin", x=1),
    ]  # fmt: skip
    return person.lines(f"{root}/agent/sessions/--work--/2026-11-15T10-00-00_{session}.jsonl", *lines)


def gemini(person, session, *said, cwd=None):
    """A chat of Gemini CLI, with a message that was written twice and one that was taken back."""

    def message(number, kind, content, **more):
        return {"id": f"m{number}", "timestamp": AT.format(number), "type": kind, "content": content} | more

    response = {"functionResponse": {"name": "run_shell_command", "response": {"output": RESULT}}}
    shell = {"id": "c1", "name": "run_shell_command", "args": {"command": RUN}, "result": [response]}
    context = "<session_context>\nThis is the Gemini CLI.\n--- Context from: GEMINI.md ---\nAlways run the linter.\n"
    began = {"id": "c0", "timestamp": AT.format(0), "type": "user", "content": [{"text": context}]}
    injected = "<hook_context>Use yarn, always.</hook_context>"
    lines = [
        {"sessionId": session, "projectHash": "x", "startTime": AT.format(0), "lastUpdated": AT.format(0)},
        {"$set": {"messages": [began]}},
        *(message(number, "user", [{"text": f"{text}\n\n{injected}"}]) for number, text in enumerate(said)),
        message(5, "gemini", "Installing."),
        {"$set": {"lastUpdated": AT.format(5)}},
        message(5, "gemini", "Installing.", toolCalls=[shell], thoughts=[{"subject": "x"}], model="gemini"),
        message(6, "user", "Never mind, we deploy by hand."),
        message(7, "gemini", "As you wish."),
        {"$rewindTo": "m6"},
        message(8, "info", "Update available"),
    ]
    person.file(".gemini/tmp/work/.project_root", str(cwd or person.work))
    return person.lines(f".gemini/tmp/work/chats/session-2026-11-15T10-00-{session[:8]}.jsonl", *lines)


def opencode(person, session, *said, cwd=None):
    """A database of OpenCode."""
    path = person.home / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as db:
        db.executescript(
            "create table if not exists session (id text primary key, project_id text, parent_id text, directory text,"
            " title text, time_created integer, time_updated integer);"
            "create table if not exists message (id text primary key, session_id text, time_created integer,"
            " time_updated integer, data text);"
            "create table if not exists part (id text primary key, message_id text, session_id text,"
            " time_created integer, time_updated integer, data text);"
        )
        now = 1_763_200_800_000
        add = db.execute
        add("insert into session values (?, 'p', null, ?, 't', ?, ?)", (session, str(cwd or person.work), now, now))
        add("insert into session values (?, 'p', ?, ?, 't', ?, ?)", (f"{session}-sub", session, "/", now, now))
        tool = {"type": "tool", "tool": "bash", "callID": "c1", "state": {
            "status": "completed", "input": {"command": RUN}, "output": RESULT}}  # fmt: skip
        turns = [("user", [{"type": "text", "text": text}, {"type": "text", "text": "memory", "synthetic": True}])
                 for text in said]  # fmt: skip
        turns.append(("assistant", [{"type": "reasoning", "text": "hm"}, tool, {"type": "text", "text": "Installed."}]))
        for number, (role, parts) in enumerate(turns):
            row = f"msg_{session}_{number}"
            add(
                "insert into message values (?, ?, ?, ?, ?)",
                (row, session, now + number, now, json.dumps({"role": role})),
            )
            for at, part in enumerate(parts):
                values = (f"{row}_{at}", row, session, now + at, now + at, json.dumps(part))
                add("insert into part values (?, ?, ?, ?, ?, ?)", values)
    db.close()
    return path
