"""A person's own words in artifacts: they stay, word for word, where they were written."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from commonplace.files.artifacts import FILE_BYTES, check_name, publish
from commonplace.learning.hand_edits import Edits, find_edits, merge_edits
from commonplace.model.changes import Archive, Delete
from commonplace.model.errors import InvalidInput, StoreError
from commonplace.model.queries import Filter
from commonplace.text.blocks import blocks, join_blocks
from stands import rows

sys.path.insert(0, str(Path(__file__).parents[1]))
from workshop import Shop

BASE = "# T\n\n## A\n\n- one (record 0000000001)\n- two (record 0000000002)\n\n## B\n\n- three (record 0000000003)"


@pytest.fixture
def shop(tmp_path, clock):
    """A project with two records, consolidated once."""
    made = Shop(tmp_path, clock)
    made.keep("Use pnpm, not npm")
    made.keep("Deploy on Tuesdays only", "principles")
    made.run()
    yield made
    made.store.close()


def test_a_text_is_cut_into_blocks_and_put_together_again():
    """Headings, items with their lines, code and paragraphs; nothing is lost."""
    text = "# T\n\npara one\nstill one\n\n- item\n  more\n\n  after a blank\n- next\n\n"
    text += "```\n# no heading\n\n- no item\n```\n\n1. x"
    assert [block.text for block in blocks(text)][1:4] == [
        "para one\nstill one",
        "- item\n  more\n\n  after a blank",
        "- next",
    ]
    assert join_blocks(blocks(text)).split() == text.split()


def test_new_blocks_are_owned_and_removed_ones_struck():
    """What a person adds stays, what they take out does not come back."""
    edits = find_edits(BASE, BASE.replace("- two (record 0000000002)", "\nMy words."), Edits())

    assert edits.texts == ("My words.",)
    assert merge_edits(BASE, edits) == BASE.replace("- two (record 0000000002)", "\nMy words.")
    again = merge_edits(BASE.replace("- two", "- two, in other words,"), edits)
    assert "two, in other words" in again  # a fact that says something else is another fact


def test_a_person_who_changes_a_line_has_the_last_word():
    """The line keeps its reference, and the record is told in their words alone."""
    edits = find_edits(BASE, BASE.replace("- one (", "- one, but better ("), Edits())
    assert merge_edits(BASE, edits) == BASE.replace("- one (", "- one, but better (")


def test_a_section_of_ones_own_stays_between_the_others():
    """Its heading and everything under it."""
    own = "## Mine\n\n- a\n- b\n\nand a sentence.\n\n"
    edits = find_edits(BASE, BASE.replace("## B", own + "## B"), Edits())
    text = merge_edits(BASE + "\n- four (record 0000000004)", edits)
    assert text == (BASE + "\n- four (record 0000000004)").replace("## B", own + "## B")
    assert find_edits(text, text, edits) == edits


def test_what_is_put_back_by_hand_is_no_longer_struck():
    """A person may change their mind."""
    less = BASE.replace("- two (record 0000000002)\n", "")
    struck = find_edits(BASE, less, Edits())
    assert struck.struck
    assert not find_edits(merge_edits(BASE, struck), BASE, struck).struck


def test_a_hand_edit_survives_ten_consolidations(shop):
    """Added, changed and removed lines and a section, while facts come and go."""
    shop.edit("- Use pnpm, not npm", "- Use pnpm 9, never npm")
    shop.edit(
        "## Principles", "Ask Ada about the build.\n\n## Our own rules\n\n1. Be kind.\n2. Be brief.\n\n## Principles"
    )
    taken_out = next(line for line in shop.text().splitlines() if "Tuesdays" in line)
    shop.edit(taken_out + "\n", "")
    for number in range(10):
        shop.keep(f"Fact number {number} has come", "decisions" if number % 2 else "incidents")
        assert shop.run().status == "consolidated"

    text = shop.text()
    assert "- Use pnpm 9, never npm (record" in text
    assert text.count("pnpm") == 1
    assert "Ask Ada about the build." in text
    assert "## Our own rules\n\n1. Be kind.\n2. Be brief." in text
    assert "Tuesdays" not in text
    assert text.count("has come") == 10
    assert text.index("Ask Ada") > text.index("## Decisions")


def test_edits_of_the_summary_and_of_skills_stay_as_well(shop):
    """A line in the summary, a changed skill, a skill and a script of one's own."""
    shop.keep("Release: 1. tag 2. push", "procedures", key="release")
    shop.run()
    shop.edit("# Memory summary\n", "# Memory summary\n\nRead CONTRIBUTING first.\n", "memory_summary.md")
    shop.edit("1. tag", "1. tag, signed", "skills/release/SKILL.md")
    shop.write("echo hi\n", "skills/release/scripts/go.sh")
    shop.write("---\nname: mine\ndescription: d\n---\nDo it.\n", "skills/mine/SKILL.md")
    for number in range(3):
        shop.keep(f"Fact number {number} has come")
        shop.run()

    assert "Read CONTRIBUTING first." in shop.text("memory_summary.md")
    assert "1. tag, signed" in shop.text("skills/release/SKILL.md")
    assert shop.artifacts["skills/mine/SKILL.md"].endswith("Do it.")
    assert shop.artifacts["skills/release/scripts/go.sh"] == "echo hi"


