"""Visit: one request as a view sees it, and what a view may answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import urlencode

from commonplace.app import App
from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value
from commonplace.page.doors import PREFIX, BrowserSession, PageHost
from commonplace.records import VERBS, AppAccess, MemoryAccess

_BY_NAME = {verb.name: verb for verb in VERBS}


class Page(Value):
    """A template to render."""

    template: str
    context: Mapping[str, Any] = {}
    status: int = 200
    live: bool = False  #: without script it is loaded again every minute; not where somebody may be writing


class Go(Value):
    """Another page to open."""

    to: str


class Text(Value):
    """Plain text."""

    text: str


Answer: TypeAlias = Page | Go | Text


class Visit:
    """One request, signed in, with the memory open."""

    def __init__(
        self, access: MemoryAccess, session: BrowserSession, host: PageHost, *, here: str, path: Mapping[str, str],
        query: Mapping[str, Sequence[str]], form: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.access = access
        self.session = session
        self.host = host
        self.path = path
        self.here = here  #: the address of the request
        self.form = form
        self._query = query

    def ask(self, verb: str, /, *args: Any, **arguments: Any) -> Any:
        """Call a verb; arguments that are None were not given."""
        given = {name: argument for name, argument in arguments.items() if argument is not None}
        return _BY_NAME[verb](self.access, *args, **given)

    @property
    def app(self) -> App | None:
        """The memory of a directory; None: a store of its own, without files and settings."""
        return self.access.app if isinstance(self.access, AppAccess) else None

    @property
    def now(self) -> datetime:
        """The current moment."""
        return self.access.memory.clock()

    def get(self, name: str, default: str = "") -> str:
        """Return a parameter of the address."""
        return self._query.get(name, (default,))[-1].strip()

    def every(self, name: str) -> Sequence[str]:
        """Return all values of a parameter."""
        return self._query.get(name, ())

    def number(self, name: str, default: int, *, most: int) -> int:
        """Return a parameter that is a number."""
        text = self.get(name)
        return min(most, int(text)) if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) else default  # noqa: PLR2004 - digits of any count here

    def choice(self, name: str, allowed: Sequence[str]) -> str | None:
        """Return a parameter that is one of some words; None: it is empty; raises for any other."""
        text = self.get(name)
        if text and text not in allowed:
            raise InvalidInput(f"{name} is one of {', '.join(allowed)}, not {text[:40]!r}")
        return text or None


View: TypeAlias = Callable[[Visit], Answer]


def url(path: str, **parameters: Any) -> str:
    """Return an address of the page; parameters that are empty are left out."""
    given = {name: item for name, item in parameters.items() if item not in (None, "", ())}
    return f"{PREFIX}/{path}" + (f"?{urlencode(given, doseq=True)}" if given else "")


def end_of_day(text: str | None) -> datetime | None:
    """Return the end of a day as people mean it: memory as it was on that day."""
    if text is None:
        return None
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a date; write it like 2026-06-01") from None
    local = day.replace(hour=23, minute=59, second=59) if len(text) == 10 else day  # noqa: PLR2004 - a date without a time
    return local.astimezone(UTC)
