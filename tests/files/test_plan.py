"""What a sync has to do, rule by rule."""

from __future__ import annotations

import zlib

import pytest

from commonplace.files.codec import FileTrouble, decode, encode
from commonplace.files.plan import Add, Drop, FoundFile, Hide, Missing, Note, Remove, Trouble, Update, Write, plan
from commonplace.model.documents import FileState
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Kind

HOME = "decisions/use-pnpm--1kjmekwhbb.md"
CATEGORIES = "decisions, procedures, principles, incidents, preferences, facts"


@pytest.fixture
def record(make):
    """A decision."""
    return a_decision(make, "1kjmekwhbby1d6cnd627", "Use pnpm")


@pytest.fixture
def other(make):
    """Another one."""
    return a_decision(make, "1kjmekwhbcy1d6cnd628", "Use ruff")


def a_decision(make, id, content):
    return make(content, id=id, category="decisions", version=1)


def text(record):
    return encode(record).decode()


def seen(path, text):
    """A file that is there and was read."""
    data = text.encode()
    digest = str(zlib.crc32(data))
    try:
        return FoundFile(path=path, digest=digest, stamp=len(data), parsed=decode(data, path=path))
    except FileTrouble as error:
        trouble = Trouble(path=path, line=error.line, reason=error.reason)
        return FoundFile(path=path, digest=digest, stamp=len(data), trouble=trouble)


def known(path, record):
    """The state of a file when it was last in step with its record."""
    data = encode(record)
    return FileState(path=path, record=record.id, version=record.version, digest=str(zlib.crc32(data)), stamp=len(data))


def planned(*, seen=(), known=(), records=(), history=(), **options):
    """A plan; the history holds the versions that are given."""
    return plan(
        seen=seen,
        known=known,
        records={record.id: record for record in records},
        history=lambda one: [version for version in (*history, *records) if version.id == one],
        **options,
    )


def remove(path, record):
    return Remove(path=path, digest=str(zlib.crc32(encode(record))))


def newer(record, **changes):
    return record.replace(version=record.version + 1, **changes)


# New files and new records


def test_a_file_without_an_id_is_added_in_the_category_of_its_folder():
    """A person puts a file into a folder, and that is all that is needed."""
    [action] = planned(seen=[seen("incidents/outage.md", "It was DNS")])
    assert action == Add(path="incidents/outage.md", parsed=action.parsed, home="incidents/outage.md")
    assert (action.parsed.content, action.parsed.category, action.parsed.id) == ("It was DNS", "incidents", None)


def test_a_file_with_an_id_that_nobody_has_is_added_under_that_id(record):
    """So files alone bring a lost database back."""
    [action] = planned(seen=[seen(HOME, text(record))])
    assert isinstance(action, Add)
    assert action.parsed.id == record.id


def test_a_new_file_that_says_another_category_belongs_into_its_folder():
    """Its words count more than the place where it was dropped; it keeps its name, and takes nobody's place."""
    files = [seen("decisions/a.md", "---\ncategory: incidents\n---\nx"), seen("incidents/a.md", "y")]
    actions = planned(seen=files)
    assert [(action.path, action.home) for action in actions] == [
        ("decisions/a.md", "incidents/a-2.md"),
        ("incidents/a.md", "incidents/a.md"),
    ]


def test_a_record_without_a_file_is_written(record, other):
    """Unless it is archived, or of a category that has no folder."""
    archived = other.replace(archived_at=other.created_at)
    general = other.replace(id="2" * 20, category="general")
    assert planned(records=[record, archived, general]) == [Write(record=record, path=HOME)]


def test_a_file_is_never_written_over_another_one(record):
    """A path that is taken is not free, however it is spelt."""
    [add, write] = planned(seen=[seen("decisions/Use-PNPM--1kjmekwhbb.md", "mine")], records=[record])
    assert isinstance(add, Add)
    assert write == Write(record=record, path="decisions/use-pnpm--1kjmekwhbb-2.md")


def test_a_new_file_that_says_just_what_a_record_without_a_file_is_becomes_its_file(record):
    """Whoever added it died before the id was written into it."""
    assert planned(seen=[seen("decisions/mine.md", "Use pnpm")], records=[record]) == [
        Write(record=record, path="decisions/mine.md", said=record)
    ]


