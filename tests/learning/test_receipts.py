"""Receipts of what sessions were shown, and what became of it."""

from __future__ import annotations

import pytest

from commonplace.engine.transcripts import Turn
from commonplace.learning import receipts
from commonplace.learning.addresses import Addresses
from commonplace.learning.brief import inject, rules_in
from commonplace.model.changes import PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import InvalidInput, NotFound, StoreError
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel, Source, Trust
from commonplace.stores.sqlite.store import SqliteStore


class ReadOnly(SqliteStore):
    """A store on a disk that takes nothing more."""

    def apply(self, _changes):
        """Refuse, as such a disk does."""
        raise StoreError("the disk is read-only")


@pytest.fixture
def shown(opened, folder, clock):
    """Show a session the brief for a task; returns the receipt's name."""

    def shown(task="pnpm", session="s1"):
        shelf = Addresses(memory=opened.memory, scope=opened.where.project, folder=str(folder), secret=opened.secret)
        injection = inject(shelf, opened.recall, task, rules=rules_in(None), limit=10, summary_budget=5000)
        clock.forward()
        return receipts.save_brief_receipt(opened, injection, session=session)[0]

    return shown


@pytest.fixture
def said(opened):
    """Index what the agent of a session said, after a question of its user."""

    def said(*texts, session="s1", speaker="assistant"):
        turns = [Turn(ref=str(number), text=text, speaker=speaker) for number, text in enumerate(texts, start=1)]
        opened.memory.index(DocumentKind.SESSION, session, turns)

    return said


@pytest.fixture
def fate(opened):
    """What became of the one thing that a session was shown."""

    def fate(session="s1"):
        [only] = receipts.session_use(opened.memory, session).uses
        return only

    return fate


def documents(opened):
    """Every receipt."""
    where = DocumentFilter(scopes=frozenset({opened.where.project}), kinds=frozenset({DocumentKind.RECEIPT}))
    return opened.store.documents(where, limit=10_000)


def test_a_receipt_names_what_was_shown(opened, kept, shown):
    """Record, version and digest, the tokens and the time; no word of the record or of the task."""
    record, _ = kept()
    name = shown("which package manager: pnpm?")
    [receipt] = documents(opened)

    assert receipt.name == name
    assert name.startswith("injection/s1/")
    assert [(one["id"], one["version"]) for one in receipt.metadata["records"]] == [(record.id, 1)]
    assert receipt.metadata["tokens"] > 100
    assert "pnpm" not in repr(receipt)


def test_being_shown_is_not_use(opened, kept, shown):
    """Use moves the ranking: a brief that counted itself would differ the next time."""
    record, _ = kept()
    shown()

    assert opened.memory.get(record.id).usage.recalls == 0


def test_only_so_many_receipts_are_kept(opened, kept, shown, clock):
    """Beyond the stated number the oldest go; receipts of other pipelines stay."""
    kept()
    other = Document(
        scope=opened.where.project, kind=DocumentKind.RECEIPT, name="consolidation/1", digest="d", trust=Trust.AGENT,
        source=Source(channel=Channel.CONSOLIDATION), created_at=clock(), updated_at=clock(),
    )  # fmt: skip
    names = [shown()]
    opened.store.apply([PutDocument(document=other)])
    [first] = [document for document in documents(opened) if document.name in names]
    spare = [first.replace(name=f"injection/old/{number:04}") for number in range(receipts.KEEP - 1)]
    opened.store.apply([PutDocument(document=document) for document in spare])
    newest = shown()

    left = {document.name for document in documents(opened)}
    assert len(left) == receipts.KEEP + 1
    assert {newest, "consolidation/1"} <= left


def test_a_store_that_can_only_be_read_is_a_note(opened, tmp_path, folder):
    """A session starts all the same."""
    opened.memory.remember("Use pnpm", category="decisions")
    shelf = Addresses(memory=opened.memory, scope=opened.where.project, secret=opened.secret)
    injection = inject(shelf, opened.recall, "pnpm", rules=rules_in(str(folder)), limit=10, summary_budget=5000)
    opened.store = ReadOnly(str(tmp_path / "x.db"))
    name, notes = receipts.save_brief_receipt(opened, injection, session="s")

    assert name is None
    assert notes == ("no receipt of this brief was saved: the disk is read-only",)


@pytest.mark.parametrize("session", [" \n", "s" * 300])
def test_a_session_needs_a_name(kept, shown, session):
    """A blank or endless name is refused before anything is kept."""
    kept()
    with pytest.raises(InvalidInput, match="cannot name a session"):
        shown(session=session)


@pytest.mark.parametrize("form", ["memory://{short}", "memory://{id}", "record {short}", "({id})", "`{short}`."])
def test_a_record_is_cited_by_its_id(kept, shown, said, fate, form):
    """The full or the short id, as an address or bare, in the turn that says it."""
    record, _ = kept()
    shown()
    said("Hello.", f"I follow {form.format(id=record.id, short=record.short)} and take it.")

    assert (fate().cited, fate().echoed) == (("2",), ())


def test_words_without_a_name_are_an_echo(kept, shown, said, fate):
    """Six words in a row are an echo, which is told apart from a citation."""
    kept("Releases are cut from the main branch on Tuesdays")
    shown("releases main branch")
    said("As you know, releases are cut from the MAIN branch, so I wait.")

    assert (fate().cited, fate().echoed) == ((), ("1",))


