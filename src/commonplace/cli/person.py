"""Who types this command, and the question on the terminal that ``--as-user`` asks.

An agent's command is an agent's, whatever it says; only a person can answer a question on the controlling terminal.
That one is opened by itself, not taken from standard input, which is the agent's.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from commonplace.cli.terminal import visible
from commonplace.config import settings
from commonplace.config.paths import CONFIG, home
from commonplace.config.speaker import PERSON, Speaker, speaker_of
from commonplace.model.errors import Forbidden

TERMINAL = "/dev/tty"  # the controlling terminal of the process, wherever its standard input comes from
WAY_OUT = "`commonplace --as-user ...` asks you on the terminal"
_ALLOWED = "commonplace.as_user"  # in the context of a command: a person has said yes to it


def current_speaker(user_settings: Mapping[str, Any]) -> Speaker:
    """Return who types this command; a yes on the terminal makes it a person's."""
    if _context_meta().get(_ALLOWED):
        return PERSON
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    return speaker_of(os.environ, user_settings, at_terminal=at_terminal)


def require_person(act: str, user_settings: Mapping[str, Any] | None = None) -> None:
    """Refuse what only a person may do, such as "erases records", to an agent; with ``--as-user`` ask.

    ``user_settings`` are loaded where there are none yet.
    """
    known = load_user_settings() if user_settings is None else user_settings
    speaker = current_speaker(known)
    if speaker.is_person or ask_person(act):
        return
    raise Forbidden(f"this {act}, which only a person may do, and {speaker.why}; {WAY_OUT}")


def ask_person(shown: str = "") -> bool:
    """With ``--as-user``, ask the person at the terminal once, showing the command; return whether it was asked for.

    Raises ``Forbidden`` if the answer is not yes, and if there is no terminal.
    """
    context = click.get_current_context(silent=True)
    root = context.find_root() if context else None
    if root is None or not root.params.get("as_user"):
        return False
    if not root.meta.get(_ALLOWED):
        ask_on_terminal(_question(root.obj or (), shown))
        root.meta[_ALLOWED] = True
    return True


def said_yes() -> bool:
    """Tell whether a person has said yes to this command on the terminal: no other question needs an answer then."""
    return bool(_context_meta().get(_ALLOWED))


def ask_on_terminal(question: str) -> None:
    """Ask on the controlling terminal; raise ``Forbidden`` without one, and if the answer is not yes."""
    try:
        with open(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC), "r+b", buffering=0) as terminal:
            _discard_typed(terminal.fileno())
            terminal.write(f"\n{visible(question)}\nType yes to allow it: ".encode())
            answer = terminal.readline().decode(errors="replace")
    except OSError as error:
        why = error.strerror or str(error)
        raise Forbidden(f"there is no terminal on which you could be asked ({TERMINAL}: {why})") from error
    if answer.strip().lower() != "yes":
        raise Forbidden("the answer on the terminal was not yes; nothing was changed")


def _discard_typed(descriptor: int) -> None:
    """Drop what was typed before the question: it was meant for another program."""
    import termios  # noqa: PLC0415 - only where there are terminals, and only to ask

    try:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    except termios.error as error:
        raise OSError(*error.args) from error


def load_user_settings() -> dict[str, Any]:
    """Return the user's own settings."""
    return settings.load(os.path.join(home(os.environ), CONFIG), settings.USER)


def _question(arguments: Sequence[str], shown: str) -> str:
    lines = ["A program asks Commonplace to act as you:", f"  commonplace {shlex.join(arguments)}"]
    return "\n".join([*lines, *(f"  | {line}" for line in shown.splitlines())])


def _context_meta() -> Mapping[str, Any]:
    context = click.get_current_context(silent=True)
    return context.find_root().meta if context else {}
