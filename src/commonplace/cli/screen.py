"""What a terminal shows: results wrapped at its width, matching words in bold, and one dim line about each.

Nothing here is loaded where output is piped: programs get one line per record (``lines``), and recalls stay quick.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from unicodedata import combining, east_asian_width

from commonplace.cli.terminal import FORCE, color_choice, visible
from commonplace.model.queries import Hit
from commonplace.model.records import Record
from commonplace.text.words import plan, terms

WIDTH_LEAST, WIDTH_DEFAULT, WIDTH_MOST = 20, 80, 120  # columns: longer lines are hard to read
BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
INDENT = "  "
SHOWN_LINES = 4  # of a text in a list: `show` has all of it
_PIECES = re.compile(r"\w+|\W")


def screen_width() -> int:
    """Return how many columns there are."""
    forced = os.environ.get(FORCE, "")
    try:
        columns = int(forced) if forced.isdecimal() and int(forced) > 1 else int(os.environ.get("COLUMNS") or 0)
        columns = columns or os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        columns = WIDTH_DEFAULT
    return max(WIDTH_LEAST, min(columns, WIDTH_MOST))


class Screen:
    """How things look on this terminal."""

    def __init__(self, *, now: datetime, width: int | None = None, colored: bool | None = None) -> None:
        self.now = now
        self.width = screen_width() if width is None else width
        self.colored = is_colored() if colored is None else colored

    def result(self, hit: Hit, *, label: str, query: str, path: str | None, show_path: bool) -> str:
        """Return a hit: its words, wrapped, and below them what it is."""
        facts = [hit.record.category, label, age(hit.record.occurred_at or hit.record.created_at, self.now)] if (
            hit.record
        ) else [str(hit.chunk.kind) if hit.chunk else "", label]  # fmt: skip
        name = hit.record.brief_id if hit.record else hit.id
        tags = [f"#{tag}" for tag in sorted(hit.record.tags)] if hit.record else []
        lines = [*self.text(hit.text, query), *self.meta([*facts, *tags], name, path, f"{hit.score:.2f}")]
        return "\n".join([*lines, *([self.dim(f"{INDENT}{path}")] if show_path and path else [])])

    def record(self, record: Record, *, label: str, marks: Sequence[str], path: str | None, show_path: bool) -> str:
        """Return a record of a list: the beginning of its words, and below them what it is."""
        facts = [record.category, label, age(record.created_at, self.now), *marks]
        lines = [*self.text(record.content, ""), *self.meta(facts, record.brief_id, path, "")]
        return "\n".join([*lines, *([self.dim(f"{INDENT}{path}")] if show_path and path else [])])

    def text(self, text: str, query: str) -> list[str]:
        """Return a text in lines of the screen's width, its first ones, with the words of the query in bold."""
        plain = visible(" ".join(text.split()))
        lines = list(wrap(plain, self.width))
        if len(lines) > SHOWN_LINES:
            lines = [*lines[: SHOWN_LINES - 1], _cut(lines[SHOWN_LINES - 1], self.width)]
        wanted = {term for word in plan(query).words for choice in word.terms for term in choice} if query else set()
        return [self._marked(line, wanted) for line in lines]

    def _marked(self, line: str, wanted: set[str]) -> str:
        if not self.colored or not wanted:
            return line
        return "".join(
            f"{BOLD}{piece}{RESET}" if piece.isalnum() and not wanted.isdisjoint(terms(piece)) else piece
            for piece in _PIECES.findall(line)
        )

    def meta(self, facts: Iterable[str], name: str, path: str | None, score: str) -> list[str]:
        """Return the dim line about a record; where it is too long for the screen, several."""
        said = [visible(fact) for fact in facts if fact]
        line = INDENT + " · ".join([*said, name])
        room = self.width - len(score) - 2
        if columns(line) > room:
            rows = [INDENT + row for row in wrap(" · ".join([*said, name, score] if score else [*said, name]),
                                                 self.width - len(INDENT))]  # fmt: skip
            return [self.dim(row) for row in rows]
        linked = line[: -len(name)] + self._link(name, path)
        gap = " " * (room - columns(line) + 2) if score else ""
        return [self.dim(f"{linked}{gap}{score}")]

    def dim(self, text: str) -> str:
        """Return a text that stands back."""
        return f"{DIM}{text}{RESET}" if self.colored else text

    def _link(self, text: str, path: str | None) -> str:
        """Return a text that opens a file where the terminal can."""
        if not self.colored or path is None:
            return text
        from urllib.parse import quote  # noqa: PLC0415 - only a terminal has links

        return f"\x1b]8;;file://{quote(os.path.abspath(path))}\x1b\\{text}\x1b]8;;\x1b\\"


def is_colored() -> bool:
    """Whether output has colours: `--color`, else a terminal without NO_COLOR that is not dumb."""
    if (choice := color_choice()) != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def age(moment: datetime, now: datetime) -> str:
    """Return how long ago something was, as people say it."""
    seconds = (now - moment).total_seconds()
    if seconds < 0:
        return f"on {moment:%Y-%m-%d}"
    for size, unit, most in (
        (1, "second", 60), (60, "minute", 3_600), (3_600, "hour", 86_400), (86_400, "day", 604_800 * 2),
        (604_800, "week", 604_800 * 9), (2_629_800, "month", 31_557_600), (31_557_600, "year", float("inf")),
    ):  # fmt: skip
        if seconds < most:
            count = int(seconds // size)
            return "just now" if unit == "second" else f"{count} {unit}{'' if count == 1 else 's'} ago"
    return ""


def wrap(text: str, width: int) -> Iterable[str]:
    """Yield a text in lines of at most that many columns; a word that is longer is cut."""
    line, used = "", 0
    for word in text.split(" "):
        size = columns(word)
        if line and used + 1 + size <= width:
            line, used = f"{line} {word}", used + 1 + size
            continue
        if line:
            yield line
        line, used = word, size
        while used > width:
            head = _fitting(line, width)
            yield head
            line = line[len(head) :]
            used = columns(line)
    if line:
        yield line


def columns(text: str) -> int:
    """Return how many columns a text takes: wide letters two, marks on letters none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) or one == "\u200d" else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def _fitting(text: str, width: int) -> str:
    used = 0
    for at, one in enumerate(text):
        used += columns(one)
        if used > width:
            return text[: max(at, 1)]
    return text


def _cut(line: str, width: int) -> str:
    return f"{line if columns(line) < width else _fitting(line, width - 1)}…"


def show(blocks: Sequence[str], *, paged: bool = False) -> None:
    """Print results with a blank line between them, through a pager if they are longer than the screen."""
    text = "\n\n".join(blocks)
    if paged and sys.stdout.isatty() and sys.stdin.isatty() and text.count("\n") + 2 > _height():
        import click  # noqa: PLC0415 - only lists on terminals have a pager

        os.environ.setdefault("LESS", "FRX")
        click.echo_via_pager(text + "\n", color=is_colored())
        return
    sys.stdout.write(text + "\n")


def _height() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines
    except (OSError, ValueError):
        return 24
