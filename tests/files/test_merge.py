"""Two branches have changed the file of one record."""

from __future__ import annotations

from commonplace.files.codec import decode
from commonplace.files.merge import merge_files
from stands import rows

BASE = "---\nid: 1kjmekwhbby1d6cnd627\ntags: [js]\n---\n\nUse pnpm, not npm.\n\nIt shares packages.\n"
OLD = BASE.replace("tags: [js]", "category: decisions\nupdated: 2026-03-01T09:30:00Z\ntags: [js]\nversion: 2")


def merged(ours, theirs, base=BASE):
    """What a merge makes of two texts, if they agree."""
    done = merge_files(base.encode(), ours.encode(), theirs.encode())
    assert done.conflicts == 0, done.data.decode()
    return decode(done.data, path="decisions/x.md")


def test_a_tag_and_a_word_agree():
    """One person adds a tag, the other changes the text."""
    both = merged(BASE.replace("[js]", "[js, ops]"), BASE.replace("pnpm", "yarn"))
    assert (both.tags, both.content) == ({"js", "ops"}, "Use yarn, not npm.\n\nIt shares packages.")


def test_tags_of_both_are_kept_and_what_one_removed_is_gone():
    """A list is merged as what either has added and taken out."""
    both = merged(BASE.replace("[js]", "[js, ops]"), BASE.replace("[js]", "[web]"))
    assert both.tags == {"ops", "web"}
    assert merged(BASE.replace("[js]", "[js, ops]"), BASE.replace("tags: [js]\n", "")).tags == {"ops"}


def test_keys_and_paragraphs_of_both_are_kept():
    """Other keys, each in one branch, and two ends of the text."""
    ours = BASE.replace("tags:", "# why\npinned: true\ntags:").replace("Use pnpm", "Use pnpm 9")
    theirs = BASE.replace("tags:", "# their comment\ntags:").replace("packages.", "packages.\n\nAnd it is fast.")
    theirs = theirs.replace("id:", "aliases: [package manager]\nid:")
    both = merged(ours, theirs)
    assert (both.pinned, both.aliases if hasattr(both, "aliases") else both.metadata["aliases"]) == (
        True, ["package manager"],
    )  # fmt: skip
    assert both.content == "Use pnpm 9, not npm.\n\nIt shares packages.\n\nAnd it is fast."
    text = merge_files(BASE.encode(), ours.encode(), theirs.encode()).data.decode()
    assert "# why\n" in text
    assert "# their comment\n" in text


def test_bookkeeping_of_the_earlier_format_never_disagrees():
    """Version and date of the last change are not merged but left out."""
    ours = OLD.replace("version: 2", "version: 3").replace("09:30", "10:30").replace("[js]", "[js, ops]")
    theirs = OLD.replace("version: 2", "version: 4").replace("09:30", "11:30").replace("pnpm", "yarn")
    both = merged(ours, theirs, OLD)
    assert (both.version, both.updated_at, both.tags) == (None, None, {"js", "ops"})


@rows(
    "ours, theirs",
    [
        (BASE.replace("pnpm", "yarn"), BASE.replace("pnpm", "bun")),
        (BASE.replace("tags", "key: a\ntags"), BASE.replace("tags", "key: b\ntags")),
    ],
)
def test_a_disagreement_keeps_both_texts(ours, theirs):
    """Between the marks of Git; and no sync takes it for a record."""
    done = merge_files(BASE.encode(), ours.encode(), theirs.encode(), names=("mine", "other"))
    text = done.data.decode()
    assert done.conflicts == 1
    mine, _, other = text.partition("<<<<<<< mine\n")[2].partition("=======\n")
    assert mine in ours
    assert other.partition(">>>>>>> other\n")[0] in theirs


def test_what_is_no_record_is_merged_as_lines():
    """Broken frontmatter, another id, plain words."""
    done = merge_files(b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n")
    assert (done.data, done.conflicts) == (b"A\nb\nC\n", 0)
    other = BASE.replace("1kjm", "1kjn")
    assert merge_files(b"", BASE.encode(), other.encode()).conflicts == 1


def test_the_same_file_from_both_sides_is_that_file():
    """Added twice, or changed alike."""
    assert merge_files(b"", BASE.encode(), BASE.encode()).data == BASE.encode()
    changed = BASE.replace("pnpm", "yarn").encode()
    assert merge_files(BASE.encode(), changed, changed).data == changed
