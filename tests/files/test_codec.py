"""A record and its file: how it is written, how people may write it, and what is told of a damaged one."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from commonplace.files.codec import (
    FILE_BYTES,
    FileTrouble,
    apply_file,
    clean_path,
    decode,
    encode,
    file_name,
    matches_record,
)
from commonplace.model.errors import InvalidInput
from commonplace.model.ids import moment_of, new_id
from commonplace.model.records import Channel, Kind, Source, Trust
from commonplace.redact.redaction import redact
from stands import rows

CREATED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@pytest.fixture
def record(make):
    """A plain decision, as extraction keeps it."""
    return make(
        "Use pnpm, not npm.\n\nIt shares packages.",
        id="1kjmekwhbby1d6cnd627",
        category="decisions",
        source=Source(channel=Channel.EXTRACTION, ref="session:0b1c#4"),
        trust=Trust.AGENT,
        version=1,
        created_at=CREATED,
        updated_at=CREATED,
    )


def says(text):
    """What a file with this text says."""
    return decode(text.encode(), path="decisions/x.md")


def trouble(data):
    """What is wrong with a file, and in which line."""
    with pytest.raises(FileTrouble) as caught:
        decode(data if isinstance(data, bytes) else data.encode(), path="decisions/x.md")
    assert str(caught.value) == f"decisions/x.md:{caught.value.line}: {caught.value.reason}"
    return caught.value.line, caught.value.reason


def edited(record, old, new):
    """A record's file after a person replaced something in it."""
    text = encode(record).decode()
    assert old in text
    return text.replace(old, new)


# Writing


def test_a_record_is_written_as_people_would(record):
    """Frontmatter in its order, nothing empty, nothing that folder and database know, and the content as it is."""
    assert encode(record).decode() == (
        "---\n"
        "id: 1kjmekwhbby1d6cnd627\n"
        "created: 2026-03-01T09:30:00Z\n"
        "source: extraction\n"
        'ref: "session:0b1c#4"\n'
        "trust: agent\n"
        "---\n"
        "\n"
        "Use pnpm, not npm.\n\nIt shares packages.\n"
    )


def test_what_a_person_has_said_just_now_is_its_id_and_its_words(make):
    """When it was made is in its id; that a person said it goes without saying."""
    made = new_id(CREATED)
    record = make("Use pnpm", id=made, category="decisions", version=3, created_at=moment_of(made))
    data = encode(record.replace(updated_at=CREATED + timedelta(days=9), consolidated_at=CREATED))
    assert data.decode() == f"---\nid: {record.id}\n---\n\nUse pnpm\n"
    from_file = record.replace(source=Source(channel=Channel.FILE, ref="decisions/use-pnpm.md"))
    assert encode(from_file) == data
    assert moment_of(made) >= CREATED


def test_all_that_a_record_can_have_is_written_in_order(record):
    """Each key stands at its place; metadata that is not ours comes last."""
    full = record.replace(
        kind=Kind.PROCEDURAL, updated_at=CREATED + timedelta(microseconds=5), occurred_at=CREATED,
        expires_at=datetime(2026, 12, 1, tzinfo=UTC), archived_at=CREATED, superseded_by="1" * 20,
        source=Source(channel=Channel.CONSOLIDATION, parents=("a", "b")), key="pm", value={"b": 1, "a": [True]},
        tags=frozenset({"js", "a, b"}), pinned=True, held=True, consolidated_at=CREATED,
        metadata={"keywords": ["yarn"], "aliases": ["package manager"], "team": "web", "source": "slack"},
    )  # fmt: skip
    rows = encode(full).decode().split("\n")[2:20]
    assert rows == [
        "kind: procedural",
        "created: 2026-03-01T09:30:00Z",
        "occurred: 2026-03-01T09:30:00Z",
        "expires: 2026-12-01",
        "archived: 2026-03-01T09:30:00Z",
        'superseded_by: "11111111111111111111"',
        "source: consolidation",
        "parents: [a, b]",
        "trust: agent",
        "key: pm",
        'value: {"a": [true], "b": 1}',
        "aliases: [package manager]",
        "keywords: [yarn]",
        'tags: ["a, b", js]',
        "pinned: true",
        "held: true",
        'metadata: {"source": "slack"}',
        "team: web",
    ]


