"""Every view, light and dark, wide and narrow: nothing for axe to find, no sideways scrolling, no foreign request."""

from __future__ import annotations

import pytest
from tests.page.conftest import NARROW, WIDE, audit, serve_page

from ferry import voyage

VIEWS = (
    "", "?q=refunds", "?q=refunds&as_of=2026-01-01", "?q=nothing+like+that&state=held", "?state=archived", "timeline",
    "review", "review?tab=changes", "injected", "injected/7f3a", "sessions", "sessions/7f3a", "health",
    "records/{refunds}", "records/{refunds}/edit", "records/{refunds}/file",
)  # fmt: skip


@pytest.fixture(scope="module")
def ferry(tmp_path_factory):
    """One project for all views: nothing here changes it."""
    return voyage(tmp_path_factory.mktemp("voyage"))


@pytest.fixture(scope="module")
def page(chromium, ferry):
    """Its page."""
    with serve_page(chromium, ferry) as page:
        page.enter().context.close()
        yield page


@pytest.fixture(scope="module")
def named(ferry):
    """The records that addresses name."""
    found = ferry.call("list", tags=("payments",), state="live", limit=50).records
    return {"refunds": next(one.record.id for one in found if one.record.pinned)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_no_view_has_anything_for_axe_to_find(page, named, scheme, size):
    """WCAG 2.2 AA and best practice hold on every view with everything unfolded, and nothing scrolls sideways."""
    tab = page.again(viewport=size, color_scheme=scheme)
    found = {}
    for path in VIEWS:
        answer = tab.goto(page.url(path.format(**named)))
        assert answer.status == 200, path
        tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        sideways = tab.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        found |= {path: problems} if (problems := audit(tab) | ({"sideways": True} if sideways else {})) else {}
    tab.context.close()
    assert found == {}
    assert page.origins == {page.root}
    assert page.errors == []