# Known files


def test_what_is_as_it_was_needs_nothing(record):
    """The same digest and the same version: nothing, whether it was read or not."""
    state = known(HOME, record)
    unread = FoundFile(path=HOME, digest=state.digest, stamp=state.stamp)
    assert planned(seen=[unread], known=[state], records=[record]) == []
    assert planned(seen=[seen(HOME, text(record))], known=[state], records=[record]) == []


def test_a_file_that_was_only_touched_is_noted(record):
    """Next time it need not be read."""
    touched = seen(HOME, text(record)).replace(stamp=7)
    [action] = planned(seen=[touched], known=[known(HOME, record)], records=[record])
    assert action == Note(path=HOME, digest=touched.digest, stamp=7, record=record)


def test_a_newer_record_is_written(record):
    """To the file that it has, whatever its name."""
    path = "decisions/mine.md"
    after = newer(record, content="Use yarn")
    assert planned(seen=[seen(path, text(record))], known=[known(path, record)], records=[after]) == [
        Write(record=after, path=path)
    ]


def test_a_reclassified_record_moves_to_its_folder_and_keeps_its_name(record):
    """The old file goes."""
    path = "decisions/mine.md"
    after = newer(record, category="principles")
    assert planned(seen=[seen(path, text(record))], known=[known(path, record)], records=[after]) == [
        Write(record=after, path="principles/mine.md", old_path=path)
    ]


def test_an_edited_file_changes_its_record(record):
    """A person's words become the next version."""
    file = seen(HOME, text(record).replace("pnpm", "yarn"))
    [action] = planned(seen=[file], known=[known(HOME, record)], records=[record])
    parsed = file.parsed.replace(category="decisions")
    assert action == Update(path=HOME, parsed=parsed, record=record, home=HOME)


def test_a_comment_is_no_change(record):
    """File and record agree; only the file's state is noted."""
    file = seen(HOME, text(record).replace("id:", "# why\nid:"))
    [action] = planned(seen=[file], known=[known(HOME, record)], records=[record])
    assert action == Note(path=HOME, digest=file.digest, stamp=file.stamp, record=record)


def test_if_file_and_record_changed_the_file_wins(record):
    """The record's own change stays in its history."""
    file = seen(HOME, text(record).replace("pnpm", "yarn"))
    after = newer(record, content="Use bun")
    [action] = planned(seen=[file], known=[known(HOME, record)], records=[after], history=[record])
    assert (type(action), action.parsed.content, action.record) == (Update, "Use yarn", after)


def test_a_comment_does_not_win_over_a_newer_record(record):
    """The file still says what the record was: only the record has changed."""
    file = seen(HOME, text(record).replace("id:", "# why\nid:"))
    after = newer(record, content="Use bun")
    assert planned(seen=[file], known=[known(HOME, record)], records=[after], history=[record]) == [
        Write(record=after, path=HOME)
    ]


def test_going_back_to_an_earlier_text_shows_that_version(record):
    """Another branch, or an old file restored: the folder shows what the record was, and nothing is new."""
    after = newer(record, content="Use yarn")
    [action] = planned(seen=[seen(HOME, text(record))], known=[known(HOME, after)], records=[after], history=[record])
    assert isinstance(action, Note)
    assert action.record == record


def test_an_edit_of_a_version_that_is_shown_follows_on_that_one(record):
    """A tag that only the current version has does not come with it."""
    after = newer(record, content="Use yarn", tags=frozenset({"js"}))
    [action] = planned(
        seen=[seen(HOME, text(record).replace("pnpm", "bun"))], known=[known(HOME, record)], records=[after],
        history=[record], shown={record.id: record},
    )  # fmt: skip
    assert (type(action), action.parsed.content, action.record) == (Update, "Use bun", record)


def test_a_file_of_another_branch_stays_as_it_is(record):
    """The folder shows an earlier version, and the file says it: nothing is to do, however new the record is."""
    after = newer(record, content="Use yarn")
    state = known(HOME, record)
    unread = FoundFile(path=HOME, digest=state.digest, stamp=state.stamp)
    assert planned(seen=[unread], known=[state], records=[after], shown={record.id: record}) == []


