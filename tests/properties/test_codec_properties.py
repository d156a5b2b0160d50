"""Whatever a record is, its file says it; whatever a file is, it is read or refused."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commonplace.files.codec import FileTrouble, ParsedFile, apply_file, decode, encode, file_name, matches_record
from commonplace.model.ids import ALPHABET
from commonplace.model.records import CATEGORIES, Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.text.strict_yaml import YamlError, dump, load

NASTY = st.sampled_from(
    [
        *("---", "...", "--- ", "- a", "# no", "a: b", "a #b", "key:", "'", '"', "\\", "\\n", "[a, b]", "{a: 1}", "<<"),
        *("no", "yes", "on", "y", "null", "~", "true", "True", "1", "1.10", "0x1F", "1_000", "12:30", "2024-05-17"),
        *("<<<<<<< HEAD", ">>>>>>> x", "=======", "&a", "*a", "!!str", "? x", "| ", "> ", "%YAML 1.1", "@x", "`x`"),
        *("\r\n", "\r", "\n", "\n\n", "\t", " ", "\x85", "\u2028", "\ufeff", "\u202e", "\x7f", "\x1b[31m", "é", "日"),
    ]
)
TEXT = st.lists(
    NASTY | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6), max_size=6
)
TEXTS = TEXT.map("".join)
CONTENT = st.builds("".join, st.lists(TEXTS | st.just("\n"), min_size=1, max_size=5)).filter(str.strip)
OFFSETS = st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=-30))])
MOMENTS = st.builds(
    lambda seconds, fraction, zone: datetime.fromtimestamp(seconds, zone).replace(microsecond=fraction),
    *(st.integers(-(10**9), 7 * 10**9), st.sampled_from([0, 0, 1, 120_000, 999_999]), OFFSETS),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)
KEYS = TEXTS | st.sampled_from(
    ["aliases", "keywords", "tags", "id", "source", "version", "metadata", "key", "conflict_markers"]
)


@st.composite
def records(draw):
    """Any record that admission could let through, and some that it would not."""
    archived = draw(st.none() | MOMENTS)
    category = draw(st.sampled_from([*CATEGORIES, "general", "12"]))
    return Record(
        id=draw(st.text(ALPHABET, min_size=20, max_size=20)),
        scope=Scope.of(("project", "app")),
        kind=draw(st.sampled_from(Kind)),
        category=category,
        content=draw(CONTENT),
        key=draw(st.none() | TEXTS),
        value=draw(JSON),
        tags=draw(st.frozensets(TEXTS, max_size=3)),
        metadata=draw(st.dictionaries(KEYS, JSON, max_size=4)),
        source=Source(
            channel=draw(st.sampled_from(Channel)),
            ref=draw(st.none() | TEXTS),
            parents=tuple(draw(st.lists(TEXTS, max_size=2))),
        ),
        trust=draw(st.sampled_from(Trust)),
        pinned=draw(st.booleans()),
        held=draw(st.booleans()),
        version=draw(st.integers(0, 10**6)),
        created_at=draw(MOMENTS),
        updated_at=draw(MOMENTS),
        occurred_at=draw(st.none() | MOMENTS | st.just(datetime(2026, 12, 1, tzinfo=UTC))),
        expires_at=draw(st.none() | MOMENTS),
        archived_at=archived,
        superseded_by=draw(st.none() | TEXTS) if archived else None,
        consolidated_at=draw(st.none() | MOMENTS),
    )


@given(records())
@settings(deadline=None)
def test_a_file_says_what_its_record_is(record):
    """Nothing is lost on the way to a file and back, and the content not a byte."""
    parsed = decode(encode(record), path="decisions/x.md")
    assert parsed.content == record.content
    assert parsed.id == record.id
    assert matches_record(parsed, record)
    assert apply_file(record, parsed).tags == record.tags
    assert (parsed.value, parsed.key) == (record.value, record.key)
    if record.source.channel not in (Channel.USER, Channel.FILE):
        assert (parsed.source, parsed.trust) == (record.source, None if record.trust is Trust.USER else record.trust)


@given(records())
@settings(deadline=None)
def test_a_file_that_is_written_again_stays_as_it_is(record):
    """Writing the same record over its own file changes no byte."""
    data = encode(record)
    assert encode(record, previous=data.decode()) == data


@given(records(), records())
@settings(deadline=None)
def test_a_file_written_over_another_one_says_the_new_record(old, new):
    """Whatever stood there before: what comes out is the record, and stays as it is from then on."""
    data = encode(new, previous=encode(old).decode())
    parsed = decode(data, path="decisions/x.md")
    assert matches_record(parsed, new)
    assert (parsed.id, parsed.content) == (new.id, new.content)
    assert encode(new, previous=data.decode()) == data


@given(
    records(), records(), st.lists(st.sampled_from(["# why", "#", "", "# tags: [x]", "# ---"]), min_size=1, max_size=3)
)
@settings(deadline=None)
def test_comments_survive(old, new, comments):
    """A person's comment and empty lines outlive every change of the record, in their order."""
    head, fence, rest = encode(old).decode().partition("\nid: ")
    edited = "".join([head, "\n", *(f"{comment}\n" for comment in comments), "id: ", rest])
    after = encode(new, previous=edited).decode()
    rows = [row for row in after.partition("\n---\n")[0].split("\n") if row.startswith("#") or not row]
    assert fence
    assert rows == comments


