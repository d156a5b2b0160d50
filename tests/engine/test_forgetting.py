"""Forgetting takes a record's words out of the documents that repeat them, in the same write."""

from __future__ import annotations

import pytest

from commonplace.engine.forgetting import Erasure, clean_artifact, without_erased_sentences, words_only_in
from commonplace.model.changes import PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel, Source, Trust


@pytest.fixture
def put(store, clock, project):
    """Keep a document of the project."""

    def put(name, content, kind=DocumentKind.ARTIFACT, **metadata):
        now = clock.forward()
        document = Document(
            scope=project, kind=kind, name=name, digest=f"{name}{content}{now}", content=content, metadata=metadata,
            source=Source(channel=Channel.CONSOLIDATION), trust=Trust.AGENT, created_at=now, updated_at=now,
        )  # fmt: skip
        store.apply([PutDocument(document=document)])

    return put


@pytest.fixture
def texts(store, project):
    """Every document by name, with its text."""

    def texts():
        found = store.documents(DocumentFilter(scopes=frozenset({project})), limit=99)
        return {one.name: one.content for one in found if one.kind is not DocumentKind.ERASURE}

    return texts


def test_a_block_that_names_it_goes_with_the_record(memory, put, texts):
    """On every store; what names others stays, and what names both loses the reference."""
    gone = memory.remember("Use yarn", category="decisions").record
    stays = memory.remember("Use pnpm", category="decisions").record
    line = f"- Use pnpm (record {stays.short}; trust user)"
    put("MEMORY.md", f"# Memory\n\n## Decisions\n\n- Use yarn (record {gone.short}; trust user)\n{line}")
    put("memory_summary.md", f"- decisions: Use pnpm (record {gone.short}; record {stays.short})")
    memory.forget(gone.id)

    assert texts()["MEMORY.md"] == f"# Memory\n\n## Decisions\n\n{line}"
    assert texts()["memory_summary.md"] == f"- decisions: Use pnpm (record {stays.short})"


def test_an_artifact_of_which_nothing_is_left_goes(memory, put, texts):
    """Headings alone say nothing."""
    gone = memory.remember("Release: 1. tag 2. push", category="procedures").record
    put("MEMORY.md", f"# Memory\n\n## Procedures\n\n- Release (record {gone.short})")
    put("skills/release/SKILL.md", f"---\nname: release\n---\n\ntag, push\n\nSource: record {gone.short}; trust user")
    memory.forget(gone.id)
    assert texts() == {}


def test_other_documents_are_left_alone(memory, put, texts):
    """Lessons, files that are a person's, sessions that it was not made from."""
    gone = memory.remember("Use yarn", category="decisions").record
    put("learned.md", "yarn is odd")
    put("skills/mine/SKILL.md", f"yarn (record {gone.short})", by_hand=True)
    put("s2", "- yarn in another session", DocumentKind.EXTRACTION, records=[], digests={}, summary="yarn", slug=None)
    before = texts()
    memory.forget(gone.id)
    assert texts() == before


def test_what_is_written_while_it_forgets_is_looked_at_again(memory, through, put, texts):
    """A consolidation ends between the look and the write: what it wrote is cleaned as well."""
    gone = memory.remember("Use yarn", category="decisions").record
    put("MEMORY.md", f"- Use yarn (record {gone.short})\n- Mine")
    late = Late(memory.store, lambda: put("MEMORY.md", f"- Use yarn, always (record {gone.short})\n- Mine too"))
    through(over=late).forget(gone.id)
    assert texts() == {"MEMORY.md": "- Mine too"}

    again = memory.remember("Use yarn", category="decisions").record
    late = Late(memory.store, lambda: put("memory_summary.md", f"- Use yarn (record {again.short})\n- New"))
    through(over=late).forget(again.id)
    assert texts() == {"MEMORY.md": "- Mine too", "memory_summary.md": "- New"}


class Late:
    """A store to which somebody else writes right before the first write."""

    def __init__(self, store, meanwhile):
        self.store, self.meanwhile = store, meanwhile

    def __getattr__(self, name):
        """Everything else passes through."""
        return getattr(self.store, name)

    def apply(self, changes):
        """Make the changes, after those of somebody else."""
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        return self.store.apply(changes)


def test_words_that_others_tell_as_well_are_nobody_s_own():
    """Nor are numbers of steps, and words that say nothing."""
    assert words_only_in(["We use the yarn: 1. knit"], ["We use pnpm"]) == {"yarn", "knit"}


def test_a_person_s_block_keeps_its_place():
    """It stands behind what is left before it."""
    erasure = Erasure.of(["0123456789abc"], words=frozenset({"yarn"}))
    owned = [{"path": ["## A"], "after": "- yarn (record 0123456789)", "text": "- Mine"}]
    text = "## A\n\n- first\n- yarn (record 0123456789)\n- Mine"
    left = clean_artifact(
        "MEMORY.md", text, {"owned": owned, "struck": ["x"], "left_out": {"0123456789": "d"}}, erasure
    )

    assert left == (
        "## A\n\n- first\n- Mine",
        {"owned": [{"path": ["## A"], "after": "- first", "text": "- Mine"}], "struck": ["x"], "left_out": {}},
    )


def test_a_heading_in_the_words_of_what_is_erased_goes_too():
    """What stood under it stays, and so does a person's line, under what is above."""
    erasure = Erasure.of(["0123456789abc"], words=frozenset({"yarn"}))
    owned = [{"path": ["## Decisions", "### yarn"], "after": "- x (record 9876543210)", "text": "- Mine"}]
    text = "## Decisions\n\n### yarn\n\n- y (record 0123456789)\n- x (record 9876543210)\n- Mine"
    left = clean_artifact("MEMORY.md", text, {"owned": owned}, erasure)
    assert left == (
        "## Decisions\n\n- x (record 9876543210)\n- Mine",
        {"owned": [{"path": ["## Decisions"], "after": "- x (record 9876543210)", "text": "- Mine"}]},
    )


def test_sentences_go_one_by_one():
    """What is left is still a summary."""
    erasure = Erasure.of((), words=frozenset({"yarn"}))
    assert without_erased_sentences("Use pnpm; use yarn; ask Ada.", erasure) == "Use pnpm; ask Ada."