def test_a_record_that_this_folder_does_not_have_is_not_written(record, other):
    """A hidden one has no file; in a repository that was never synced those without a file are hidden."""
    assert planned(records=[record], shown={record.id: None}) == []
    file = seen("decisions/b.md", text(other))
    actions = planned(seen=[file], records=[record, other], branches=True)
    assert [type(action) for action in actions] == [Note, Hide]
    assert [type(action) for action in planned(records=[record], branches=True)] == [Write], "there are no files at all"


def test_a_file_that_lost_its_id_gets_it_back(record):
    """It is the record that was at its path; a foreign id there is a slip."""
    for line in ("", f"id: {'9' * 20}\n"):
        file = seen(HOME, text(record).replace(f"id: {record.id}\n", line))
        [action] = planned(seen=[file], known=[known(HOME, record)], records=[record])
        assert isinstance(action, Write if not line else Update)
        assert action.record == record


def test_plain_words_over_a_known_file_change_its_record(record):
    """The frontmatter is written again."""
    [action] = planned(seen=[seen(HOME, "Use yarn")], known=[known(HOME, record)], records=[record])
    assert (type(action), action.parsed.bare, action.record) == (Update, True, record)


# Files that are gone


def test_a_vanished_file_archives_its_record(record):
    """Deleting a file is how a person takes a record out of recall."""
    assert planned(known=[known(HOME, record)], records=[record]) == [Missing(path=HOME, record=record)]


def test_a_vanished_file_whose_record_has_changed_is_written_again(record):
    """Somebody still works with it."""
    after = newer(record, category="incidents", kind=Kind.EPISODIC)
    assert planned(known=[known(HOME, record)], records=[after]) == [
        Write(record=after, path="incidents/use-pnpm--1kjmekwhbb.md", old_path=HOME)
    ]


def test_a_vanished_file_of_an_archived_record_is_forgotten(record):
    """It stays archived, and is not written."""
    archived = newer(record, archived_at=record.created_at)
    assert planned(known=[known(HOME, record)], records=[archived]) == [Drop(path=HOME)]


def test_the_file_of_an_archived_record_stays(record):
    """With the date in it."""
    archived = newer(record, archived_at=record.created_at)
    assert planned(seen=[seen(HOME, text(record))], known=[known(HOME, record)], records=[archived]) == [
        Write(record=archived, path=HOME)
    ]


def test_neither_file_nor_record_is_nothing_but_a_state(record):
    """It is forgotten."""
    assert planned(known=[known(HOME, record)]) == [Drop(path=HOME)]


# Erased records


def test_the_file_of_an_erased_record_is_removed(record):
    """Under another name too, and every copy; as long as it has the words it has now."""
    files = [seen(HOME, text(record)), seen("decisions/copy.md", text(record))]
    assert planned(seen=files, known=[known(HOME, record)]) == [
        remove("decisions/copy.md", record),
        remove(HOME, record),
    ]
    assert planned(seen=files[1:], known=[known(HOME, record)]) == [
        remove("decisions/copy.md", record),
        Drop(path=HOME),
    ]


def test_what_a_person_wrote_into_the_file_of_an_erased_record_is_a_new_record(record):
    """The erased one's id is not used again."""
    [action] = planned(seen=[seen(HOME, text(record).replace("pnpm", "yarn"))], known=[known(HOME, record)])
    assert (type(action), action.parsed.id, action.parsed.content) == (Add, None, "Use yarn")


def test_a_record_that_leaves_the_five_categories_takes_its_file_along(record):
    """To the folder it is as if it were not there."""
    general = newer(record, category="general")
    assert planned(seen=[seen(HOME, text(record))], known=[known(HOME, record)], records=[general]) == [
        remove(HOME, record)
    ]


# Renamed, moved and copied files


def test_a_renamed_file_is_noted_where_it_is(record):
    """People may call it what they like."""
    file = seen("decisions/mine.md", text(record))
    assert planned(seen=[file], known=[known(HOME, record)], records=[record]) == [
        Note(path=file.path, digest=file.digest, stamp=file.stamp, record=record),
        Drop(path=HOME),
    ]