@rows(
    "content",
    [
        "x",
        "---\nx\n---",
        "x\n",
        "\n\nx\n\n",
        "  x",
        "x\r\ny\r\n",
        "\r\nx\r",
        "...",
        "# T\n\n---\n",
        "x\n<<<<<<< HEAD\n",
    ],
)
def test_content_comes_back_to_the_byte(record, content):
    """Fences, line ends, empty lines and even conflict markers in a text are the text's own."""
    data = encode(record.replace(content=content))
    assert decode(data, path="x.md").content == content
    assert data.endswith(content.encode() + b"\n")


@rows("content", ["", " \n", "a\0b", "\ud800", "x" * 1_048_577])
def test_a_record_whose_file_could_not_be_read_is_not_written(record, content):
    """It is said before the file is there."""
    with pytest.raises(InvalidInput, match="cannot be a file"):
        encode(record.replace(content=content))


def test_metadata_that_would_not_be_read_is_not_written(record):
    """Too much, too deep, or nothing that JSON knows."""
    for metadata in ({"a": "x" * 70_000}, {"a": [[[[[[[[1]]]]]]]]}, {"a": CREATED}):
        with pytest.raises(InvalidInput):
            encode(record.replace(metadata=metadata))


def test_the_longest_record_that_is_allowed_can_be_written_and_read(record):
    """The limit of a file leaves room for the frontmatter of the longest content."""
    long = record.replace(content="x" * 1_048_576, metadata={"a": "x" * 60_000})
    assert matches_record(decode(encode(long), path="x.md"), long)


# Writing over what a person has edited


BEFORE = """\
---
# ours since 2024
tags:
  - js # the language
  - build

id: 1kjmekwhbby1d6cnd627
category: 'decisions'
created: 2026-03-01 09:30
expires:   2026-12-01   # after the move
team:   {name: 'web'}
version: 1
# the end
---
old
"""
AFTER = """\
---
# ours since 2024
tags:
  - js # the language
  - build

id: 1kjmekwhbby1d6cnd627
created: 2026-03-01 09:30
expires:   2026-12-01   # after the move
source: extraction
ref: "session:0b1c#4"
trust: agent
team:   {name: 'web'}
# the end
---

new
"""


def test_what_a_person_wrote_stays_when_the_record_changes(record):
    """Comments, empty lines, order and ways of writing; what earlier versions wrote without need goes."""
    after = apply_file(record, says(BEFORE)).replace(content="new", version=2, updated_at=CREATED + timedelta(days=1))
    assert encode(after, previous=BEFORE).decode() == AFTER


def test_a_changed_value_keeps_the_comments_about_it(record):
    """The one behind it, and the lines within it."""
    previous = edited(record, "trust: agent", "trust: agent\ntags: ['#1'] # why\nkey: a\nteam:\n  # who\n  - web")
    after = encode(record.replace(tags=frozenset({"x"}), key="b", metadata={"team": ["app"]}), previous=previous)
    assert b"tags: [x] # why\n" in after
    assert b"key: b\n" in after
    assert b"# who\nteam: [app]\n" in after


def test_a_key_that_is_gone_is_removed_and_a_new_one_put_at_its_place(record):
    """The comment above a removed key stays: nobody but its writer knows what it is about."""
    previous = edited(record, "trust: agent\n", "trust: agent\n# the old one\nkey: pm\n")
    after = encode(record.replace(expires_at=datetime(2026, 12, 1, tzinfo=UTC)), previous=previous).decode()
    assert "trust: agent\n# the old one\n---\n" in after
    assert "created: 2026-03-01T09:30:00Z\nexpires: 2026-12-01\nsource: extraction\n" in after


def test_an_empty_key_that_a_person_left_to_fill_in_stays(record):
    """It says nothing, and nothing has changed."""
    previous = edited(record, "trust: agent", "trust: agent\nexpires:")
    assert encode(record, previous=previous).decode() == previous


@rows(
    "previous",
    [
        "no frontmatter",
        "---\n{tags: [a], id: x}\n---\nx\n",
        "---\ntags: [\n---\nx\n",
        "---\n  tags: [a]\n---\nx\n",
        "---\n",
    ],
)
def test_a_previous_text_that_cannot_be_kept_is_written_anew(record, previous):
    """What comes out is always the record."""
    assert encode(record, previous=previous) == encode(record)


