"""What a person does on the page: find, read, correct, pin, hold, archive, delete; review; settings; a backup."""

from __future__ import annotations

import re

from tests.page.conftest import audit, follow, serve_page

from commonplace.model.records import Channel


def records(ferry, **named):
    """The records of the project, as the engine has them."""
    return [one.record for one in ferry.call("list", limit=50, **named).records]


def one(ferry, words, **named):
    """The record that has these words."""
    return next(record for record in records(ferry, **named) if words in record.content)


def open_record(page, tab, record):
    """Open the view of a record."""
    tab.goto(page.url(f"records/{record.id}"))


def test_someone_who_has_never_seen_the_command_line_corrects_and_deletes_a_wrong_memory(tab, ferry):
    """Search while typing, open, edit, save; search again, delete, and it is gone from the store and the disk."""
    tab.get_by_label("Search memory").press_sequentially("staging nodes")
    follow(tab, tab.get_by_role("link", name=re.compile("Staging runs on two nodes")))
    follow(tab, tab.get_by_role("link", name="Edit"))
    tab.get_by_label("Text").fill("Staging runs on three nodes.")
    follow(tab, tab.get_by_role("button", name="Save record"))
    assert tab.get_by_role("status").filter(has_text="Saved.").is_visible()
    assert tab.locator(".versions ins").first.inner_text().strip() == "three"
    staging = one(ferry, "Staging")
    assert (staging.content, staging.version) == ("Staging runs on three nodes.", 2)

    tab.get_by_text("Delete this record …").click()
    assert "This cannot be undone" in tab.locator("#delete").inner_text()
    follow(tab, tab.get_by_role("button", name="Delete for good"))
    assert tab.get_by_role("heading", name="Deleted for good").is_visible()
    assert [record for record in records(ferry, state="all") if "Staging" in record.content] == []
    assert [path for path in ferry.root.rglob("*.md") if "Staging" in path.read_text(encoding="utf-8")] == []


def test_results_come_while_typing_with_their_words_marked_and_their_score_explained(page, tab):
    """The address follows, so that reload and back show the same; "Why?" opens the parts."""
    tab.get_by_label("Search memory").press_sequentially("webhooks")
    tab.wait_for_url(page.url("?q=webhooks**"))
    assert tab.locator("mark").first.inner_text().lower() == "webhooks"
    assert tab.evaluate("document.activeElement.id") == "q"
    tab.locator(".why summary").first.click()
    assert tab.get_by_role("img", name=re.compile(r"Score 0\.\d+ of 1")).first.is_visible()
    assert "The parts add up to" in tab.locator(".why-body").first.inner_text()


def test_filters_narrow_and_the_past_can_be_searched(page, tab, ferry):
    """Category, trust and state; a day in the past shows what held then, and what replaced it since."""
    tab.goto(page.url("?state=archived"))
    assert "flags.toml" in tab.locator("#results").inner_text()
    tab.goto(page.url("?trust=external"))
    assert tab.locator(".hit").count() == 1
    then = one(ferry, "pnpm, not npm", state="all").created_at
    tab.goto(page.url(f"?q=bun+or+pnpm&as_of={then:%Y-%m-%d}"))
    assert "Memory as it was on" in tab.locator(".note").inner_text()
    assert tab.locator(".hit a.memo").all_inner_texts() == ["Use pnpm, not npm, in this repository"]
    assert "now: Use bun" in tab.locator(".hit").inner_text()
    follow(tab, tab.locator(".hit a.memo"))
    assert "as it was on" in tab.locator(".note").first.inner_text()


def test_a_record_is_pinned_held_released_archived_and_restored(page, tab, ferry):
    """Each with the words that say what happens next, and the store agrees."""
    export = one(ferry, "nightly export")
    open_record(page, tab, export)
    for button, said, holds in (
        ("Pin p", "Pinned.", lambda record: record.pinned),
        ("Unpin p", "Unpinned.", lambda record: not record.pinned),
        ("Hold h", "Held:", lambda record: record.held),
        ("Release h", "Released", lambda record: not record.held),
        ("Archive", "Archived:", lambda record: record.archived_at is not None),
        ("Restore", "Restored.", lambda record: record.archived_at is None),
    ):
        follow(tab, tab.get_by_role("button", name=button, exact=True).first)
        assert tab.locator(".toast").inner_text().strip().startswith(said)
        assert holds(ferry.call("get", export.id).record), button


def test_an_earlier_version_is_restored(page, tab, ferry):
    """The version before is a click away, and stays in the history."""
    refunds = next(record for record in records(ferry) if record.pinned)
    open_record(page, tab, refunds)
    follow(tab, tab.get_by_role("button", name="Restore version 1"))
    assert ferry.call("get", refunds.id).record.content.endswith("inside a database transaction.")