def test_chance_is_no_echo(kept, shown, said, fate):
    """A few common words are said by everybody."""
    kept("Releases are cut from the main branch on Tuesdays")
    shown("releases main branch")
    said("I looked at the main branch on Tuesdays past.")

    assert (fate().cited, fate().echoed) == ((), ())


@pytest.mark.parametrize("speaker", ["user", "tool"])
def test_only_the_agent_cites(kept, shown, said, fate, speaker):
    """What the user or a tool says is not the agent's use."""
    record, _ = kept()
    shown()
    said(f"memory://{record.id}", speaker=speaker)

    assert fate().cited == ()


def test_a_repeated_brief_is_no_citation(kept, shown, said, fate):
    """Text between the marks is memory's own."""
    record, _ = kept()
    shown()
    said(f'<memory seal="ab">\n- Use pnpm, not npm (memory://{record.id})\n</memory seal="ab">\nThanks.')

    assert (fate().cited, fate().echoed) == ((), ())


@pytest.mark.parametrize(
    "form", ["memory://root says so", "see memory_summary.md.", "(memory://root/memory_summary.md)"]
)
def test_an_artifact_is_cited_by_address_or_path(folder, shown, said, fate, form):
    """The summary has an address, and a path."""
    (folder / "memory_summary.md").write_text("- We use pnpm.")
    shown()
    said(form)

    assert fate().item.id == "memory://root"
    assert fate().cited == ("1",)


def test_another_artifact_is_not_the_summary(opened, folder, shown, said):
    """An address that only begins alike is another one; it is reported as cited without having been shown."""
    (folder / "memory_summary.md").write_text("- We use pnpm.")
    shown()
    said("By memory://root/MEMORY.md and skills/deploy/SKILL.md it is so.")
    report = receipts.session_use(opened.memory, "s1")

    assert report.uses[0].cited == ()
    assert report.others == ("memory://root/MEMORY.md", "memory://root/skills/deploy/SKILL.md")


def test_a_turn_of_an_old_session_is_cited_by_its_reference(shown, said, fate):
    """Chunks have references, and those can be named."""
    said("The flamingo job leaks memory when it restarts", session="old")
    shown("flamingo job")
    said("As in session:old#1, I restart it.")

    assert fate().item.id == "session:old#1"
    assert fate().cited == ("1",)


def test_the_version_that_was_shown_is_kept_apart_from_the_present_one(opened, kept, shown, fate):
    """An updated record is reported with the words of then; a forgotten one without any."""
    record, _ = kept()
    shown()
    opened.memory.update(record.id, content="Use yarn")
    then = fate()
    opened.memory.forget(record.id)

    assert (then.item.version, then.current, then.text) == (1, 2, "Use pnpm, not npm")
    assert (fate().current, fate().text) == (None, None)


def test_a_session_that_is_not_indexed_is_told(opened, kept, shown):
    """What was shown is known, what was used is not."""
    kept()
    shown()

    assert not receipts.session_use(opened.memory, "s1").indexed


def test_an_unknown_session_is_a_clear_sentence(opened):
    """Nothing was shown to it, and nothing of it is indexed."""
    with pytest.raises(NotFound, match="nothing is known of session 's9'"):
        receipts.session_use(opened.memory, "s9")


# Recalls


@pytest.fixture
def recalled(opened, clock):
    """Let a session recall something; returns the receipt's name and what is to be told."""

    def recalled(query="pnpm", session="s1", store=None):
        hits = opened.memory.recall(query).hits
        clock.forward()
        opened.store = store or opened.store
        return receipts.save_recall_receipt(opened, query, hits, tokens=12, session=session)

    return recalled


def test_a_receipt_tells_what_a_session_has_recalled(opened, kept, recalled, said):
    """It is its own sort, holds no word, and is followed like what was injected."""
    record, _ = kept("We use pnpm in this repository")
    name, notes = recalled()
    said(f"As {record.short} has it.")
    report = receipts.session_use(opened.memory, "s1")

    assert (notes, [(one.name, one.what, one.tokens) for one in report.shown]) == ((), [(name, "recall", 12)])
    assert [(fate.item.id, fate.cited) for fate in report.uses] == [(record.id, ("1",))]
    assert "pnpm" not in repr(documents(opened))


def test_a_recall_of_nobody_or_of_nothing_leaves_no_receipt(opened, kept, recalled):
    """Nobody could ask for it by its session."""
    assert recalled("quite another thing") == (None, ())
    kept("We use pnpm in this repository")
    assert recalled(session=None) == (None, ())
    assert documents(opened) == []


def test_recalls_do_not_push_receipts_of_briefs_out(opened, kept, shown, recalled):
    """Of each sort the newest are kept."""
    kept("We use pnpm in this repository")
    brief, first = shown(), recalled()[0]
    [like] = [document for document in documents(opened) if document.name == first]
    spare = [like.replace(name=f"recall/old/{number:04}") for number in range(receipts.KEEP)]
    opened.store.apply([PutDocument(document=document) for document in spare])
    newest = recalled()[0]

    left = {document.name for document in documents(opened)}
    assert len(left) == receipts.KEEP + 1
    assert {brief, newest} <= left


def test_a_store_that_takes_nothing_answers_a_recall_all_the_same(kept, recalled, tmp_path):
    """With a note instead of a receipt."""
    kept("We use pnpm in this repository")
    store = ReadOnly(str(tmp_path / "other.db"))
    assert recalled(store=store) == (None, ("no receipt of this recall was saved: the disk is read-only",))
    store.close()
