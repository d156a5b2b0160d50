"""Keyboard and live news: the page by keys alone, and what other processes change."""

from __future__ import annotations

from playwright.sync_api import expect


def test_each_view_is_reached_by_two_letters_and_search_by_a_slash(page, tab):
    """G and a letter; letters do nothing in a field, and can be switched off."""
    for letter, view in (("t", "timeline"), ("r", "review"), ("i", "injected"), ("s", "sessions"), ("h", "health")):
        tab.keyboard.press("g")
        with tab.expect_navigation():
            tab.keyboard.press(letter)
        assert tab.url == page.url(view)
    with tab.expect_navigation():
        tab.keyboard.press("/")
    tab.keyboard.press("/")
    tab.keyboard.type("gt?")
    expect(tab.get_by_label("Search memory")).to_have_value("gt?")
    tab.get_by_label("Search memory").blur()
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog", name="Keyboard")).to_be_visible()
    tab.get_by_label("Letters are keys").uncheck()
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog", name="Keyboard")).to_be_hidden()
    tab.locator("main").focus()
    tab.keyboard.press("g")
    tab.keyboard.press("t")
    tab.wait_for_timeout(200)
    assert tab.url.startswith(page.url("?q=")) or tab.url == page.url()


def test_a_record_is_found_corrected_and_deleted_without_a_mouse(tab, ferry):
    """Tab reaches everything in order, what has the focus can be seen, and Enter and Space act."""
    tab.get_by_label("Search memory").focus()
    tab.keyboard.type("staging")
    tab.wait_for_url("**q=staging**")
    tab.get_by_label("Search memory").blur()
    tab.keyboard.press("j")
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    with tab.expect_navigation():
        tab.keyboard.press("Enter")
    with tab.expect_navigation():
        tab.keyboard.press("e")
    for _ in range(40):
        if tab.evaluate("document.activeElement.id") == "t":
            break
        tab.keyboard.press("Tab")
    tab.keyboard.press("Control+End")
    tab.keyboard.type(" Ask Ada first.")
    for _ in range(3):
        tab.keyboard.press("Tab")
    with tab.expect_navigation():
        tab.keyboard.press("Enter")
    tab.locator("#delete summary").focus()
    tab.keyboard.press("Enter")
    assert "Ask Ada first." in tab.locator(".record-text .memo").first.inner_text()
    tab.keyboard.press("Tab")
    with tab.expect_navigation():
        tab.keyboard.press("Space")
    assert [one for one in ferry.call("list", state="all", limit=50).records if "Staging" in one.record.content] == []


def test_what_another_process_changes_is_announced_and_nothing_moves_by_itself(page, tab, ferry):
    """A line offers the news; the reader asks for it."""
    tab.goto(page.url("timeline"))
    expect(tab.locator("#fresh")).to_be_hidden()
    ferry.add("A colleague has written this meanwhile", "facts")
    expect(tab.get_by_text("Show what changed")).to_be_visible(timeout=8_000)
    assert tab.get_by_text("A colleague has written this").count() == 0
    with tab.expect_navigation():
        tab.get_by_text("Show what changed").click()
    assert tab.get_by_text("A colleague has written this").is_visible()