def test_a_renamed_and_edited_file_changes_its_record(record):
    """Both at once are no trouble."""
    file = seen("decisions/mine.md", text(record).replace("pnpm", "yarn"))
    change, drop = planned(seen=[file], known=[known(HOME, record)], records=[record])
    assert (type(change), change.home, drop) == (Update, "decisions/mine.md", Drop(path=HOME))


def test_a_renamed_file_of_a_newer_record_is_written_under_its_new_name(record):
    """The name is the person's, the words are the record's."""
    after = newer(record, content="Use yarn")
    file = seen("decisions/mine.md", text(record))
    assert planned(seen=[file], known=[known(HOME, record)], records=[after], history=[record]) == [
        Write(record=after, path="decisions/mine.md"),
        Drop(path=HOME),
    ]


def test_a_file_moved_to_another_folder_has_another_category(record):
    """Its frontmatter still says the old one: the folder is the edit."""
    file = seen("principles/mine.md", text(record))
    change, drop = planned(seen=[file], known=[known(HOME, record)], records=[record])
    assert (type(change), change.parsed.category, change.home) == (Update, "principles", "principles/mine.md")
    assert drop == Drop(path=HOME)


def test_a_category_changed_in_the_frontmatter_moves_the_file(record):
    """The frontmatter is the edit; the file follows."""
    file = seen("decisions/mine.md", text(record).replace("---\n\n", "category: principles\n---\n\n"))
    [action] = planned(seen=[file], known=[known("decisions/mine.md", record)], records=[record])
    assert (type(action), action.parsed.category, action.home) == (Update, "principles", "principles/mine.md")


def test_a_file_moved_to_where_its_record_went_is_noted(record):
    """Both say the new category."""
    after = newer(record, category="principles")
    file = seen("principles/mine.md", text(record))
    assert planned(seen=[file], known=[known(HOME, record)], records=[after], history=[record]) == [
        Note(path="principles/mine.md", digest=file.digest, stamp=file.stamp, record=after),
        Drop(path=HOME),
    ]


def test_a_file_of_an_old_clone_is_noted(record):
    """It says what the record once was: this folder shows that version."""
    middle = newer(record, content="Use yarn")
    after = newer(middle, content="Use bun")
    found = {"seen": [seen(HOME, text(record))], "records": [after], "history": [record, middle]}
    [action] = planned(**found, tracked={HOME})
    assert (type(action), action.record) == (Note, record)
    [action] = planned(**found)
    assert (type(action), action.record) == (Write, after), "without Git it may be one that we did not come to write"


def test_a_file_that_nobody_has_seen_and_that_says_something_new_is_an_edit(record):
    """Somebody edited it in another clone."""
    file = seen(HOME, text(record).replace("pnpm", "yarn"))
    [action] = planned(seen=[file], records=[record], history=[record])
    assert (type(action), action.parsed.content) == (Update, "Use yarn")


def test_two_files_that_changed_places_are_noted(record, other):
    """Each is still the record whose id it says."""
    there = "decisions/b.md"
    files = [seen(HOME, text(other)), seen(there, text(record))]
    actions = planned(seen=files, known=[known(HOME, record), known(there, other)], records=[record, other])
    assert [(type(action), action.path, action.record) for action in actions] == [
        (Note, there, record),
        (Note, HOME, other),
    ]


def test_a_record_whose_file_was_written_over_by_another_ones_is_written_again(record, other):
    """Moving a file onto another is no wish to archive the other's record."""
    there = "decisions/b.md"
    actions = planned(
        seen=[seen(HOME, text(other))], known=[known(HOME, record), known(there, other)], records=[record, other]
    )
    assert [type(action) for action in actions] == [Note, Write, Drop]
    assert actions[1] == Write(record=record, path="decisions/use-pnpm--1kjmekwhbb-2.md")