def test_a_windows_file_is_written_with_unix_lines(record):
    """Its comments stay all the same."""
    previous = edited(record, "trust: agent", "# why\ntrust: agent").replace("\n", "\r\n")
    assert encode(record, previous="\ufeff" + previous).decode() == previous.replace("\r\n", "\n")


# Reading what people write


def test_a_file_without_frontmatter_is_its_text():
    """Whoever writes only words says only words."""
    parsed = says("Ship on Fridays.\n")
    assert (parsed.content, parsed.bare, parsed.id, parsed.category) == ("Ship on Fridays.", True, None, None)


@rows(
    "text",
    [
        "\ufeff---\ntags: [a]\n---\n\nx\n",
        "---\r\ntags: [a]\r\n---\r\n\r\nx\r\n",
        "---  \ntags: [a]\n---\t\nx",
        "---\ntags: [a]\n...\nx\n",
        "\n \n---\ntags: [a]\n---\nx\n",
        "---\ntags: a\n---\nx",
        "---\n'tags':\n- a\n-\n---\nx",
    ],
)
def test_editors_may_write_it_their_way(text):
    """Byte order mark, CRLF, spaces behind the fences, dots, no empty line, no last newline."""
    parsed = says(text)
    assert (parsed.content, parsed.tags, parsed.bare) == ("x", {"a"}, False)


@rows(
    "written, moment",
    [
        ("2026-12-01", datetime(2026, 12, 1, tzinfo=UTC)),
        ("2026-12-01 09:30", datetime(2026, 12, 1, 9, 30, tzinfo=UTC)),
        ("2026-12-01T09:30:00Z", datetime(2026, 12, 1, 9, 30, tzinfo=UTC)),
        ("2026-12-01t09:30:00.25z", datetime(2026, 12, 1, 9, 30, 0, 250_000, tzinfo=UTC)),
        ("2026-12-01 09:30:00 +02:00", datetime(2026, 12, 1, 7, 30, tzinfo=UTC)),
        ("'2026-12-01T09:30-05:00'", datetime(2026, 12, 1, 9, 30, tzinfo=timezone(timedelta(hours=-5)))),
        ("20261201", datetime(2026, 12, 1, tzinfo=UTC)),
    ],
)
def test_dates_are_read_as_people_write_them(written, moment):
    """A day is its beginning in UTC; an offset is followed."""
    assert says(f"---\nexpires: {written}\n---\nx").expires_at == moment


def test_words_that_look_like_numbers_stay_words():
    """Where text is wanted, text is read, as it was written."""
    parsed = says("---\naliases: [1.10, 8080, no, true, 12:30, 1.5]\ntags: [2024-05-17]\nkey: 42\n---\nx")
    assert parsed.metadata == {"aliases": ["1.10", "8080", "no", "true", "12:30", "1.5"]}
    assert (parsed.tags, parsed.key) == ({"2024-05-17"}, "42")


def test_unknown_keys_are_metadata():
    """They are kept as they are, with their types."""
    parsed = says("---\nteam: web\nscore: 1.5\nlinks: {a: [1, null]}\nmetadata: {id: 7}\n---\nx")
    assert parsed.metadata == {"team": "web", "score": 1.5, "links": {"a": [1, None]}, "id": 7}


def test_pinned_is_yes_in_any_writing():
    """A mark is a yes or a no."""
    parsed = says("---\npinned: Yes\nheld: off\n---\nx")
    assert (parsed.pinned, parsed.held) == (True, False)


# Trouble


