"""How long work shows itself: a bar with rate and time left on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from commonplace.cli.terminal import print_note

WANTED = "COMMONPLACE_PROGRESS"  # where progress is shown: always, terminal, never
DRAW_SECONDS = 0.1  # between two drawings of the bar
LINE_SECONDS = 10.0  # between two lines where there is no terminal
RATE_AFTER = 1.0  # a rate and a time left need some work to go by
BAR, FULL, EMPTY = 20, "█", "░"
WIDTH = 80


class Progress:
    """The progress of one piece of work."""

    def __init__(self, what: str, *, drawn: bool, silent: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """``drawn``: on a terminal; ``silent``: show nothing at all, because the result is printed there."""
        self.what = what
        self._drawn, self._silent, self._clock = drawn, silent, clock
        self._began = self._last = clock()
        self._is_shown = False

    def __call__(self, done: int, of: int) -> None:
        """Note how much is done, of how much (0: nobody knows), and show it if it is time."""
        now = self._clock()
        first = self._drawn and not self._is_shown
        if not self._silent and (first or now - self._last >= (DRAW_SECONDS if self._drawn else LINE_SECONDS)):
            self._last = now
            self._show(describe(self.what, done, of, now - self._began, bar=self._drawn))

    def _show(self, text: str) -> None:
        if not self._drawn:
            print_note(text)
            return
        self._is_shown = True
        sys.stderr.write(f"\r{text[: _width() - 1]}\x1b[K")
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the bar."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def describe(what: str, done: int, of: int, seconds: float, *, bar: bool) -> str:
    """Return where work stands, as people read it."""
    rate = done / seconds if seconds >= RATE_AFTER else 0.0
    speed = f", {rate:,.0f} a second" if rate >= 1 else ""
    if not of:
        return f"{what}: {done:,}{speed}"
    left = f", {duration((of - done) / rate)} left" if rate > 0 and of > done else ""
    share = min(done / of, 1.0)
    drawn = f" {FULL * round(share * BAR)}{EMPTY * (BAR - round(share * BAR))}" if bar else ""
    return f"{what}: {done:,} of {of:,}{drawn} ({share:.0%}){speed}{left}"


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 - of a minute
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return WIDTH


@contextmanager
def show_progress(what: str, *, streamed: bool = False) -> Iterator[Progress]:
    """Show the progress of long work on standard error; nothing on a terminal on which the result is printed too."""
    drawn, wanted = sys.stderr.isatty(), os.environ.get(WANTED, "always")
    silent = wanted == "never" or (wanted == "terminal" and not drawn)
    progress = Progress(what, drawn=drawn, silent=silent or (drawn and streamed and sys.stdout.isatty()))
    try:
        yield progress
    finally:
        progress.clear()