@given(st.binary(max_size=200))
@example(b"---\n---\n")
@example(b"\xff\xfe-\0-\0")
@example(b"---\ncreated: 0001-01-01T00:00:00+23:59\n---\nx")
@example(b'---\nvalue: "\\ud800"\n---\nx')
@settings(deadline=None)
def test_any_bytes_are_read_or_refused(data):
    """There is no file that breaks a sync."""
    assert read(data)


@given(records(), st.data())
@settings(deadline=None, max_examples=150)
def test_any_damaged_file_is_read_or_refused(record, data):
    """Bytes lost, changed, doubled or put in at random make trouble with a line, or another record; never a crash."""
    good = encode(record)
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(len(good), start + 20)))
    pieces = st.sampled_from(
        [
            b"",
            b"\0",
            b"\xff",
            b"\n",
            b"---\n",
            b": ",
            b"&a ",
            b"*a",
            b"[",
            b"{",
            b"'",
            b'"',
            b"\r\n",
            b"\t",
            good[start:end] * 2,
        ]
    )
    damaged = good[:start] + data.draw(pieces | st.binary(max_size=4)) + good[end:]
    if isinstance(read(damaged), ParsedFile):
        assert matches_record(decode(encode(record, previous=damaged.decode()), path="x.md"), record)


def read(data: bytes) -> ParsedFile | FileTrouble:
    """What a file says, or what is wrong with it and in which of its lines."""
    try:
        return decode(data, path="decisions/x.md")
    except FileTrouble as error:
        trouble = error
    assert 1 <= trouble.line <= data.count(b"\n") + data.count(b"\r") + 1
    return trouble


@given(JSON)
@settings(deadline=None)
def test_a_written_value_is_read_back_by_everybody(value):
    """Our own reader, and the YAML 1.1 of PyYAML, both read what was meant, type by type."""
    text = f"value: {dump(value)}\n"
    assert same(load(text, file="x"), {"value": value})
    assert same(yaml.safe_load(text), {"value": value})


def same(one: object, other: object) -> bool:
    return repr(one) == repr(other) or dump(one) == dump(other)


@given(st.text(max_size=60) | st.lists(NASTY, max_size=8).map("".join))
@settings(deadline=None)
def test_any_text_is_yaml_or_an_error_with_a_line(text):
    """No text makes the reader fail in another way."""
    with suppress(YamlError):
        load(text, file="x")


@given(records())
@settings(deadline=None)
def test_a_file_name_is_safe_everywhere(record):
    """One folder, one short name, nothing that a file system or a shell takes for something else."""
    folder, slash, name = file_name(record).partition("/")
    assert slash
    assert folder == record.category
    assert name.endswith(f"--{record.short}.md")
    assert len(name.encode()) <= 140
    assert not name.startswith((".", "-"))
    assert not set(name) & set('/\\:*?"<>|\0\n\r\t ')
    assert name == name.lower()