@rows(
    "head, line, reason",
    [
        ("tags: 3", 2, "tags must be a list"),
        ("a: 1\naliases: [[b]]", 3, "aliases must be a list of texts"),
        ("id: not-an-id", 2, "id is not the 20 letters and digits of a record; delete it to make a new record"),
        ("kind: magic", 2, "kind must be one of semantic, episodic, procedural, working, not 'magic'"),
        ("trust: root", 2, "trust must be one of user, agent, external, not 'root'"),
        (
            "\nsource: rumour",
            3,
            "source must be one of user, agent, capture, extraction, consolidation, import, file, not 'rumour'",
        ),
        ("expires: soon", 2, "expires must be a date such as 2026-12-01 or 2026-12-01T09:30:00Z, not 'soon'"),
        (
            "created: 2026-13-01",
            2,
            "created must be a date such as 2026-12-01 or 2026-12-01T09:30:00Z, not '2026-13-01'",
        ),
        (
            "occurred: 9999-12-31T23:00-05:00",
            2,
            "occurred must be a date such as 2026-12-01 or 2026-12-01T09:30:00Z, not '9999-12-31T23:00-05:00'",
        ),
        ("pinned: maybe", 2, "pinned must be true or false"),
        ("version: two", 2, "version must be a whole number below 9007199254740992"),
        ("version: -1", 2, "version must be a whole number below 9007199254740992"),
        ("version: 9007199254740992", 2, "version must be a whole number below 9007199254740992"),
        ("key: [a]", 2, "key must be text"),
        ("metadata: [a]", 2, "metadata must be keys and values"),
        ("superseded_by: x", 2, "superseded_by needs the date of archived; delete both lines to bring the record back"),
        ("just words", 2, "frontmatter must be keys and values"),
        ("a: 1\nb: &x 1", 3, "frontmatter uses an anchor or an alias (& or *); write the value out"),
        ("tags: [a]\ntags: [b]", 3, "frontmatter says 'tags' twice"),
        ("x: " + "y" * 70_000, 2, "frontmatter is larger than 65536 bytes"),
    ],
)
def test_frontmatter_that_cannot_be_taken_is_told_with_its_line(head, line, reason):
    """The line is the file's, the reason names the key and what it should be."""
    assert trouble(f"---\n{head}\n---\n\nx\n") == (line, reason)


@rows(
    "data, line, reason",
    [
        (b"", 1, "has no text"),
        (b"---\nkey: a\n---\n\n  \n", 4, "has no text below its frontmatter"),
        (b"---\nkey: a\n\nx\n", 1, "has frontmatter that never ends; put --- below it"),
        (b"---", 1, "has frontmatter that never ends; put --- below it"),
        (b"a\nb\xff\n", 2, "is not UTF-8"),
        (b"a\nb\nc\0", 3, "holds NUL"),
        (b"\xff\xfea\0", 1, "is UTF-16; save it as UTF-8"),
        (b"x" * (FILE_BYTES + 1), 1, f"is larger than {FILE_BYTES} bytes"),
        (b"---\nkey: a\n<<<<<<< HEAD\nb: 1\n", 3, "has git conflict markers; resolve them first"),
        (
            b"---\n<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> x\n---\n\nx\n",
            2,
            "has git conflict markers; resolve them first",
        ),
        (b"---\na: 1\n---\n\nx\n<<<<<<< HEAD\n", 6, "has git conflict markers; resolve them first"),
        (b"x\n>>>>>>> theirs\n", 2, "has git conflict markers; resolve them first"),
        (
            b"---\nconflict_markers: 1\n---\n\n<<<<<<< a\nx\n>>>>>>> b\n",
            5,
            "has git conflict markers; resolve them first",
        ),
    ],
)
def test_a_damaged_file_is_told_with_its_line(data, line, reason):
    """Nothing is guessed."""
    assert trouble(data) == (line, reason)


@rows(
    "data",
    [
        b"---\ncreated: '" + b" " * 60_000 + b"x'\n---\nx",
        b"---\nkey: " + b" #" * 30_000 + b"\n---\nx",
        b"---\nvalue: " + b"[" * 60_000 + b"\n---\nx",
        b"---\n" * 10_000,
        b"\n" * 100_000 + b"x",
        b"# [" + b"[" * 1_000_000,
    ],
)
def test_no_file_takes_long(record, data):
    """Neither to read, nor to write over, nor to name."""
    start = time.process_time()
    try:
        encode(record.replace(key="b"), previous=data.decode())
        file_name(record.replace(content=decode(data, path="x.md").content))
    except FileTrouble:
        pass
    assert time.process_time() - start < 2


# What a file changes


def test_a_line_that_is_taken_out_is_taken_out_of_the_record(record):
    """A date, a key, tags, a mark: gone from the file is gone."""
    before = record.replace(
        key="pm", value=1, tags=frozenset({"a"}), pinned=True, held=True, expires_at=CREATED, archived_at=CREATED,
        superseded_by="x", metadata={"aliases": ["b"], "team": "web"},
    )  # fmt: skip
    after = apply_file(before, says("---\nid: 1kjmekwhbby1d6cnd627\n---\nx"))
    assert after == record.replace(content="x")


