"""The process of ``commonplace hook``, which coding agents run.  It ends in time with 0 and prints JSON or nothing.

A thread watches the clock and ends the process when time is up: a lock, a hanging embedder and an input that never ends
are all the same to it.  Whatever else goes wrong ends here too and is noted in the log that ``commonplace status``
shows.  It runs at every prompt, so it starts without a command-line library.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import NoReturn

from commonplace.config.paths import home
from commonplace.hosts.hook_files import log_trouble

NAME = "hook"
INPUT_SECONDS = 2.0  # until the host has sent its payload
LAST_SECONDS = 0.5  # for a last word when time is up
INPUT_BYTES = 16 * 1024 * 1024  # a prompt with everything that was pasted into it

HELP = """Answer a hook of a coding agent: its JSON on standard input, the answer on standard output.

EVENT is session-start, prompt, answer, compact, stop or session-end, or the name that the agent gives it.  The answer
to session-start is the brief, to a prompt the records that match it; the other events index the transcript and queue it
for extraction.  The exit code is always 0, within the time limit; `commonplace status` shows what went wrong.
`commonplace connect` sets it up.

Example:
  echo '{"session_id": "0b1c", "prompt": "how do we deploy?"}' | commonplace hook prompt --host claude-code
"""


def run_hook(arguments: Sequence[str]) -> NoReturn:
    """Answer a hook; the process always ends in here."""
    watch = _Watch()
    try:
        _answer_hook(arguments, watch)
    finally:  # also for unexpected errors: a host must not suffer from them
        watch.end(sys.exc_info()[1])


class _Watch:
    """The time limit, the answer so far, and the end of the process: in time, or with what there is when time is up."""

    def __init__(self) -> None:
        self.what = NAME  # the host and the event, when they are known
        self._answer = ""
        self._ending = threading.Lock()
        self._timer = self._start_timer(INPUT_SECONDS)

    def limit(self, seconds: float) -> None:
        """Allow so many seconds from now on."""
        self._timer.cancel()
        self._timer = self._start_timer(seconds)

    def _start_timer(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._over, [seconds])
        timer.daemon = True
        timer.start()
        return timer

    def answer(self, text: str) -> None:
        """Take an answer; one that comes later is better."""
        self._answer = text

    def note(self, trouble: str) -> None:
        """Write down what went wrong."""
        log_trouble(home(os.environ), f"{self.what}: {trouble}")

    def end(self, error: BaseException | None) -> NoReturn:
        """Print the answer and end the process with 0."""
        with self._ending:
            try:
                self._say()
                if error is not None:
                    self.note(str(error) or type(error).__name__)
            finally:
                os._exit(0)

    def _over(self, seconds: float) -> None:
        if self._ending.acquire(blocking=False):
            trouble = f"it was not done within {seconds:.3g} seconds and was ended"
            last = threading.Thread(target=self._last_words, args=[trouble], daemon=True)
            last.start()
            last.join(LAST_SECONDS)  # a disk that hangs may lose the note, but does not stop the end
        else:
            time.sleep(LAST_SECONDS)  # the main thread is ending the process
        _end_children()
        os._exit(0)

    def _last_words(self, trouble: str) -> None:
        self._say()
        self.note(trouble)

    def _say(self) -> None:
        data = f"{self._answer}\n".encode() if self._answer else b""
        while data:
            data = data[os.write(1, data) :]


def _answer_hook(arguments: Sequence[str], watch: _Watch) -> None:
    given, host, seconds = _read(arguments)
    watch.what = f"{host or 'a host'}, {given or 'no event'}"
    if seconds:
        watch.limit(seconds)
    from commonplace.hosts import hook  # noqa: PLC0415 - every failure in there is caught out here
    from commonplace.hosts.registry import PROMPT, get_event  # noqa: PLC0415 - likewise

    event = get_event(given)
    if event != PROMPT:
        import gc  # noqa: PLC0415 - it was switched off for prompts

        gc.enable()
    call = hook.parse_call(event, host, _input(), os.environ, seconds=seconds)
    watch.what = f"{call.host_name}, {event}"
    watch.limit(call.left)
    hook.handle(call, answer=watch.answer, note=watch.note)


def _read(arguments: Sequence[str]) -> tuple[str, str | None, float | None]:
    """The event, the host and the time limit; other arguments are ignored, because no error would be seen."""
    event, host, seconds = "", None, None
    rest = iter(arguments)
    for argument in rest:
        name, equals, attached = argument.partition("=")
        if name == "--host":
            host = attached if equals else next(rest, None)
        elif name == "--time-limit":
            seconds = _seconds(attached if equals else next(rest, ""))
        elif not argument.startswith("-"):
            event = event or argument
    return event, host, seconds


def _seconds(text: str) -> float | None:
    try:
        return max(0.05, min(float(text), 600.0))
    except ValueError:
        return None


def _input() -> bytes:
    """The payload of the host; empty for a terminal and for a closed input."""
    return b"" if sys.stdin is None or os.isatty(0) else sys.stdin.buffer.read(INPUT_BYTES)


def _end_children() -> None:
    """Leave no process behind: git may hang where the store's disk does.  Elsewhere than on Linux it ends alone."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return
    for child in children:
        try:
            os.kill(child, 9)
        except OSError:
            continue
