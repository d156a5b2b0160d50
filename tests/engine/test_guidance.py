"""The block that a session starts with."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.learning.brief_layout import (
    BriefMaterial,
    Note,
    Part,
    ShownText,
    allocate,
    cut_to_tokens,
    limit_external,
    render_brief,
)
from commonplace.model.documents import Chunk, DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.ids import new_id
from commonplace.model.queries import Hit
from commonplace.model.records import Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import estimate_tokens

DAY = datetime(2026, 5, 17, 9, 30, tzinfo=UTC)
HERE = Scope.of(("project", "here"))
RULES = "# Memory Guidance\n\nMemory root: memory://root\n\n1. A rule.\n\nMemory summary:\n{{memory_summary}}\n"


def record(content="Use pnpm, not npm", trust=Trust.USER):
    """A decision of the project."""
    return Record(
        id=new_id(DAY), scope=HERE, kind=Kind.SEMANTIC, category="decisions", content=content, trust=trust,
        source=Source(channel=Channel.USER), created_at=DAY, updated_at=DAY, version=1,
    )  # fmt: skip


def text(content="- We use pnpm.", url="memory://root"):
    """An artifact."""
    return ShownText(url=url, text=content, updated_at=DAY, by="consolidation", trust=Trust.AGENT)


def note(part, content="Use pnpm, not npm", score=1.0, **fields):
    """A record in one part of a brief."""
    return Note(hit=Hit(score=score, record=record(content)), part=part, **fields)


def build(*notes, budget=None, summary_budget=5000, **parts):
    """Build the block of these parts."""
    references = {one.id: f"memory://{one.hit.record.short}" for one in notes}
    material = BriefMaterial(**{"rules": RULES, "references": references, "notes": notes} | parts)
    return render_brief(material, secret=b"key", budget=budget, summary_budget=summary_budget)


def test_the_block_has_its_parts_in_order():
    """Rules, the summary and the lessons, what holds always, what matches the task, what is new."""
    rule, decision, fresh = (
        note(Part.STANDING, "Ask first"),
        note(Part.MATCHING, score=0.5),
        note(Part.NEWEST, "Ada left"),
    )
    block = build(
        rule, decision, note(Part.UNAPPROVED, "Be brief"), fresh, summary=text(),
        lessons=text("- Test it.", "memory://root/learned.md"),
    )  # fmt: skip

    lines = [re.sub(r"\(memory://\w+\)", "(memory://ID)", line) for line in block.text.split("\n")[1:-1]]
    assert lines == [
        "# Memory Guidance", "", "Memory root: memory://root", "", "1. A rule.", "", "Memory summary:",
        "[memory://root, 2026-05-17, from consolidation, trust agent]", "> - We use pnpm.",
        "Lessons:", "[memory://root/learned.md, 2026-05-17, from consolidation, trust agent]", "> - Test it.", "",
        "What holds always, written or approved by the user, most important first:",
        "- [decisions, project, 2026-05-17] Ask first (memory://ID)", "",
        "Notes that match the task, best first:",
        "- [decisions, project, 2026-05-17, from user, trust user, score 0.50] Use pnpm, not npm (memory://ID)", "",
        "Preferences and rules that the user has not approved:",
        "- [decisions, project, 2026-05-17, from user, trust user] Be brief (memory://ID)", "",
        "New, by when it was said:",
        "- [decisions, project, 2026-05-17, from user, trust user] Ada left (memory://ID)",
    ]  # fmt: skip


def test_the_block_is_absent_when_there_is_nothing():
    """Rules alone are not worth a word."""
    assert build().text == ""


def test_the_summary_is_not_searched_for_places():
    """A summary that contains the mark of the summary's place stays what it is."""
    assert build(summary=text("a {{memory_summary}} b")).text.count("{{memory_summary}}") == 1


def test_rules_without_a_place_for_the_summary_are_refused():
    """The summary would silently be missing."""
    with pytest.raises(InvalidInput, match="memory_summary"):
        build(rules="Be good.", summary=text())


def test_a_long_summary_is_cut_at_its_limit_with_a_mark():
    """It ends at a line, says so, and says where the rest is; the caller is told."""
    block = build(summary=text("- one more fact\n" * 5000), summary_budget=5000)

    quoted = [line for line in block.text.split("\n") if line.startswith(">")]
    assert 4900 <= estimate_tokens("\n".join(quoted)) <= 5000
    assert set(quoted) == {"> - one more fact"}
    assert "[cut here; all of it: memory://root]" in block.text
    assert block.notes == ("memory://root was cut: it does not fit",)


def test_the_lessons_share_the_budget_of_the_summary():
    """The summary comes first; lessons get what it leaves."""
    lessons = text("- lesson\n" * 500, "memory://root/learned.md")
    block = build(summary=text("- fact\n" * 60), lessons=lessons, summary_budget=300)

    assert block.text.count("> - fact") == 60
    assert 0 < block.text.count("> - lesson") < 100


@given(st.integers(150, 3000), st.text(min_size=1, max_size=400), st.integers(1, 40))
def test_a_budget_is_never_exceeded(budget, content, count):
    """Whatever there is to say, the whole block is within its tokens, and so within four times as many characters."""
    notes = [note(part, f"{content} {part} {n}") for part in Part for n in range(count)]
    block = build(*notes, budget=budget, summary=text(content * 20), lessons=text(content))

    assert block.tokens <= budget
    assert len(block.text) <= 4 * budget


