"""The memory that a view works on: that of a directory, opened for one request, as its owner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from commonplace.app import App, open_app
from commonplace.records import AppAccess


class PageAccess(AppAccess):
    """The project's memory and the user's own; large folders are not looked through again for each view."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._seen: list[str] | None = None

    def refresh(self) -> Sequence[str]:
        """Read edited files once in a request, and not where the last look was less than a minute ago."""
        if self._seen is None:
            stale = [scope for scope in self.app.folders.scopes if not self.app.folders.is_fresh(scope)]
            self._seen = self.app.folders.refresh() if stale or self.app.where.foreign else []
        return self._seen


@contextmanager
def open_for_person(directory: str, env: Mapping[str, str]) -> Iterator[PageAccess]:
    """Open the memory of a directory for its owner, for one request: edited settings and files count at once."""
    with open_app(directory, env=env) as app:
        yield PageAccess(app)
