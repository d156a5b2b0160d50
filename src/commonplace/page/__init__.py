"""The page to look at memory: views over the verbs, rendered on the server.  The server face mounts it under `/ui`."""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true
if TYPE_CHECKING:
    from commonplace.page.access import opener_for_person
    from commonplace.page.application import page_routes
    from commonplace.page.doors import PageHost, Visitor

__getattr__ = lazy_names(
    __name__,
    {"access": "opener_for_person", "application": "page_routes", "doors": "PageHost Visitor"},
)

__all__ = ["PageHost", "Visitor", "opener_for_person", "page_routes"]
