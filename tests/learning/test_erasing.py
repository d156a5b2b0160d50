"""Erased is erased at once: a record's words are gone from extractions, artifacts, receipts and files with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from commonplace.engine.memory import Memory
from commonplace.files.artifacts import erase
from commonplace.learning.consolidate_receipts import consolidation_receipts, undo_consolidation
from commonplace.learning.learn import clear_learned
from commonplace.model.documents import DocumentKind
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel, Source
from commonplace.model.scopes import Scope

sys.path.insert(0, str(Path(__file__).parents[1]))
from workshop import SHOP, Scripted, Shop, reply

TOKEN = "xylophonequokka"


def memory_of(shop):
    """The project as a person has it."""
    binding = shop.binding(Channel.USER)
    return Memory(shop.store, binding, clock=shop.clock, erased=lambda erasure: erase(shop.place, erasure))


def left(folder, needle=TOKEN):
    """The files in which a word still stands, by any bytes."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and needle.encode() in path.read_bytes()]


def extraction(shop, session):
    """What is kept of a session."""
    kinds, names = frozenset({DocumentKind.EXTRACTION.value}), frozenset({session})
    [found] = shop.store.documents(DocumentFilter(scopes=frozenset({shop.scope}), kinds=kinds, names=names), limit=2)
    return found


@pytest.fixture
def shop(tmp_path, clock):
    """A project that thinks by rules."""
    made = Shop(tmp_path, clock)
    yield made
    made.store.close()


def told(shop):
    """A fact that was extracted, consolidated, and stands wherever a fact can stand; and another one beside it."""
    other = shop.keep("Use pnpm, not npm")
    record = shop.keep(f"The tunnel is under the {TOKEN}", metadata={"subject": TOKEN})
    lines = (
        f"- [decisions] The tunnel is under the {TOKEN} (session:s1#1)\n- [decisions] Use pnpm, not npm (session:s1#2)"
    )
    summary = f"The tunnel is under the {TOKEN}; Use pnpm, not npm"
    digests = {record.id: "keyed", other.id: "keyed as well"}
    shop.extracted("s1", lines, summary=summary, records=[record.id, other.id], digests=digests)
    shop.run()
    shop.keep("Tea is at four")
    shop.run()
    return record


def test_an_erased_record_leaves_no_byte_in_store_and_folder(shop, tmp_path):
    """Not in the raw text of its session, no artifact, no receipt, no file, no log, as soon as it is forgotten."""
    record = told(shop)
    assert len(left(tmp_path)) >= 4  # the database, MEMORY.md, the summary, raw_memories.md
    memory_of(shop).forget(record.id)

    assert left(tmp_path) == []
    assert shop.files == shop.artifacts
    assert "Use pnpm, not npm" in shop.text()
    assert "Use pnpm, not npm" in shop.text("raw_memories.md")
    assert "Tea is at four" in shop.text("memory_summary.md")


def test_what_was_erased_is_known_by_its_digest_alone(shop):
    """So that an old transcript does not bring it back; what else was made of its session stays."""
    record = told(shop)
    memory_of(shop).forget(record.id)
    kept = extraction(shop, "s1")

    assert kept.content == "- [decisions] Use pnpm, not npm (session:s1#2)"
    assert kept.metadata["summary"] == "Use pnpm, not npm"
    assert record.id in kept.metadata["digests"]
    assert record.id not in kept.metadata["records"]


def test_an_undo_does_not_bring_back_what_was_erased(shop, tmp_path):
    """The texts before, which a receipt holds, are without it."""
    record = told(shop)
    memory_of(shop).forget(record.id)
    undo_consolidation(shop.place, force=True)

    assert left(tmp_path) == []
    assert "Tea is at four" not in shop.text()
    assert "Use pnpm, not npm" in shop.text()


def test_the_next_consolidation_does_not_bring_it_back(shop, tmp_path):
    """A session whose record is gone is not told in its own words instead."""
    record = shop.keep(f"The tunnel is under the {TOKEN}")
    shop.extracted("s1", f"- The tunnel is under the {TOKEN}", summary=TOKEN, records=[record.id])
    shop.run()
    memory_of(shop).forget(record.id)
    shop.run()
    assert left(tmp_path) == []


def test_a_model_s_own_words_go_where_they_repeat_what_was_erased(tmp_path, clock):
    """A line, a summary and a held skill that name no record go by the words that only the erased one has told."""
    memory = f"- Beware of the {TOKEN}.\n- The build needs 8 GB.\n- We use pnpm (record {{}})"
    skill = {"name": "dig", "content": f"Dig at the {TOKEN}"}
    shop = Shop(tmp_path, clock, model=Scripted(""))
    other, record = shop.keep("We use pnpm"), shop.keep(f"The tunnel is under the {TOKEN}")
    summary = f"- go to the {TOKEN}\n- we build a lot"
    dropped = [{"fact": f"record {record.short}", "reason": f"nobody needs the {TOKEN}"}]
    shop.model.answers = [reply(memory.format(other.short), summary, [skill], dropped=dropped)]
    shop.run()
    assert len(left(tmp_path)) >= 3
    memory_of(shop).forget(record.id)

    assert left(tmp_path) == []
    assert "The build needs 8 GB." in shop.text()
    assert "we build a lot" in shop.text("memory_summary.md")
    shop.store.close()


def test_what_two_records_say_stays_with_the_other_one(shop):
    """Equal words of another record are its own; only the reference goes."""
    one = shop.keep("Use pnpm, not npm")
    other = shop.keep("Use pnpm, not npm")
    shop.run()
    assert f"record {one.short}; record {other.short}" in shop.text()
    memory_of(shop).forget(one.id)

    assert "- Use pnpm, not npm (record " + other.short in shop.text()
    assert one.short not in shop.text()


