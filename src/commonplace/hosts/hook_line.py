"""What all hosts' settings have in common: the command that their hooks run, and how long they wait for it."""

from __future__ import annotations

import re

from commonplace.hosts.registry import ANSWER, COMPACT, END, PROMPT, START, STOP

NAME = "commonplace"  # of the MCP server, and of every file that is ours as a whole
#: Seconds that a host waits; the hook itself ends sooner (hook.SECONDS).
LIMITS = {START: 10, PROMPT: 5, ANSWER: 5, COMPACT: 15, STOP: 15, END: 15}
_OURS = re.compile(r"""(?:^|[/\\"' ])commonplace(?:\.exe)?["']? hook [a-z]""")
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def command(script: str, event: str, host: str | None) -> str:
    """The command line of a hook, for a shell."""
    quoted = script if _PLAIN.fullmatch(script) else "'" + script.replace("'", "'\"'\"'") + "'"
    return f"{quoted} hook {event}" + (f" --host {host}" if host else "")


def is_ours(command: object) -> bool:
    """Whether a command line is one of our hooks, wherever the script was then."""
    return isinstance(command, str) and bool(_OURS.search(command))
