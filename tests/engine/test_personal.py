"""Personal data: recognised by its check digits, tagged on the record, masked or refused where the settings say so."""

from __future__ import annotations

import random

import pytest

from commonplace.engine.memory import Memory
from commonplace.engine.transcripts import Turn
from commonplace.model.binding import Binding
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel, Kind
from commonplace.redact.personal import find_personal
from stands import ADA, rows

CARD = "4539 1488 0343 " + "6467"
IBAN = "DE89 3704 0044 0532 " + "0130 00"

PERSONAL = [
    (f"my card is {CARD}", "card"),
    ("Visa 4539148803436467, 12/29", "card"),
    ("amex 3782 822463 10005", "card"),
    (f"wire it to {IBAN} please", "iban"),
    ("GB29NWBK60161331926819", "iban"),
    ("FR14 2004 1010 0505 0001 3M02 606.", "iban"),
    ("Meine Steuer-ID: 86095742719", "national-id"),
    ("NIR 2 55 08 14 168 025 38", "national-id"),
    ("DNI 12345678Z", "national-id"),
    ("su NIE es X1234567L", "national-id"),
    ("codice fiscale RSSMRA85T10A562S", "national-id"),
    ("BSN 111222333", "national-id"),
    ("PESEL: 44051401359", "national-id"),
    ("CPF 529.982.247-25", "national-id"),
    ("93.05.18-223.61", "national-id"),
    ("AHV 756.9217.0769.85", "national-id"),
    ("personnummer 811218-9876", "national-id"),
    ("my SSN is 123-45-6789", "national-id"),
]
OTHERS = [
    "card 4539 1488 0343 6468",
    "IBAN DE89 3704 0044 0532 0130 01",
    "Steuer-ID 86095742718",
    "NIR 2 55 08 14 168 025 39",
    "DNI 12345678A",
    "RSSMRA85T10A562T",
    "BSN 111222334",
    "PESEL 44051401358",
    "CPF 529.982.247-26",
    "SSN 000-45-6789",
    "call 123-45-6789",
    "order 4539 1488 0343 6467",
    "order number: 4539148803436467",
    "id = 4539148803436467",
    "https://example.com/4539148803436467?card=1",
    "card_4539148803436467_id",
    "the card of commit 4539148803436467abcdef",
    "sha256:4539148803436467453914880343646745391488034364674539148803436467 card",
    "at 1700000000000 the card was read",
    "+49 30 901820 and 0800 330 1000",
    "ISBN 978-3-16-148410-0",
    "IMEI 490154203237518",
    "version 86095742719",
    "uuid 4539148803436467-1488-0343-6467-453914880343",
    "card 4444 4444 4444 4444",
]


@rows("text, kind", PERSONAL)
def test_personal_data_is_recognised(text, kind):
    """By its check digit, and by the groups, letters or words that say what it is."""
    assert [found for *_, found in find_personal(text)] == [kind]


@rows("text", OTHERS)
def test_other_numbers_are_not(text):
    """Wrong digits, orders, times, telephones, and what is part of an identifier, a digest or an address."""
    assert find_personal(text) == []


def test_a_wrong_digit_is_never_personal_data():
    """Of a valid number with one digit changed, none is taken for one."""
    rng = random.Random(7)
    for text, _ in PERSONAL:
        if "SSN" in text:
            continue  # it has no check digit
        places = [at for at, letter in enumerate(text) if letter.isdigit() and not text.startswith("Visa")]
        for at in rng.sample(places, min(4, len(places))):
            changed = str((int(text[at]) + 1) % 10)
            assert find_personal(text[:at] + changed + text[at + 1 :]) == [], (text, at)


def test_the_name_of_a_field_says_what_a_number_is():
    """As in the metadata of a record."""
    assert find_personal("4539148803436467", name="card")
    assert not find_personal("4539148803436467", name="order")


def test_hostile_text_takes_time_in_proportion():
    """No unit repeated makes four times the text take more than ten times as long."""
    import time  # noqa: PLC0415 - only this test measures

    def seconds(text):
        began = time.process_time()
        find_personal(text)
        return time.process_time() - began

    for unit in ("4539 1488 0343 ", "1", "DE89 3704 ", "1 ", "card ", "12345678-", "RSSMRA85", "4-", "1.2."):
        short = unit * (10_000 // len(unit))
        assert seconds(short * 4) < 10 * max(seconds(short), 0.005), unit


@pytest.fixture
def memory_with(store, clock):
    """A memory whose scope has a policy."""

    def memory_with(policy=None):
        personal = {} if policy is None else {ADA: policy}
        binding = Binding(
            channel=Channel.USER, writes=dict.fromkeys(Kind, ADA), reads=(ADA,), transcripts=frozenset({ADA}),
            personal=personal,
        )  # fmt: skip
        return Memory(store, binding, clock=clock)

    return memory_with


def test_a_record_is_tagged_by_default(memory_with):
    """With what it holds; the tag goes when the data goes, and the user's own tags stay."""
    memory = memory_with()
    record = memory.remember(f"pay with {CARD}", tags=["money"], metadata={"account": IBAN}).record
    assert record.content == f"pay with {CARD}"
    assert record.tags == {"money", "personal:card", "personal:iban"}

    after = memory.update(record.id, content="pay in cash", metadata={}).record
    assert after.tags == {"money"}


def test_the_same_number_is_tagged_every_time(memory_with):
    """What passed once as a short text is looked at again."""
    memory = memory_with()
    for key in ("a", "b"):
        assert memory.remember(f"card {CARD}", key=key).record.tags == {"personal:card"}


def test_mask_replaces_it(memory_with, store):
    """In every field, by a mark; nothing of it is stored, and nothing is tagged."""
    written = memory_with("mask").remember(f"pay with {CARD}", metadata={"account": IBAN}, value={"n": f"card {CARD}"})

    assert "[secret:card:" in written.record.content
    assert [finding.kind for finding in written.redactions] == ["card", "card", "iban"]
    assert written.record.tags == frozenset()
    assert "6467" not in repr(store.get(written.record.id))


def test_block_refuses_it_in_a_sentence(memory_with):
    """Which names the field, the kind and the setting, and not the number."""
    with pytest.raises(InvalidInput, match=r"the content holds personal data \(card\), which `personal_data") as error:
        memory_with("block").remember(f"pay with {CARD}")
    assert "6467" not in str(error.value)
    assert memory_with("block").list() == []


def test_sessions_are_masked_where_records_are_masked_or_blocked(memory_with, store):
    """A session is never refused, and has no tags."""
    for policy, is_left in (("mask", False), ("block", False), ("allow", True)):
        memory_with(policy).index(DocumentKind.SESSION, policy, [Turn(ref="0", text=f"pay with {CARD}")])
        where = DocumentFilter(scopes=frozenset({ADA}), names=frozenset({policy}))
        [chunk] = store.chunks(where, limit=9)
        assert (CARD in chunk.text) is is_left
