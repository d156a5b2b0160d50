"""The block that a session starts with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.learning.brief_layout import (
    NEWEST_HEAD,
    RECALLED_HEAD,
    BriefMaterial,
    ShownText,
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


def build(*, budget=None, summary_budget=5000, **parts):
    """Build the block of these parts."""
    records = [*parts.get("procedures", ()), *(hit.record for hit in parts.get("hits", ()) if hit.record)]
    references = {one.id: f"memory://{one.short}" for one in records}
    material = BriefMaterial(**{"rules": RULES, "references": references} | parts)
    return render_brief(material, secret=b"key", budget=budget, summary_budget=summary_budget)


def test_the_block_has_its_parts_in_order():
    """Rules, the summary and the lessons, procedures, and the notes that bear on the task."""
    procedure, decision = record("Build, then tag"), record()
    block = build(
        summary=text(), lessons=text("- Ask first.", "memory://root/learned.md"), procedures=(procedure,),
        hits=(Hit(score=0.5, record=decision),),
    )  # fmt: skip

    assert block.text.split("\n")[1:-1] == [
        "# Memory Guidance", "", "Memory root: memory://root", "", "1. A rule.", "", "Memory summary:",
        "[memory://root, 2026-05-17, from consolidation, trust agent]", "> - We use pnpm.",
        "Lessons:", "[memory://root/learned.md, 2026-05-17, from consolidation, trust agent]", "> - Ask first.", "",
        "Procedures of this project and of its user, newest first:",
        f"- [decisions, project, 2026-05-17, from user, trust user] Build, then tag (memory://{procedure.short})", "",
        "Notes that match the task, best first:",
        (
            "- [decisions, project, 2026-05-17, from user, trust user, score 0.50] Use pnpm, not npm"
            f" (memory://{decision.short})"
        ),
    ]  # fmt: skip


def test_the_block_is_absent_when_there_is_nothing():
    """Rules alone are not worth a word."""
    assert build().text == ""


def test_newest_notes_are_called_so():
    """What was not asked for does not pretend to bear on a task."""
    hits = (Hit(score=1, record=record()),)

    assert NEWEST_HEAD in build(hits=hits, asked=False).text
    assert RECALLED_HEAD not in build(hits=hits, asked=False).text


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


@given(st.integers(120, 3000), st.text(min_size=1, max_size=400), st.integers(1, 40))
def test_a_budget_is_never_exceeded(budget, content, count):
    """Whatever there is to say, the whole block is within its tokens, and so within four times as many characters."""
    hits = tuple(Hit(score=0.5, record=record(f"{content}x")) for _ in range(count))
    block = build(
        budget=budget, summary=text(content * 20), lessons=text(content), hits=hits,
        procedures=tuple(record(f"{content}y") for _ in range(20)),
    )  # fmt: skip

    assert block.tokens <= budget
    assert len(block.text) <= 4 * budget


def test_a_budget_below_the_rules_is_refused():
    """Rules that are cut in half are no rules."""
    with pytest.raises(InvalidInput, match="a budget of 10 tokens is too small: the rules alone take"):
        build(budget=10, summary=text())


def test_a_note_that_does_not_fit_is_told():
    """What is left out is counted."""
    block = build(budget=300, hits=(Hit(score=1, record=record("word " * 300)), Hit(score=0.5, record=record())))

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
    one = record()
    parts = {"summary": text(), "hits": (Hit(score=0.5, record=one),), "procedures": (one,)}

    assert build(**parts).text == build(**parts).text
    assert build(**parts | {"summary": text().replace(updated_at=DAY + timedelta(days=1))}).text != build(**parts).text


@given(st.text(), st.integers(0, 50))
def test_a_cut_text_fits(said, tokens):
    """A cut text is a beginning of the text with a mark, and within its tokens."""
    kept, was_cut = cut_to_tokens(said, tokens, "[cut]")

    assert estimate_tokens(kept) <= tokens
    assert was_cut or kept == said
    assert said.startswith(kept.removesuffix("[cut]").rstrip())
