"""What other tools keep, as facts: each form as its tool writes it, and what is wrong said by name."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from commonplace.model.errors import InvalidInput
from commonplace.model.records import Kind
from commonplace.records.foreign import graph, guidance, mem0, notes, role_export
from commonplace.records.foreign_export import between_marks, section
from stands import rows

AGENTS = """# Shop

The shop is a Django monolith with Postgres 16 behind it.

## Build and test

- Run `make test` before every commit.
- Deploy with:

```sh
make deploy
```

## Gotchas

1. The cart service caches prices for ten minutes.

<!-- commonplace:begin (ours) -->
- What we wrote here ourselves must not come back.
<!-- commonplace:end -->
"""

NOTE = """---
title: Coffee Brewing
permalink: coffee-brewing
---

# Coffee Brewing

Notes on how the office coffee is made best.

## Observations
- [method] Pour over gives a cleaner cup #brewing #manual (from tastings)
- [preference] The team likes light roasts

## Relations
- relates_to [[Water Temperature]]
"""


def said(found):
    """Each fact with its category."""
    return [(one.draft.category, one.draft.content) for one in found]


def drafts(reader, *file):
    """What a reader finds in a file."""
    return [one.draft for one in reader(*file)]


def test_guidance_is_cut_into_blocks_under_their_headings():
    """Paragraphs and items are facts, code stays with its sentence, headings say the category, our own block is out."""
    assert said(guidance("AGENTS.md", AGENTS)) == [
        ("principles", "The shop is a Django monolith with Postgres 16 behind it."),
        ("procedures", "Run `make test` before every commit."),
        ("procedures", "Deploy with:\n\n```sh\nmake deploy\n```"),
        ("incidents", "The cart service caches prices for ten minutes."),
    ]


def test_guidance_is_found_by_its_headings_and_names_its_file():
    """What stands above a block is kept beside it."""
    *_, last = guidance("docs/AGENTS.md", AGENTS)
    assert last.draft.metadata == {"file": "docs/AGENTS.md", "keywords": ["Shop", "Gotchas"]}
    assert last.draft.ref.startswith("docs/AGENTS.md#")


def test_a_note_gives_its_observations_relations_and_prose():
    """Observations keep category and tags, relations become sentences about the note."""
    found = list(notes("coffee.md", NOTE))
    assert said(found) == [
        ("facts", "Coffee Brewing: Pour over gives a cleaner cup (from tastings)"),
        ("preferences", "Coffee Brewing: The team likes light roasts"),
        ("facts", "Coffee Brewing relates_to Water Temperature"),
        ("facts", "Notes on how the office coffee is made best."),
    ]
    assert found[0].draft.tags == {"brewing", "manual"}


def test_a_graph_gives_observations_and_relations():
    """Entities speak about themselves; a relation is one sentence."""
    lines = [
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Speaks Welsh", "Likes tea"]},
        {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"},
    ]
    assert said(graph("memory.json", "\n".join(map(json.dumps, lines)))) == [
        ("facts", "Ada: Speaks Welsh"),
        ("preferences", "Ada: Likes tea"),
        ("facts", "Ada works at Acme"),
    ]


def test_a_line_of_a_graph_ends_where_its_writer_ended_it():
    """JavaScript writes other marks of a line's end into a text as they are."""
    entity = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Tea\u2028at\x85four"]}
    text = json.dumps(entity, ensure_ascii=False)
    assert said(graph("memory.json", f"{text}\r\n{text}\n")) == [("facts", "Ada: Tea\u2028at\x85four")] * 2


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"results": rows}, lambda rows: {"memories": rows}])
def test_an_export_of_mem0_keeps_its_dates(wrap):
    """A list, or one under a name; the date is when it was so, not now."""
    rows = [
        {"id": "a1", "memory": "Likes hiking", "user_id": "ada", "created_at": "2024-07-20T01:30:36-07:00"},
        {"id": "a2", "memory": "Works on the build", "categories": ["work rules"], "created_at": None},
    ]
    first, second = drafts(mem0, "m.json", json.dumps(wrap(rows)))
    assert (first.category, first.metadata["user_id"]) == ("preferences", "ada")
    assert first.occurred_at == datetime(2024, 7, 20, 8, 30, 36, tzinfo=UTC)
    assert (second.category, second.tags) == ("principles", {"work rules"})


def test_a_role_export_keeps_its_kinds():
    """Semantic, procedural and episodic stay what they are."""
    rows = [
        {"id": 1, "content": "Uses pnpm", "memory_type": "semantic", "category": "tools"},
        {"id": 2, "content": "Deploy by tag", "memory_type": "procedural", "created_at": "2025-01-02T03:04:05"},
    ]
    first, second = drafts(role_export, "r.json", json.dumps(rows))
    assert (first.kind, first.category, first.metadata["category"]) == (Kind.SEMANTIC, "facts", "tools")
    assert (second.kind, second.occurred_at) == (Kind.PROCEDURAL, datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC))


@rows(
    "reader, text, says",
    [
        (
            role_export,
            '[{"content": "x", "memory_type": [1]}]',
            "memory_type must be one of semantic, procedural, ",
        ),
        (graph, "{", "f:1: not JSON"),
        (graph, '{"type": "note"}', "f:1: neither an entity nor a relation"),
        (graph, '{"type": "entity", "name": "", "entityType": "x"}', "f:1: 'name' is missing or no text"),
        (
            graph,
            '{"type": "entity", "name": "A", "entityType": "x", "observations": [1]}',
            "observations of 'A' must be",
        ),
        (graph, "[]", "f:1 must be an object, not []"),
        (mem0, '{"rows": []}', "f holds no list of memories"),
        (mem0, '[{"id": 1}]', "f: memory 0 has no text under 'memory'"),
        (mem0, '[{"memory": "x y z", "created_at": "soon"}]', "f: memory 0: created_at must be a date"),
        (role_export, '[{"content": "x", "memory_type": "odd"}]', "f: memory 0: memory_type must be one of semantic"),
        (role_export, "[1]", "f holds no list of memories"),
    ],
)
def test_what_is_wrong_is_named(reader, text, says):
    """The file, the place in it, and what should be there."""
    with pytest.raises(InvalidInput) as caught:
        list(reader("f", text))
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["", "# Mine\n", "# Mine", "# Mine\n\nText.\n"])
def test_our_block_comes_and_goes_without_a_trace(text):
    """Written twice it is there once; everything before and after it stays as it was."""
    once = between_marks(text, "one", file="f")
    assert between_marks(once, "one", file="f") == once
    twice = between_marks(f"{once}After.\n", "two", file="f")
    assert twice.startswith(text)
    assert twice.endswith("<!-- commonplace:end -->\nAfter.\n")
    assert "one" not in twice


def test_broken_marks_are_not_guessed_at():
    """A file with half a block, or with one inside out, is refused, and says so."""
    with pytest.raises(InvalidInput, match="has the end of our block before its beginning"):
        between_marks("<!-- commonplace:end -->\n<!-- commonplace:begin -->\n", "x", file="f")
    with pytest.raises(InvalidInput, match="has 1 beginnings and 0 ends of our block"):
        between_marks("<!-- commonplace:begin -->\n", "x", file="f")


def test_nothing_remembered_is_said():
    """An empty memory makes a section that says so."""
    assert section([]).endswith("Nothing yet.\n")