def test_a_record_shows_its_source_its_chain_its_use_and_its_file(page, tab, ferry):
    """The turn that it rests on is quoted and linked; what it replaced is a graph; each use is listed."""
    open_record(page, tab, one(ferry, "Deploy ferry only"))
    assert tab.locator(".quote .src").inner_text().startswith("deploy ferry only from the main branch")
    follow(tab, tab.get_by_role("link", name=re.compile("Read in session")))
    assert tab.get_by_role("heading", name=re.compile("Remember: deploy ferry")).is_visible()

    open_record(page, tab, one(ferry, "Use bun"))
    assert tab.locator(".chain li").count() == 2
    follow(tab, tab.locator(".chain a"))
    assert tab.get_by_role("heading", name="What replaced it").is_visible()

    refunds = next(record for record in records(ferry) if record.pinned)
    open_record(page, tab, refunds)
    assert "cited in turn" in tab.get_by_role("group", name="Where it was used").inner_text()
    follow(tab, tab.get_by_role("link", name=re.compile("refunds-go-through")))
    assert "The API call to Quayline" in tab.get_by_role("region", name="Text of the file").inner_text()


def test_two_tabs_that_edit_one_record_show_the_conflict_as_a_diff(page, tab, ferry):
    """The second saver loses nothing: both changes are shown, and those that do not overlap are merged."""
    export = one(ferry, "nightly export")
    other = page.again()
    for each in (tab, other):
        each.goto(page.url(f"records/{export.id}/edit"))
    tab.get_by_label("Text").fill("The nightly export writes to the bucket ferry-exports-us")
    follow(tab, tab.get_by_role("button", name="Save record"))
    other.get_by_label("Text").fill("The hourly export writes to the bucket ferry-exports-eu")
    follow(other, other.get_by_role("button", name="Save record"))
    assert other.get_by_role("alert").inner_text().strip().startswith("Your text is not saved yet.")
    assert [side.inner_text().strip() for side in other.locator(".sides ins").all()] == ["ferry-exports-us", "hourly"]
    assert audit(other) == {}
    follow(other, other.get_by_role("button", name="Save this text"))
    assert one(ferry, "export").content == "The hourly export writes to the bucket ferry-exports-us"
    other.context.close()


def strike(tab, key):
    """Press a key that opens another page."""
    with tab.expect_navigation():
        tab.keyboard.press(key)


def test_what_waits_is_decided_by_single_keys(page, tab, ferry):
    """A accepts, x rejects, u takes it back, h holds, e edits; the queue empties and says so."""
    tab.goto(page.url("review?tab=new"))
    for key in ("a", "u"):
        strike(tab, key)
    assert not one(ferry, "Deploy ferry only").has_authority
    strike(tab, "e")
    tab.get_by_label("Text").fill("Deploy ferry from main, with `just release`.")
    follow(tab, tab.get_by_role("button", name="Accept in these words"))
    assert one(ferry, "Deploy ferry from main").has_authority

    tab.goto(page.url("review?tab=outside"))
    strike(tab, "h")
    assert one(ferry, "qctl replay", state="held").held
    strike(tab, "x")
    tab.goto(page.url("review?tab=changes"))
    assert tab.locator(".card del").first.is_visible()
    strike(tab, "x")
    tab.goto(page.url("review"))
    assert tab.get_by_text("Nothing to review.").is_visible()
    refunds = next(record for record in records(ferry) if record.pinned)
    assert "outbox worker" in refunds.content


def test_a_near_duplicate_is_merged_or_replaces_the_other(page, tab, ferry):
    """Both are side by side, with the difference and the three verdicts."""
    ferry.add("The hourly export writes to the bucket ferry-exports-eu", "principles", channel=Channel.AGENT)
    tab.goto(page.url("review?tab=new"))
    follow(tab, tab.get_by_text("The hourly export").first)
    assert tab.get_by_role("heading", name="In memory already: about the same").is_visible()
    follow(tab, tab.get_by_role("button", name=re.compile("^Merge")))
    tab.get_by_label("Text").fill("The nightly and the hourly export write to the bucket ferry-exports-eu")
    follow(tab, tab.get_by_role("button", name="Save the merged record"))
    assert [record.content for record in records(ferry) if "export" in record.content] == [
        "The nightly and the hourly export write to the bucket ferry-exports-eu"
    ]


def test_what_an_agent_received_is_shown_note_by_note(page, tab):
    """The block as it was, what became of each note, and the totals of the weeks as a chart with a table."""
    tab.goto(page.url("injected"))
    assert tab.get_by_role("img", name=re.compile("Tokens injected per week")).is_visible()
    tab.get_by_text("Show as table").click()
    assert "Week of" in tab.get_by_role("group", name="Weeks").inner_text()
    follow(tab, tab.locator(".pick a").last)
    assert "matches its receipt" in tab.locator("main").inner_text()
    assert "cited" in tab.locator(".ln.cited .gut").first.inner_text()
    follow(tab, tab.get_by_role("link", name="Plain text"))
    assert "<memory seal=" in tab.locator("body").inner_text()