def test_a_copy_is_trouble_until_it_has_no_id(record):
    """The file at the known path keeps the id; without it the copy is a record of its own."""
    copy = "decisions/a-copy.md"
    reason = f"has the same id as {HOME}; delete its id line to make it a record of its own"
    states = {"known": [known(HOME, record)], "records": [record]}
    assert planned(seen=[seen(copy, text(record)), seen(HOME, text(record))], **states) == [
        Trouble(path=copy, line=1, reason=reason)
    ]
    own = seen(copy, text(record).replace(f"id: {record.id}\n", ""))
    [action] = planned(seen=[own, seen(HOME, text(record))], **states)
    assert isinstance(action, Add)


def test_of_two_new_files_with_one_id_the_one_with_its_name_keeps_it(record):
    """A rebuild after a lost database does not take the copy for the original."""
    actions = planned(seen=[seen("decisions/a.md", text(record)), seen(HOME, text(record))])
    assert [(type(action), action.path) for action in actions] == [(Add, HOME), (Trouble, "decisions/a.md")]


# Trouble


def test_a_file_that_cannot_be_read_leaves_its_record_alone(record):
    """Neither is touched, however new the record is."""
    file = seen(HOME, text(record).replace("---\n\n", "tags: 3\n---\n\n"))
    for present in (record, newer(record, content="Use yarn"), newer(record, archived_at=record.created_at)):
        assert planned(seen=[file], known=[known(HOME, record)], records=[present]) == [
            Trouble(path=HOME, line=file.trouble.line, reason="tags must be a list")
        ]


def test_a_renamed_file_that_cannot_be_read_does_not_archive_its_record(record):
    """Its name still ends with the beginning of the id."""
    file = seen("principles/renamed--1kjmekwhbb.md", "---\n<<<<<<< HEAD\n---\nx")
    [action] = planned(seen=[file], known=[known(HOME, record)], records=[record])
    assert action == Trouble(path=file.path, line=2, reason="has git conflict markers; resolve them first")


def test_a_copy_of_a_file_that_cannot_be_read_does_not_take_its_place(record):
    """Whoever repairs the file finds its record as it was."""
    files = [seen(HOME, "---\nid: [\n---\nx"), seen("decisions/a.md", text(record).replace("pnpm", "yarn"))]
    actions = planned(seen=files, known=[known(HOME, record)], records=[record])
    assert {type(action) for action in actions} == {Trouble}
    assert [action.path for action in actions] == ["decisions/a.md", HOME]


@pytest.mark.parametrize("path", ["notes.md", "drafts/x.md", "/x.md"])
def test_a_file_outside_of_the_five_folders_is_told_where_to_go(record, path):
    """Its record, if it was moved there, is not archived."""
    [action] = planned(seen=[seen(path, text(record))], known=[known(HOME, record)], records=[record])
    reason = f"is not in the folder of a category; move it to one of {CATEGORIES}"
    assert action == Trouble(path=path, line=1, reason=reason)


def test_a_category_that_is_not_one_of_the_five_is_trouble(record):
    """In the frontmatter as in a folder's name."""
    file = seen(HOME, text(record).replace("---\n\n", "category: rules\n---\n\n"))
    [action] = planned(seen=[file], known=[known(HOME, record)], records=[record])
    assert action == Trouble(path=HOME, line=1, reason=f"category must be one of {CATEGORIES}, not 'rules'")


def test_a_file_that_was_neither_read_nor_known_is_a_mistake_of_the_caller():
    """A plan is made from what was seen, not from guesses."""
    with pytest.raises(InvalidInput, match="was not read"):
        planned(seen=[FoundFile(path="decisions/a.md", digest="1", stamp=1)])


def test_actions_come_in_the_order_in_which_they_are_done(record, other):
    """Removals, notes, what changes something, what is forgotten, and what only a person can do."""
    gone, lost = other.replace(id="1" * 20), other.replace(id="2" * 20)
    actions = planned(
        seen=[
            seen("decisions/z.md", "new"),
            seen("decisions/b.md", text(record)),
            seen("decisions/y.md", text(gone)),
            seen("a.md", "x"),
        ],
        known=[known(HOME, record), known("decisions/y.md", gone), known("decisions/c.md", lost)],
        records=[record, other],
    )
    assert [type(action) for action in actions] == [Remove, Note, Write, Add, Drop, Drop, Trouble]
