"""The gate: what is refused and why, what is repaired and how, what is taken out, what may be trusted."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from commonplace.engine.admission import (
    FIELDS_BYTES,
    JSON_DEPTH,
    KEY_BYTES,
    MAX_TAGS,
    METADATA_BYTES,
    TAG_CHARS,
    admit,
)
from commonplace.model.binding import CONTENT_BYTES, Binding
from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.ids import new_id
from commonplace.model.records import CATEGORIES, CEILING, Channel, Draft, Kind, Trust
from commonplace.model.scopes import Scope
from stands import rows

HERE = Scope.of(("project", "here"))
THERE = Scope.of(("project", "there"))
DAY = timedelta(days=1)
SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7h8"


@pytest.fixture
def admitted(clock):
    """Send a draft through the gate of the records system, with whatever differs."""

    def admitted(content="something", *, secret=b"key", parent_trust=Trust.USER, binding=None, **fields):
        given = {"channel": Channel.USER, "writes": dict.fromkeys(Kind, HERE), "reads": (HERE,)}
        given |= {"categories": CATEGORIES, "temporary": frozenset({"incidents"})}
        draft = Draft(content=content, **{"category": "decisions"} | fields)
        gate = Binding(**given | (binding or {}))
        return admit(draft, binding=gate, id=new_id(clock()), now=clock(), secret=secret, parent_trust=parent_trust)

    return admitted


def nested(depth):
    """A list in a list in a list."""
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


REFUSED = {
    "nothing": ({"content": ""}, "the content is blank; there is nothing to remember"),
    "blank": ({"content": " \n\t "}, "the content is blank; there is nothing to remember"),
    "only control characters": ({"content": "\x00\x1b\u202e"}, "the content is blank; there is nothing to remember"),
    "too long": ({"content": "a" * 16_385}, "the content has 16385 bytes; the limit is 16384"),
    "too long in bytes": ({"content": "ä" * 8_193}, "the content has 16386 bytes; the limit is 16384"),
    "half a character": ({"content": "ab\ud800"}, "the content is not valid Unicode at character 2"),
    "no category": (
        {"category": None},
        "a record needs a category: one of decisions, procedures, principles, incidents",
    ),
    "an unknown category": (
        {"category": "opinions"},
        "'opinions' is not a category; use one of decisions, procedures, principles, incidents, preferences",
    ),
    "a category by another case": ({"category": "Decisions"}, "'Decisions' is not a category"),
    "a blank key": ({"key": " "}, "' ' cannot be a key: it is blank or has several lines"),
    "a key of two lines": ({"key": "a\nb"}, "cannot be a key: it is blank or has several lines"),
    "a long key": ({"key": "ä" * 257}, "the key has 514 bytes; the limit is 512"),
    "half a character in a key": ({"key": "\udc00"}, "the key is not valid Unicode"),
    "too many tags": ({"tags": frozenset(map(str, range(65)))}, "at most 64 tags of 200 characters each"),
    "a long tag": ({"tags": frozenset({"t" * 201})}, "at most 64 tags of 200 characters each"),
    "half a character in a tag": ({"tags": frozenset({"\ud800"})}, "a tag is not valid Unicode"),
    "metadata that is no JSON": ({"metadata": {"a": object()}}, "the metadata is not JSON"),
    "metadata with a number that is none": ({"metadata": {"a": float("nan")}}, "the metadata is not JSON"),
    "long metadata": ({"metadata": {"a": "ä" * 8_190}}, "the metadata has 16389 bytes; the limit is 16384"),
    "half a character in metadata": ({"metadata": {"a": ["\ud800"]}}, "the metadata is not valid Unicode"),
    "half a character in a name": ({"metadata": {"\ud800": 1}}, "the metadata is not valid Unicode"),
    "aliases that are no list": ({"metadata": {"aliases": "pm"}}, "aliases must be a list of texts, not 'pm'"),
    "keywords that are no texts": ({"metadata": {"keywords": [1]}}, r"keywords must be a list of texts, not \[1\]"),
    "a value that is no JSON": ({"value": {1, 2}}, "the value is not JSON"),
    "a value beyond numbers": ({"value": [float("inf")]}, "the value is not JSON"),
    "half a character in a value": ({"value": {"a": "\ud800"}}, "the value is not valid Unicode"),
    "a deep value": ({"value": nested(7)}, "the value is nested deeper than 6 levels"),
    "a bottomless value": ({"value": nested(5_000)}, "the value is nested deeper than 6 levels"),
    "deep metadata": ({"metadata": {"a": nested(7)}}, "the metadata is nested deeper than 6 levels"),
    "a long value": ({"value": "ä" * 15_000}, "everything but the content has 30... bytes; the limit is 30000"),
    "a long reference": ({"ref": "r" * 30_001}, "everything but the content has 30... bytes"),
    "half a character in a reference": ({"ref": "\ud800"}, "the reference is not valid Unicode"),
    "a decision that expires": ({"ttl": DAY}, "decisions are permanent; only incidents can expire"),
    "a preference that expires": (
        {"category": "preferences", "ttl": DAY},
        "preferences are permanent; only incidents can expire",
    ),
    "an expiry somewhere": (
        {"category": "incidents", "expires_at": datetime(2026, 1, 1)},  # noqa: DTZ001 - that is the mistake
        "the expiry 2026-01-01 00:00:00 has no time zone",
    ),
    "a lifetime beyond the calendar": (
        {"category": "incidents", "ttl": timedelta.max},
        "after the last day of the cal",
    ),
    "a date somewhere": ({"occurred_at": datetime(2026, 1, 1)}, "a date without a time zone"),  # noqa: DTZ001
}


@rows("fields, sentence", REFUSED.values())
def test_a_refusal_is_a_sentence(admitted, fields, sentence):
    """What cannot be kept is named, with the limit or the choices that there are."""
    with pytest.raises(InvalidInput, match=sentence):
        admitted(**fields)


def test_a_foreign_scope_is_forbidden(admitted):
    """Nobody writes where the binding does not reach."""
    with pytest.raises(Forbidden, match="this binding may not write to project:there"):
        admitted(scope=THERE)


def test_a_kind_without_a_place_is_forbidden(admitted):
    """A kind that is not in the binding is switched off."""
    with pytest.raises(Forbidden, match="procedural memory is not enabled here"):
        admitted(category="procedures", binding={"writes": {Kind.SEMANTIC: HERE}})


KEPT = {
    "the longest content": {"content": "ä" * (CONTENT_BYTES // 2)},
    "the longest key": {"key": "k" * KEY_BYTES},
    "the most tags": {"tags": frozenset(f"{n:0{TAG_CHARS}}" for n in range(MAX_TAGS))},
    "the most metadata": {"metadata": {"a": "x" * (METADATA_BYTES - len('{"a": ""}'))}},
    "the deepest value": {"value": nested(JSON_DEPTH)},
    "the deepest metadata": {"metadata": {"a": nested(JSON_DEPTH)}},
    "the longest reference": {"ref": "r" * (FIELDS_BYTES - 200)},
}


@rows("fields", KEPT.values())
def test_a_limit_can_be_reached(admitted, fields):
    """What is exactly as long as allowed is kept as it is."""
    record = admitted(**fields).record

    for field, value in fields.items():
        assert (record.source.ref if field == "ref" else getattr(record, field)) == value


@rows(
    "said, kept",
    [
        ("  text \n\n", "text"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("\tcode\n\tmore", "code\n\tmore"),
        ("a\x00b\x1b[31mc", "ab[31mc"),
        ("left\u202eright\u2066", "leftright"),
        ("\ufeffbom", "bom"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("\x7f\x85\x9f text", "text"),
        ("family 👩\u200d👩\u200d👧 stays", "family 👩\u200d👩\u200d👧 stays"),
    ],
)
def test_text_is_repaired_by_the_stated_rule(admitted, said, kept):
    """Line ends, invisible characters and blank ends are put right; everything else stays."""
    assert admitted(said).record.content == kept


def test_what_was_dropped_is_said(admitted):
    """The caller learns how many characters went."""
    assert admitted("a\x00b\x1bc").notes == ("2 control characters were removed",)
    assert admitted("plain").notes == ()


def test_tags_aliases_and_keywords_are_tidied(admitted):
    """Blank and repeated ones go, the others keep their order."""
    names = {"aliases": [" pm ", "pm", "", "package manager"], "keywords": []}
    record = admitted(tags=frozenset({" js ", " ", "web"}), metadata=names).record

    assert record.tags == {"js", "web"}
    assert record.metadata == {"aliases": ["pm", "package manager"], "keywords": []}


@rows(
    "said, kept",
    [("Team Notes!", "team_notes"), (None, "general"), ("  ", "general"), ("日本", "general"), ("a--b__c", "a_b_c")],
)
def test_an_open_category_becomes_a_slug(admitted, said, kept):
    """Where any category is allowed it is written in one way."""
    record = admitted(category=said, binding={"categories": None}).record

    assert (record.category, record.kind) == (kept, Kind.SEMANTIC)


def test_a_kind_can_be_said_apart_from_the_category(admitted):
    """The category proposes, the caller decides."""
    assert admitted(category="decisions", kind=Kind.EPISODIC).record.kind is Kind.EPISODIC


def test_a_ttl_becomes_a_moment(admitted, clock):
    """What expires says when; only what may expire does."""
    assert admitted(category="incidents", ttl=DAY).record.expires_at == clock() + DAY
    assert admitted(category="incidents").record.expires_at is None
    assert admitted(category="x", ttl=DAY, binding={"categories": None, "temporary": None}).record.expires_at


PLACES = {
    "content": lambda secret: {"content": f"token {secret} end"},
    "value": lambda secret: {"value": {"deep": [secret]}},
    "a name in a value": lambda secret: {"value": {secret: 1}},
    "tags": lambda secret: {"tags": frozenset({secret})},
    "metadata": lambda secret: {"metadata": {"note": secret}},
    "a name in metadata": lambda secret: {"metadata": {secret: 1}},
    "aliases": lambda secret: {"metadata": {"aliases": [secret]}},
    "key": lambda secret: {"key": secret},
    "ref": lambda secret: {"ref": f"https://x.example/?token={secret}"},
}


@rows("place", PLACES.values())
def test_a_secret_is_taken_out_wherever_it_stands(admitted, place):
    """It is in no field and in no term, and the caller learns of it."""
    found = admitted(**place(SECRET))

    assert SECRET not in repr(found.record)
    assert SECRET.lower() not in " ".join(found.terms)
    assert "[secret:" in repr(found.record)
    assert len(found.redactions) >= 1


TOLD_BY_NAME = {
    "in a value": {"value": {"db": {"password": "hunter2abcXYZ"}}},
    "with quotes in it": {"value": {"password": "hunter2abcXYZ\"9'!"}},
    "with blanks around it": {"value": {"client_secret": "  hunter2abcXYZ "}},
    "in a list": {"value": {"passwords": ["Tr0ub4dor&3", "hunter2abcXYZ"]}},
    "in metadata": {"metadata": {"api_key": "hunter2abcXYZ00a8f5f167f44f4964"}},
    "under the key of the record": {"key": "staging-password", "content": "hunter2abcXYZ"},
    "as the value of a key": {"key": "staging-password", "content": "", "value": "hunter2abcXYZ"},
}


@rows("fields", TOLD_BY_NAME.values())
def test_what_only_its_name_tells_is_taken_out_too(admitted, fields):
    """A word that could be anything is a password where it is called one."""
    found = admitted(**fields)
    assert "hunter2abcXYZ" not in repr(found.record)
    assert "hunter2abcxyz" not in " ".join(found.terms)
    assert "[secret:" in repr(found.record)
    assert found.redactions


NOT_TOLD = {
    "a page": {"value": {"next_page_token": "CAUQAA", "token": "page-2", "token_type": "bearer"}},
    "a place for one": {"value": {"api_key": "${API_KEY}", "password": "required"}},
    "a sentence under a key": {"key": "staging-password", "content": "Ask Tom for it"},
    "names that differ by a blank": {"value": {" a": 1, "a": 2}},
}


@pytest.mark.parametrize("fields", NOT_TOLD.values(), ids=NOT_TOLD)
def test_a_name_makes_no_secret_of_what_is_none(admitted, fields):
    """It is kept as it was given."""
    found = admitted(**fields)
    assert found.redactions == ()
    assert {name: getattr(found.record, name) for name in fields} == fields


def test_equal_secrets_get_equal_marks_under_one_key(admitted):
    """A mark says that it is the same secret, and nothing about it to whoever lacks the key."""
    one, same, other = admitted(f"a {SECRET}"), admitted(f"b {SECRET}"), admitted(f"c {SECRET}", secret=b"other")

    assert one.redactions[0].mark == same.redactions[0].mark
    assert one.redactions[0].mark != other.redactions[0].mark


@rows("channel", Channel)
@rows("parent", Trust)
def test_trust_is_the_least_of_channel_and_parents(admitted, channel, parent):
    """The ceiling of the channel holds, and so does that of the parents."""
    record = admitted(binding={"channel": channel}, parent_trust=parent).record

    assert record.trust is min(CEILING[channel], parent)
    assert record.source.channel is channel


def test_a_parent_is_named_once(admitted):
    """Parents keep their order and are not repeated."""
    assert admitted(parents=("b", "a", "b")).record.source.parents == ("b", "a")


def test_a_record_is_found_by_its_words_names_and_key(admitted):
    """Terms come from content, aliases, keywords and key, and from nothing else."""
    said = {"metadata": {"aliases": ["alpha"], "keywords": ["beta"], "team": "gamma"}, "tags": frozenset({"delta"})}

    assert set(admitted("zeta", key="eta", **said).terms) == {"zeta", "alpha", "beta", "eta"}
