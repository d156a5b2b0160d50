"""Pi and oh-my-pi: session trees in ``~/.pi/agent/sessions`` and ``~/.omp/agent/sessions``; read only.

Every branch of a tree is part of the conversation, so all are read, in the order in which they were written.
Summaries and what extensions put there are not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.hosts.registry import Host, HostTranscript, user_home


def _parts(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    from commonplace.hosts.transcripts import content_text, text_part, tool_call, tool_result  # noqa: PLC0415 - see above
    from commonplace.records import asks_memory  # noqa: PLC0415 - see above

    role, content = body.get("role"), body.get("content")
    if role == "toolResult":
        yield tool_result(body.get("toolName"), content_text(content), body.get("toolCallId"))
    elif role == "bashExecution":
        command = str(body.get("command") or "")
        if not asks_memory(command):  # no tool call is recorded here: only the command line identifies it
            yield tool_result("bash", f"$ {command}\n{body.get('output') or ''}")
    elif role in ("user", "assistant"):
        if own := content_text(content):
            yield text_part(own)
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "toolCall":
                yield tool_call(part.get("name"), part.get("arguments"), part.get("id"))


class Pi(Host):
    """Pi and oh-my-pi."""

    NAME = "pi"
    TITLE = "pi"
    PROGRAM = "pi"
    KEEPS_LOGS = True

    def history(self, env: Mapping[str, str]) -> Iterator[HostTranscript]:
        """See ``Host``."""
        from commonplace.hosts.transcripts import files  # noqa: PLC0415 - a prompt reads no transcript

        for root in _roots(env):
            yield from (HostTranscript(path=path) for path in files(os.path.join(root, "sessions")))

    def lines(self, found: HostTranscript) -> Iterator[Mapping[str, Any]]:
        """See ``Host``."""
        from commonplace.hosts.transcripts import header, json_lines, message  # noqa: PLC0415 - see above

        begun = False
        for entry in json_lines(found.path):
            body = entry.get("message")
            if entry.get("type") == "session" and not begun:
                begun = True
                yield header(entry.get("id"), entry.get("cwd"), entry.get("timestamp"))
            elif entry.get("type") == "message" and isinstance(body, dict) and (spoken := list(_parts(body))):
                role = "assistant" if body.get("role") == "assistant" else "user"
                yield message(role, spoken, entry.get("timestamp"))

    def root(self, env: Mapping[str, str]) -> str:
        """See ``Host``."""
        return next((root for root in _roots(env) if os.path.isdir(root)), _roots(env)[0])


def _roots(env: Mapping[str, str]) -> list[str]:
    own = env.get("PI_CODING_AGENT_DIR")
    return [own] if own else [os.path.join(user_home(env), name, "agent") for name in (".pi", ".omp")]


HOST = Pi()