def test_a_stale_skill_is_pruned_and_a_hand_written_one_is_not(shop):
    """Its folder goes with it."""
    record = shop.keep("Release: 1. tag 2. push", "procedures", key="release")
    shop.write("---\nname: mine\ndescription: d\n---\nDo it.\n", "skills/mine/SKILL.md")
    shop.run()
    where = Filter(scopes=frozenset({shop.scope}), at=shop.clock(), ids=frozenset({record.id}))
    shop.store.apply([Archive(where=where, at=shop.clock())])
    shop.run()

    assert [path.name for path in (shop.folder / "skills").iterdir()] == ["mine"]


def test_learned_md_is_never_touched(shop):
    """Neither its file nor what the store has of it."""
    shop.write("- lesson\n", "learned.md")
    shop.keep("Another fact has come")
    shop.run()
    assert shop.text("learned.md") == "- lesson\n"
    assert "learned.md" not in shop.artifacts


def test_an_empty_corpus_leaves_what_people_wrote(shop):
    """Generated lines go, the person's stay."""
    shop.write(shop.text() + "\n## Mine\n\nMy own words.\n")
    shop.run()
    shop.store.apply([Delete(where=Filter(scopes=frozenset({shop.scope}), at=shop.clock()))])
    shop.run()

    assert "My own words." in shop.text()
    assert "pnpm" not in shop.text()


def test_a_secret_that_a_person_writes_is_taken_out(shop):
    """The file is written again without it, and the report says so."""
    shop.write(shop.text() + "\nThe password is hunter2-Xk29fkQ\n")
    report = shop.run()

    assert "hunter2" not in shop.text() + repr(shop.artifacts)
    assert any("was removed from MEMORY.md" in one for one in report.redactions)


def test_a_file_that_nobody_got_to_write_is_no_edit(shop):
    """A process that died between commit and file leaves the old text, which is written over."""
    old = shop.text()
    shop.keep("Another fact has come")
    shop.run()
    shop.write(old)  # as if the last run had never written it
    shop.keep("A third fact has come")
    shop.run()
    assert "Another fact" in shop.text()
    assert "A third fact" in shop.text()


def test_a_file_that_was_changed_meanwhile_is_left_for_the_next_run(shop):
    """It is not written over, and taken in later."""
    shop.edit("Use pnpm, not npm", "Use pnpm")
    assert publish(shop.place).left == ("MEMORY.md",)
    assert "Use pnpm (record" in shop.text()
    shop.run()
    assert "Use pnpm (record" in shop.text()


def test_files_are_written_from_the_store_when_they_are_missing(shop):
    """A deleted file is no wish."""
    text = shop.text()
    os.unlink(shop.folder / "MEMORY.md")
    publish(shop.place)
    assert shop.text() == text


def test_what_a_dead_process_left_half_written_is_swept(shop):
    """When it is old enough that nobody can still be writing it."""
    for name, age in ((".tmp-old", 7200), (".tmp-new", 0)):
        shop.write("half", name)
        os.utime(shop.folder / name, (time.time() - age,) * 2)
    publish(shop.place)
    assert [path.name for path in shop.folder.glob(".tmp-*")] == [".tmp-new"]


def test_a_file_too_large_to_be_read_is_not_written_over(shop):
    """Whoever put it there keeps it; the other files are written."""
    shop.write("x" * (FILE_BYTES + 1), "MEMORY.md")
    (shop.folder / "memory_summary.md").unlink()
    assert publish(shop.place).left == ("MEMORY.md",)
    assert (shop.folder / "MEMORY.md").stat().st_size > FILE_BYTES
    assert (shop.folder / "memory_summary.md").exists()


def test_a_link_is_not_followed(shop, tmp_path):
    """A folder of skills that leads elsewhere is refused by name."""
    (tmp_path / "elsewhere").mkdir()
    (shop.folder / "skills").symlink_to(tmp_path / "elsewhere")
    shop.keep("Release: 1. tag 2. push", "procedures", key="release")
    with pytest.raises(StoreError, match="a link leads out"):
        shop.run()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@rows("name", ["../x", "/x", "a//b", "a/./b", "a/..", "a:b", "a\0b", "", ".", "a/b/c/d/e/f", "ü"])
def test_a_path_that_could_lead_out_is_refused(name):
    """Relative, plain parts, nothing else."""
    with pytest.raises(InvalidInput, match="cannot be the path"):
        check_name(name)


def test_two_clones_of_one_project_each_get_their_files(tmp_path, clock, shop):
    """A folder that is behind is brought up to date, and its old text is not taken for an edit."""
    clone = Shop(tmp_path / "clone", clock, store=shop.store)
    publish(clone.place)
    shop.keep("Another fact has come")
    shop.run()
    clone.keep("A third fact has come")
    report = clone.run()

    assert report.edited == ()
    assert clone.files == clone.artifacts
