"""The memory that a view works on: that of a directory, opened for one request, as its owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from commonplace.app import App, open_app
from commonplace.files.sync import SyncReport
from commonplace.model.scopes import Scope
from commonplace.records import AppAccess


class PageAccess(AppAccess):
    """The project's memory and the user's own; large folders are not looked through again for each view."""

    def __init__(self, app: App, reports: dict[Scope, SyncReport]) -> None:
        """``reports`` are those of the requests before: what cannot be read is known until it is looked at again."""
        super().__init__(app)
        app.folders.reports = reports
        self._seen: list[str] | None = None

    def refresh(self) -> Sequence[str]:
        """Read edited files once in a request, and not where the last look was less than a minute ago."""
        if self._seen is None:
            stale = [scope for scope in self.app.folders.scopes if not self.app.folders.is_fresh(scope)]
            self._seen = self.app.folders.refresh(stale) if stale or self.app.where.foreign else []
        return self._seen


def opener_for_person(
    directory: str, env: Mapping[str, str]
) -> Callable[[], AbstractContextManager[PageAccess]]:  # fmt: skip
    """Return what opens the memory of a directory for its owner, for one request: edited settings count at once."""
    reports: dict[Scope, SyncReport] = {}

    @contextmanager
    def opened() -> Iterator[PageAccess]:
        with open_app(directory, env=env) as app:
            yield PageAccess(app, reports)

    return opened