def test_a_file_without_frontmatter_changes_only_the_content(record):
    """Whoever writes over a file with plain words did not mean to take its date away."""
    before = record.replace(key="pm", tags=frozenset({"a"}), expires_at=CREATED, kind=Kind.WORKING)
    assert apply_file(before, says("x")) == before.replace(content="x")


def test_another_category_is_another_kind(record):
    """Unless the file says the kind as well."""
    assert apply_file(record, says("---\ncategory: incidents\n---\nx")).kind is Kind.EPISODIC
    assert apply_file(record, says("---\ncategory: incidents\nkind: semantic\n---\nx")).kind is Kind.SEMANTIC
    assert apply_file(record, says("x").replace(category="procedures")).kind is Kind.PROCEDURAL


@rows(
    "old_new",
    [
        ("trust: agent", "trust: agent\nversion: 7\nupdated: 2026-03-01\nconsolidated: 2026-03-01"),
        ("created:", "# why\ncreated:"),
        ("packages.\n", "packages.\n\n\n"),
        ("---\n\n", "---\n\n\n"),
        ("trust: agent\n", ""),
        ("source: extraction\n", "source: user\ntags: []\n"),
    ],
)
def test_a_file_agrees_with_its_record_if_nothing_of_meaning_differs(record, old_new):
    """The version, where it comes from, comments, outer empty lines and what is left out say nothing else."""
    assert matches_record(says(edited(record, *old_new)), record)
    assert matches_record(says(edited(record, *old_new).replace("\n", "\r\n")), record)


@rows(
    "old_new",
    [
        ("pnpm", "yarn"),
        ("trust: agent", "tags: [a]"),
        ("value: 1", "value: true"),
        ("1kjm", "1kjn"),
        ("09:30", "09:31"),
        ("trust: agent", "team: x"),
        ("trust: agent", "category: incidents"),
        ("Use", " Use"),
    ],
)
def test_a_file_disagrees_with_its_record_if_anything_of_meaning_differs(record, old_new):
    """Any word, any key, even the type of a value."""
    assert not matches_record(says(edited(record.replace(value=1), *old_new)), record.replace(value=1))


# Names


@rows(
    "content, slug",
    [
        ("Use pnpm, not npm", "use-pnpm-not-npm"),
        ("## **Don't** use `__init__`!", "dont-use-init"),
        ("- [x] See [the docs](https://x.org/a-b) first\nmore", "see-the-docs-first"),
        ("1. First step", "first-step"),
        ("```\nmake test\n```", "make-test"),
        ("\n\n> Café Zürich №5", "cafe-zurich-no5"),
        ("日本語のテスト", "日本語のテスト"),
        ("हिन्दी में लिखो", "हिन्दी-में-लिखो"),
        ("Привет, мир", "привет-мир"),
        ("con", "record-con"),
        ("../../etc/passwd", "etc-passwd"),
        ("...", "record"),
        ("🎉🎉", "record"),
        ("word " * 30, "word-" * 11 + "word"),
        ("x" * 100, "x" * 60),
        ("語" * 100, "語" * 40),
    ],
)
def test_a_file_is_named_after_its_first_line(record, content, slug):
    """In letters of any script, short, and nothing that a file system minds."""
    assert file_name(record.replace(content=content)) == f"decisions/{slug}--1kjmekwhbb.md"


@rows(
    "category, folder",
    [("code_style", "code_style"), ("../x", "x"), ("nul", "record-nul"), ("", "record"), ("A b", "a-b")],
)
def test_a_folder_is_the_category_or_what_is_safe_of_it(record, category, folder):
    """No category leads out of the folder."""
    assert file_name(record.replace(category=category)).startswith(f"{folder}/")


def test_a_mark_in_the_first_line_does_not_look_like_a_secret_in_the_name(make):
    """The name of a file is the same however the digits of the mark fall, and passes the gate as it is."""
    for digits in ("0000", "4711", "e3d0"):
        record = make(f"The password is [secret:password:{digits}], ask Ada", category="procedures")
        name = file_name(record)
        assert name.startswith("procedures/the-password-is-secret-ask-ada--")
        assert clean_path(name, lambda text: redact(text).text) == name
        old = f"procedures/the-password-is-secret-password-{digits}-ask-ada--1kdwpvqegn.md"
        assert clean_path(old, lambda text: redact(text).text) == old