def test_a_person_s_words_stay_where_they_wrote_them(shop):
    """Their lines name no record; their place is found by what stands before them now."""
    told(shop)
    shop.edit(f"The tunnel is under the {TOKEN}", f"The tunnel is under the {TOKEN}", "MEMORY.md")
    lines = shop.text().splitlines()
    at = next(number for number, line in enumerate(lines) if TOKEN in line)
    shop.write("\n".join([*lines[: at + 1], "- Mine is the spade.", *lines[at + 1 :]]) + "\n")
    shop.run()
    record = next(one for text, one in shop.records.items() if TOKEN in text)
    memory_of(shop).forget(record.id)

    assert TOKEN not in str(shop.artifacts) + str([one.metadata for one in consolidation_receipts(shop.place)])
    assert "- Mine is the spade." in shop.text()
    shop.keep("Another thing is so")
    shop.run()
    assert "- Mine is the spade." in shop.text()


def test_a_file_that_a_person_is_editing_loses_the_line_too(shop, tmp_path):
    """What they have written and nobody has taken in stays, and is taken in by the next run."""
    record = told(shop)
    shop.write(shop.text() + "\n## Mine\n\nAsk Ada.\n")
    memory_of(shop).forget(record.id)

    assert left(tmp_path) == []
    assert "Ask Ada." in shop.text()
    shop.run()
    assert "Ask Ada." in shop.artifacts["MEMORY.md"]


def test_what_falls_with_a_record_is_gone_from_texts_as_well(shop, tmp_path):
    """A fact that was derived from the erased one alone."""
    record = shop.keep("We dug in May")
    derived = Source(channel=Channel.CONSOLIDATION, parents=(record.id,))
    shop.keep(f"The tunnel is under the {TOKEN}", source=derived)
    shop.keep("Tea is at four")
    shop.run()
    memory_of(shop).forget(record.id)
    assert left(tmp_path) == []


def test_an_erased_record_of_a_person_is_gone_from_the_projects_it_was_learned_in(shop, tmp_path):
    """Preferences that hold everywhere are extracted from a project's sessions."""
    ada = Scope.of(("user", "ada"))
    record = shop.keep(f"I like {TOKEN}", "preferences", scope=ada)
    shop.extracted("s1", f"- I like {TOKEN}\n- The build is green", summary="", records=[record.id])
    shop.run()
    binding = shop.binding(Channel.USER).replace(reads=(SHOP, ada), writes={record.kind: ada})
    memory = Memory(shop.store, binding, clock=shop.clock, erased=lambda one: erase(shop.place, one))
    memory.forget(record.id)
    assert left(tmp_path) == []
    assert "The build is green" in shop.text("raw_memories.md")


def test_clearing_a_scope_clears_its_files(shop, tmp_path):
    """Also from a file that a person has edited: of that only their own lines stay."""
    told(shop)
    shop.write(shop.text() + "\n## Mine\n\nAsk Ada.\n")
    memory_of(shop).clear(shop.scope)

    assert left(tmp_path) == []
    assert list(shop.files) == ["MEMORY.md"]
    assert "Ask Ada." in shop.text()


def test_clearing_a_person_s_memory_leaves_the_project_s_files(shop, tmp_path):
    """What their preferences were learned from loses the words, and nothing else does."""
    ada = Scope.of(("user", "ada"))
    record = shop.keep(f"I like {TOKEN}", "preferences", scope=ada)
    shop.keep("Use pnpm, not npm")
    shop.extracted("s1", f"- I like {TOKEN}\n- The build is green", summary="", records=[record.id])
    shop.run()
    binding = shop.binding(Channel.USER).replace(reads=(SHOP, ada), writes={record.kind: ada})
    memory = Memory(shop.store, binding, clock=shop.clock, erased=lambda one: erase(shop.place, one))
    assert memory.clear(ada).ids == (record.id,)

    assert left(tmp_path) == []
    assert "Use pnpm, not npm" in shop.text()
    assert "The build is green" in shop.text("raw_memories.md")


def test_clearing_what_was_learned_leaves_no_word_of_it_beside_a_person_s_lines(shop, tmp_path):
    """Where their line stood is not told by the line before it."""
    record = told(shop)
    line = next(line for line in shop.text().splitlines() if TOKEN in line)
    shop.edit(line, f"{line}\n- Mine is the spade.")
    shop.run()
    clear_learned(shop.place, every=True)

    assert shop.store.get(record.id) is None
    assert left(tmp_path) == []
    assert "- Mine is the spade." in shop.text()


def test_a_consolidation_that_thinks_while_a_record_is_erased_does_not_publish_it(tmp_path, clock):
    """It looks again, and what it had made of the erased record is thrown away."""
    shop = Shop(tmp_path, clock, model=Scripted(""))
    record = shop.keep(f"The tunnel is under the {TOKEN}")
    shop.keep("Use pnpm, not npm")
    shop.model.answers = [reply(f"- The tunnel is under the {TOKEN} (record {record.short})", f"- {TOKEN}")]
    shop.run()

    def erasing(_prompt):
        memory_of(shop).forget(record.id)
        shop.model.answers = [reply("- all is well")]
        return reply(f"- Remember the {TOKEN} (record {record.short})", f"- {TOKEN}")

    shop.keep("Tea is at four")
    shop.model.answers = [erasing]
    assert shop.run().status == "consolidated"
    assert left(tmp_path) == []
    shop.store.close()
