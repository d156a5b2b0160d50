"""Consolidation by rules, whatever the records say: nothing live is lost, and a person's words stay."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from commonplace.learning.hand_edits import Edits, find_edits, merge_edits
from commonplace.model.records import CATEGORIES
from commonplace.text.blocks import blocks, escape_tags, join_blocks
from commonplace.text.cleaning import clean, plain_line

sys.path.insert(0, str(Path(__file__).parents[1]))
from stands import Clock
from workshop import Shop

MARKDOWN = st.sampled_from(
    ["# ", "## Decisions", "- ", "1. ", "```", "  ", "\n", "\n\n", "> ", "(record ", "* ", "~~~"]
)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12) | st.sampled_from(["use", "pnpm", "never"])
TEXTS = st.lists(MARKDOWN | WORDS, min_size=1, max_size=12).map("".join)


def kept(text):
    """A text as a gate lets it through."""
    return clean(text, what="a text")[0]


RECORDS = st.lists(
    st.tuples(TEXTS.map(kept).filter(bool), st.sampled_from([*CATEGORIES, "general"]), st.sampled_from([None, "a"])),
    min_size=1, max_size=8,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(RECORDS, TEXTS.map(kept))
def test_no_live_record_is_lost_and_a_persons_words_stay(records, words):
    """After two runs and a hand edit MEMORY.md has every line of every live record, and the edit."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(folder, Clock())
        for content, category, about in records:
            shop.keep(content, category, metadata={"subject": about} if about else {})
        shop.run()
        own = f"Ada says: {plain_line(words)}".strip()
        shop.write(f"{shop.text()}\n{own}\n")
        shop.keep("One more fact has come")
        shop.run()
        text = shop.text()
        for record in shop.records.values():
            if record.archived_at is None:
                assert all(escape_tags(plain_line(line)) in text for line in record.content.split("\n"))
                assert f"record {record.short}" in text
        assert own in text or plain_line(own) in text
        assert shop.files == shop.artifacts
        shop.store.close()


@settings(max_examples=200, deadline=None)
@given(TEXTS.map(kept))
def test_blocks_keep_every_word(text):
    """Cutting and joining changes blank lines alone, and twice is as good as once."""
    again = join_blocks(blocks(text))
    assert again.split() == text.split()
    assert join_blocks(blocks(again)) == again


@settings(max_examples=150, deadline=None)
@given(TEXTS.map(kept), TEXTS.map(kept))
@example("```# # #", "```# - #")  # a list's marker in the middle of a line is no marker
def test_an_edit_is_taken_in_once(base, file):
    """Every block of the edited file is in the woven text, and weaving again finds no further edit."""
    base = join_blocks(blocks(base))
    edits = find_edits(base, file, Edits())
    text = merge_edits(base, edits)
    assert {block.text for block in blocks(file) if not block.level} <= {block.text for block in blocks(text)} | {
        block.text for block in blocks(base)
    }
    again = find_edits(text, text, edits)
    assert set(again.texts) == set(edits.texts)
    assert merge_edits(base, again) == text
