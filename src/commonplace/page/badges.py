"""The counts beside the names of the views: what waits for review, what is wrong."""

from __future__ import annotations

from commonplace.model.values import Value
from commonplace.page.visits import Visit

MOST = 99  # counted; more are "99+"


class Badge(Value):
    """A count in the navigation."""

    count: int
    what: str  #: for screen readers
    warns: bool = False

    @property
    def text(self) -> str:
        """The count as it is shown."""
        return str(self.count) if self.count <= MOST else f"{MOST}+"


def badges_of(visit: Visit) -> dict[str, Badge]:
    """Return the counts by the name of their view; none for nothing."""
    waiting = len(visit.ask("review", limit=MOST + 1).waiting)
    wrong = len(visit.ask("troubles").troubles)
    found = {"Review": Badge(count=waiting, what="to review")} if waiting else {}
    return found | ({"Health": Badge(count=wrong, what="problems", warns=True)} if wrong else {})