def test_what_one_part_does_not_need_goes_to_the_others():
    """Forty notes that match fill a budget that nothing else asks for, and forty rules likewise."""
    for part in (Part.MATCHING, Part.STANDING):
        block = build(*(note(part, f"Note number {n} about the release") for n in range(200)), budget=4000)
        assert 3850 < block.tokens <= 4000


def test_what_holds_always_has_tokens_of_its_own():
    """A long summary and a hundred matching notes leave a thousand tokens for it."""
    rules = [note(Part.STANDING, f"Rule number {n} of this project") for n in range(25)]
    notes = [note(Part.MATCHING, f"Note number {n} about the release") for n in range(100)]
    block = build(*rules, *notes, budget=2500, summary=text("- one more fact\n" * 2000))

    assert len(block.of(Part.STANDING)) == 25
    assert len(block.of(Part.MATCHING)) > 10
    assert block.text.count("> - one more fact") > 50


@pytest.mark.parametrize(
    ("room", "shares"), [(None, (30, 60, 9)), (99, (30, 60, 9)), (60, (25, 25, 9)), (30, (12, 12, 6)), (0, (0, 0, 0))]
)
def test_tokens_are_shared_out_by_what_is_wanted(room, shares):
    """Who wants less than their share leaves the rest to the others."""
    granted = allocate(room, {"a": 30, "b": 60, "c": 9}, {"a": 0.4, "b": 0.4, "c": 0.2})

    assert tuple(granted[name] for name in "abc") == shares


def test_what_stands_above_is_not_said_again_in_the_summary():
    """A line of the summary with the same words, or with the id, goes; so does a heading that has nothing left."""
    rule = note(Part.STANDING, "Never push to main")
    summary = f"# Memory\n\n## Rules\n\n- principles: Never push to main. (record {rule.hit.record.short}; trust user)"
    block = build(rule, summary=text(f"{summary}\n\n## Facts\n\n- Ada owns billing."))

    assert block.text.count("Never push") == 1
    assert "## Rules" not in block.text
    assert "> ## Facts" in block.text


def test_a_note_that_the_summary_has_is_not_shown_twice():
    """What is new and what matches is left out where the summary says it."""
    notes = (note(Part.NEWEST, "Ada owns billing"), note(Part.MATCHING, "Ada owns the API"))
    block = build(*notes, summary=text("- decisions: Ada owns billing. (record 00000000; trust user)"))

    assert block.text.count("Ada owns billing") == 1
    assert "Ada owns the API" in block.text
    assert block.notes == ()


def test_an_older_note_is_marked():
    """Whoever reads it sees that there is a newer one, and where."""
    block = build(note(Part.MATCHING, score=0.5, newer="memory://abcdefgh"))

    assert "[decisions, project, 2026-05-17, older than memory://abcdefgh, from user" in block.text


def test_a_long_note_is_shown_from_its_matching_part():
    """The sentence that matched is there, with marks where it was cut."""
    content = f"{'Background. ' * 300}Start it with --numbat-mode. {'More of it. ' * 300}"
    block = build(note(Part.MATCHING, content, start=content.index("Start it")))

    assert "score 1.00] … Start it with --numbat-mode. More of it." in block.text
    assert "[cut here; all of it: memory://" in block.text


def test_a_budget_below_the_rules_is_refused():
    """Rules that are cut in half are no rules."""
    with pytest.raises(InvalidInput, match="a budget of 10 tokens is too small: the rules alone take"):
        build(budget=10, summary=text())


def test_a_note_that_does_not_fit_is_told():
    """What is left out is counted."""
    block = build(note(Part.MATCHING, "word " * 300), note(Part.MATCHING, score=0.5), budget=300)

    assert [hit.score for hit in block.hits] == [0.5]
    assert block.notes == ("1 of the notes did not fit into the budget",)


def test_at_most_a_third_comes_from_outside():
    """Ten grafted records at the top of the list fill no more than a third of it."""
    outside = [Hit(score=0.9, record=record(f"graft {n}", Trust.EXTERNAL)) for n in range(10)]
    inside = [Hit(score=0.5, record=record(f"fact {n}")) for n in range(20)]
    chosen, passed = limit_external(outside + inside, limit=10)

    assert len(chosen) == 10
    assert sum(hit.record.trust is Trust.EXTERNAL for hit in chosen) == 3
    assert passed == 7


def test_only_what_comes_from_outside_is_nothing():
    """Nobody but outsiders is nobody to be shown."""
    chunk = Chunk(scope=HERE, kind=DocumentKind.SESSION, document="s", seq=0, ref="1", text="x", trust=Trust.EXTERNAL)
    assert limit_external([Hit(score=1, chunk=chunk)], limit=10) == ([], 1)


def test_the_same_material_makes_the_same_bytes():
    """There is no clock and no chance in the block."""
    notes = (note(Part.STANDING), note(Part.MATCHING, "Ask first"))

    assert build(*notes, summary=text()).text == build(*notes, summary=text()).text
    assert build(*notes, summary=text().replace(updated_at=DAY + timedelta(days=1))).text != build(*notes).text


@given(st.text(), st.integers(0, 50))
def test_a_cut_text_fits(said, tokens):
    """A cut text is a beginning of the text with a mark, and within its tokens."""
    kept, was_cut = cut_to_tokens(said, tokens, "[cut]")

    assert estimate_tokens(kept) <= tokens
    assert was_cut or kept == said
    assert said.startswith(kept.removesuffix("[cut]").rstrip())