def test_a_session_is_read_and_deleted_with_what_was_made_of_it(page, tab, ferry):
    """From a turn to its record; the confirmation lists both choices; the records go with it."""
    tab.goto(page.url("sessions"))
    follow(tab, tab.get_by_role("link", name=re.compile("Remember: deploy ferry")))
    assert tab.locator(".made a").first.inner_text().startswith("Deploy ferry only")
    tab.get_by_text("Delete this session …").click()
    assert "Keep what you accepted (none)" in tab.locator(".danger-zone").inner_text()
    follow(tab, tab.get_by_role("button", name="Delete for good"))
    assert tab.get_by_role("heading", name="Session deleted for good").is_visible()
    assert [record for record in records(ferry) if "Deploy ferry" in record.content] == []
    assert [one.id for one in ferry.call("sessions").sessions] == ["7f3a"]


def test_the_timeline_says_what_happened_and_is_filtered(page, tab):
    """Newest first, by day; j and Enter open what is marked."""
    tab.goto(page.url("timeline"))
    assert tab.locator(".ev .verb").first.inner_text().strip() == "Added"
    tab.get_by_label("Injected").uncheck()
    tab.wait_for_url("**k=added**")
    assert "Injected" not in tab.locator(".ev .verb").all_inner_texts()
    tab.keyboard.press("j")
    strike(tab, "Enter")
    assert "nightly export" in tab.locator("h1").inner_text()


def test_health_names_the_file_that_cannot_be_read_with_its_line(page, tab, ferry):
    """The problem is counted beside the view's name, and goes when the file is mended."""
    broken = ferry.root / ".commonplace" / "facts" / "flags.md"
    broken.write_text("---\ncategory: facts\ntags: [flags\n---\n\nNo end.\n", encoding="utf-8")
    tab.goto(page.url())
    assert tab.get_by_role("link", name="Health 1 problems").is_visible()
    follow(tab, tab.get_by_role("link", name=re.compile("Health")))
    assert "facts/flags.md, line 4" in tab.locator(".problem").inner_text()
    assert audit(tab) == {}
    broken.unlink()
    tab.reload()
    assert "No problems." in tab.locator(".note").first.inner_text()


def test_health_checks_everything_and_makes_a_backup(page, tab, ferry):
    """Both buttons say what they have done."""
    tab.goto(page.url("health"))
    follow(tab, tab.get_by_role("button", name="Check everything"))
    assert "database, full-text index and rows" in tab.get_by_role("group", name="Checks").inner_text()
    follow(tab, tab.get_by_role("button", name="Back up now"))
    assert tab.locator(".toast").inner_text().strip().startswith("Copied")
    assert len(list((ferry.home / "backups").glob("*.db"))) == 1


def test_settings_are_changed_in_their_file_and_its_comments_stay(page, tab, ferry):
    """The form shows the difference first; saving writes it, and nothing else of the file changes."""
    before = ferry.config.read_text(encoding="utf-8")
    tab.goto(page.url("health"))
    tab.get_by_label("recall_limit").fill("12")
    follow(tab, tab.get_by_role("button", name="Review changes …").first)
    assert tab.locator(".diff ins").inner_text() == "recall_limit: 12"
    assert ferry.config.read_text(encoding="utf-8") == before
    assert audit(tab) == {}
    follow(tab, tab.get_by_role("button", name="Save settings"))
    assert tab.get_by_text("Settings saved.").is_visible()
    assert ferry.config.read_text(encoding="utf-8") == before.replace("recall_limit: 10", "recall_limit: 12")
    assert tab.get_by_label("recall_limit").input_value() == "12"


def test_settings_that_were_changed_meanwhile_or_are_wrong_are_not_saved(page, tab, ferry):
    """What was typed is still in the form, beside the reason."""
    tab.goto(page.url("health"))
    tab.get_by_label("models.default").fill("openai:x")
    follow(tab, tab.get_by_role("button", name="Review changes …").first)
    ferry.config.write_text(ferry.config.read_text(encoding="utf-8") + "# by hand\n", encoding="utf-8")
    follow(tab, tab.get_by_role("button", name="Save settings"))
    assert "Not saved." in tab.get_by_role("alert").inner_text()
    assert tab.get_by_label("models.default").input_value() == "openai:x"


def test_whoever_writes_the_first_record_sees_it_on_the_page(chromium, fresh):
    """An empty memory says what to do next in three ways, and the first of them works there."""
    with serve_page(chromium, fresh) as page:
        tab = page.enter()
        assert tab.get_by_text("Nothing is stored here yet.").is_visible()
        assert audit(tab) == {}
        for path, words in (
            ("timeline", "Nothing has happened yet."), ("review", "Nothing to review."),
            ("injected", "No agent has received anything yet."), ("sessions", "No sessions yet."),
            ("health", "No problems."),
        ):  # fmt: skip
            tab.goto(page.url(path))
            assert tab.get_by_text(words).first.is_visible(), path
        tab.goto(page.url())
        tab.get_by_label("Something an agent should know").fill("Use pnpm, not npm")
        follow(tab, tab.get_by_role("button", name="Save record"))
        assert tab.get_by_role("heading", name="Record: Use pnpm, not npm").count() == 1
        assert fresh.call("list", scope="project").records[0].record.content == "Use pnpm, not npm"
        tab.context.close()
