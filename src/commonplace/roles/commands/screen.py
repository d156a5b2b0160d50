"""The terminal of a running agent: answers on standard output as they come, everything else on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from commonplace.agents.loop import ObservedToolCall
from commonplace.cli.terminal import print_note, print_text, visible
from commonplace.roles.agent import call_line
from commonplace.text.cleaning import one_line

GREETING = "/help lists the commands; /quit ends the conversation."
ASKING = "> "
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class Screen:
    """The terminal of one process."""

    def __init__(self) -> None:
        self._open = False  # a line of an answer is begun and not ended
        self._asks = sys.stdin is not None and sys.stdin.isatty()
        if hasattr(sys.stdin, "reconfigure"):  # bytes that are no UTF-8 are refused with a sentence, later
            sys.stdin.reconfigure(errors="surrogateescape")

    def prepare(self, earlier: list[str]) -> None:
        """Let lines be edited, with earlier ones within reach; nothing is written to a file."""
        if not self._asks:
            return
        self.print_note(GREETING)
        try:
            import readline  # noqa: PLC0415 - not on every system, and only for conversations
        except ImportError:
            return
        for line in earlier:
            readline.add_history(one_line(line))

    def ask(self) -> str:
        """Read a line."""
        sys.stdout.flush()
        return input(ASKING if self._asks else "")

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question."""
        try:
            return input(f"{question} [y/N]: ").strip().lower() in {"y", "yes"}
        except (EOFError, KeyboardInterrupt):
            self.say("")
            return False

    def write(self, piece: str) -> None:
        """Print a piece of an answer."""
        if piece:
            sys.stdout.write(visible(piece))
            sys.stdout.flush()
            self._open = not piece.endswith("\n")

    def end(self) -> None:
        """End the line of an answer, if one was begun."""
        if self._open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open = False

    def say(self, text: str) -> None:
        """Print a text on standard output."""
        self.end()
        print_text(text)

    def warn(self, sentence: str) -> None:
        """Print a message of the command on standard error."""
        self.end()
        sys.stdout.flush()
        print_note(sentence)

    def print_answers(self, answers: Mapping[str, str]) -> None:
        """Print the answers of a flow, each below its agent's name if there are several."""
        for name, text in answers.items():
            self.say(f"{name}:\n{text}" if len(answers) > 1 else text)

    def print_call(self, call: ObservedToolCall) -> None:
        """Print a tool call in one dim line."""
        self.end()
        self.print_dim(call_line(call))

    def print_dim(self, text: str) -> None:
        """Print a dim line on standard error."""
        line = visible(one_line(text))
        dim = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        self._print(f"{DIM}· {line}{PLAIN}" if dim else f"· {line}")

    def print_note(self, text: str) -> None:
        """Print a line on standard error, without the command's name before it."""
        self._print(visible(text))

    def _print(self, line: str) -> None:
        sys.stdout.flush()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
