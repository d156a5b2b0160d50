"""Templates: HTML from views, with everything escaped, and the words of memory in their own direction."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from commonplace.model.records import CATEGORIES, Record
from commonplace.page.badges import badges_of
from commonplace.page.differences import word_diff
from commonplace.page.doors import PREFIX, BrowserSession, PageHost
from commonplace.page.visits import Page, Visit, url
from commonplace.version import VERSION

TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
#: The views in the order of the navigation: what they are called, their address, their icon.
VIEWS = (
    ("Search", "", "search"), ("Timeline", "timeline", "clock"), ("Review", "review", "review"),
    ("Injected", "injected", "inject"), ("Sessions", "sessions", "session"), ("Health", "health", "health"),
)  # fmt: skip


class Renderer:
    """The templates of the package."""

    def __init__(self, host: PageHost) -> None:
        self._host = host
        self._env = Environment(
            loader=FileSystemLoader(TEMPLATES), autoescape=select_autoescape(), undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True, auto_reload=False,
        )  # fmt: skip
        self._env.filters |= {
            "day": day, "clock": clock, "moment": moment, "iso": iso, "number": number, "size": size, "plural": plural,
            "line": one_line, "weekday": weekday, "segment": segment, "capital": capital,
        }  # fmt: skip
        self._env.globals |= {
            "url": url, "views": VIEWS, "version": VERSION, "prefix": PREFIX, "word_diff": word_diff,
            "categories": tuple(CATEGORIES), "place": host.place, "trust_of": trust_of,
        }  # fmt: skip

        self._env.globals["p"] = self._env.get_template("parts.html").module

    def view(self, page: Page, visit: Visit) -> str:
        """Return the HTML of a view, with the navigation around it."""
        project = visit.app.where.project if visit.app else None
        around = {
            "visit": visit, "now": visit.now, "label": visit.access.name_of, "badges": badges_of(visit),
            "here": visit.here, "live": page.live,
            "project": _project_name(visit), "has_project": project is not None,
            "has_app": visit.app is not None, "foot": self._host.place,
        }  # fmt: skip
        return self.render(page, visit.session, around)

    def render(self, page: Page, session: BrowserSession | None, around: Mapping[str, Any] | None = None) -> str:
        """Return the HTML of a template."""
        known = {"session": session, "csrf": session.csrf if session else "", **(around or {}), **page.context}
        return self._env.get_template(page.template).render(known)

    def error(self, message: str, status: int, session: BrowserSession | None, *, asks_key: bool) -> str:
        """Return the HTML of an error."""
        sentence = message[:1].upper() + message[1:] + ("" if message.endswith((".", "?")) else ".")
        context = {"message": sentence, "status": status, "asks_key": asks_key}
        return self.render(Page(template="error.html", context=context), session)


def _project_name(visit: Visit) -> str:
    if visit.app is None:
        return visit.session.visitor.agent or "One store"
    where = visit.app.where
    return where.project.name.rpartition("/")[2] if where.project else "Assistant only"


def trust_of(record: Any) -> str:
    """Return the trust of a record or a turn in one word."""
    return str(record.trust.name.lower())


# Filters


def _local(at: datetime) -> datetime:
    return at.astimezone()


def day(at: datetime | None, now: datetime | None = None) -> str:
    """Return a date as `13 Nov 2026`, or `today`."""
    if at is None:
        return ""
    here = _local(at)
    if now is not None and here.date() == _local(now).date():
        return "today"
    return f"{here.day} {here:%b %Y}"


def weekday(at: datetime) -> str:
    """Return a date as `Monday 16 November`."""
    here = _local(at)
    return f"{here:%A} {here.day} {here:%B}"


def clock(at: datetime) -> str:
    """Return a time of day as `09:05`."""
    return f"{_local(at):%H:%M}"


def moment(at: datetime | None, now: datetime | None = None) -> str:
    """Return a date and a time."""
    return f"{day(at, now)} {clock(at)}" if at else ""


def iso(at: datetime) -> str:
    """Return a moment for programs."""
    return at.astimezone(UTC).isoformat(timespec="seconds")


def number(count: float) -> str:
    """Return a number with commas at thousands."""
    return f"{count:,.0f}" if isinstance(count, int) or float(count).is_integer() else f"{count:,.1f}"


def size(count: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":  # noqa: PLR2004 - of a unit make one of the next
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"  # noqa: PLR2004 - three digits


def plural(count: int, what: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{number(count)} {what if count == 1 else many or what + 's'}"


def one_line(text: str | Record, letters: int = 160) -> str:
    """Return the beginning of a text on one line."""
    words = " ".join((text.content if isinstance(text, Record) else text).split())
    return words if len(words) <= letters else words[: letters - 1].rstrip() + "…"


def segment(name: str) -> str:
    """Return a name as one part of an address."""
    return quote(name, safe="")


def capital(text: str) -> str:
    """Return a sentence with a capital at its beginning; all else stays."""
    return text[:1].upper() + text[1:]


def elapsed_ms(began: float) -> int:
    """Return the milliseconds since a moment of ``time.perf_counter``."""
    return round((time.perf_counter() - began) * 1000)
