"""The built-in embedder: unit vectors, always the same, near where the meaning is near."""

import math
import os
import shutil
import subprocess
import sys
from binascii import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.model.errors import ProviderError
from commonplace.providers import local
from commonplace.providers.local import FILE, LocalEmbedder
from stands import rows


@pytest.fixture(scope="module")
def embedder():
    """One for all tests: it keeps nothing but words."""
    return LocalEmbedder()


def cosine(embedder, one, other):
    """How near two texts are."""
    first, second = embedder.embed([one, other])
    return math.fsum(a * b for a, b in zip(first, second, strict=True))


def run(code, **env):
    """Run a program in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | env, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_the_identity_says_the_table_and_its_length(embedder):
    """Vectors are as long as the identity says."""
    assert (embedder.identity.name, embedder.identity.dimensions) == ("commonplace-static-1", 256)
    assert [len(vector) for vector in embedder.embed(["a", "b c"])] == [256, 256]


@given(text=st.text(max_size=200))
def test_every_text_has_a_vector_of_unit_length(embedder, text):
    """Whatever the script, and blank ones too."""
    [vector] = embedder.embed([text])
    assert math.fsum(number * number for number in vector) == pytest.approx(1, abs=1e-5)


def test_texts_are_embedded_one_by_one_and_in_order(embedder):
    """Neither the company nor the order of texts, nor whether one asks, changes a vector."""
    texts = ["the dog barks", "", "der Hund bellt", "the dog barks"]
    together = embedder.embed(texts)
    assert together == [LocalEmbedder().embed([text])[0] for text in texts]
    assert together == embedder.embed(texts, query=True)
    assert embedder.embed([]) == []


def test_case_accents_and_blanks_do_not_matter(embedder):
    """As for the tokenizer."""
    plain, other = embedder.embed(["cafe in zurich", "  Café\tin\nZÜRICH "])
    assert plain == other


def test_blank_texts_are_alike_and_near_to_nothing(embedder):
    """A fixed direction, so that no vector is zero."""
    blank = [cosine(embedder, "", text) for text in (" \n\t", "\u200b")]
    assert blank == pytest.approx([1, 1])
    assert all(abs(cosine(embedder, "", text)) < 0.25 for text in ("the dog barks", "sqlite", "日本語", "!"))


@rows(
    "question, answer, other",
    [
        ("what pets do you have?", "We adopted a kitten and a puppy", "The invoice is due on Friday"),
        ("where does she live", "She moved to an apartment in Berlin", "She likes to paint sunsets"),
        ("which database do we use", "Postgres runs on the server with a nightly dump", "Lunch is at noon"),
        ("allergies", "I must not eat peanuts, they make me sick", "The train leaves at nine"),
        ("how was the trip", "Our vacation in the mountains was wonderful", "The tests fail with a type error"),
        ("favourite music", "I listen to jazz and play the violin", "The parser drops trailing commas"),
    ],
)
def test_meaning_brings_texts_near(embedder, question, answer, other):
    """Without a word in common, what answers is nearer than what does not."""
    assert cosine(embedder, question, answer) > cosine(embedder, question, other) + 0.1


def test_a_text_is_nearest_to_itself_in_every_script(embedder):
    """Words that the vocabulary lacks are known again, and a little like their inflections."""
    texts = ["ሰላም ለዓለም", "ภาษาไทยง่าย", "བོད་སྐད", "😀🎉", "ꦧꦱꦗꦮ", "ქართული ენა", "the dog barks"]
    for text in texts:
        assert cosine(embedder, text, text) == pytest.approx(1, abs=1e-5)
        assert all(cosine(embedder, text, other) < 0.7 for other in texts if other != text)
    assert cosine(embedder, "ሰላምታ", "ሰላም") > cosine(embedder, "ሰላምታ", "ለዓለም") + 0.2


def test_a_very_long_text_does_not_overflow(embedder):
    """A hundred thousand words have the direction of one of them."""
    assert cosine(embedder, "pneumonia " * 100_000, "pneumonia") == pytest.approx(1, abs=1e-5)


def test_a_blob_is_cheap_and_does_not_drown_the_text(embedder):
    """A megabyte without a blank is known by its beginning, and is not kept."""
    blob = "QUJD" * 250_000
    text = "the screenshot of the login page that the customer sent us"
    assert cosine(embedder, f"{text} {blob}", text) > 0.5
    assert cosine(embedder, blob, blob + "x") == pytest.approx(1, abs=1e-5)
    assert max(map(len, embedder._known)) <= 100


def test_remembered_words_are_bounded(monkeypatch):
    """A stream of new words does not fill the memory, and changes no vector."""
    monkeypatch.setattr(local, "MOST_WORDS", 5)
    embedder = LocalEmbedder()
    before = embedder.embed(["alpha beta"])
    embedder.embed(["one two three four five six seven eight nine ten"])
    assert len(embedder._known) <= 5
    assert embedder.embed(["alpha beta"]) == before


def test_vectors_are_the_same_in_every_process(embedder):
    """No chance of hashing or of the order of work."""
    code = """from commonplace.providers.local import LocalEmbedder
print(LocalEmbedder().embed(["a cold dog 日本 ሰላም"])[0].tobytes().hex())"""
    ours = embedder.embed(["warm up", "a cold dog 日本 ሰላም"])[1].tobytes().hex() + "\n"
    assert {run(code, PYTHONHASHSEED=seed) for seed in ("0", "1")} == {ours}


def test_the_name_stands_for_these_vectors(embedder):
    """A table or an arithmetic that gives other numbers needs another name: stores are bound to it."""
    with open(FILE, "rb") as file:
        assert crc32(file.read()) == 2887230301
    [vector] = embedder.embed(["The same identity always gives the same vectors, même à Zürich, ሰላም."])
    assert [int(number * 1e6) for number in vector[:6]] == [40576, 37727, 53794, -94969, 36243, 39908]


def test_nothing_is_read_before_the_first_text(tmp_path):
    """Importing and making an embedder costs no file."""
    embedder = LocalEmbedder(str(tmp_path / "none.bin"))
    assert embedder.identity.dimensions == 256
    with pytest.raises(ProviderError, match=r"none\.bin.*cannot be read"):
        embedder.embed(["text"])


def test_the_embedder_needs_no_heavy_module():
    """Nothing that costs a hook its start."""
    code = "import sys, commonplace.providers.local as l; l.LocalEmbedder().embed(['a word']); print(*sys.modules)"
    loaded = set(run(code).split())
    assert not loaded & {"numpy", "json", "dataclasses", "pathlib", "hashlib", "unicodedata", "asyncio", "inspect"}


@pytest.mark.parametrize("cut", [0, 10, 40, 100_000, -1])
def test_a_damaged_table_is_a_provider_error(tmp_path, cut):
    """Cut off anywhere, it is refused when it is opened."""
    path = tmp_path / "cut.bin"
    with open(FILE, "rb") as file:
        path.write_bytes(file.read()[:cut])
    with pytest.raises(ProviderError, match=r"cut\.bin"):
        LocalEmbedder(str(path)).embed(["text"])


def test_another_file_is_a_provider_error(tmp_path):
    """Neither text nor a later version of the table is taken for it."""
    path = shutil.copy(FILE, tmp_path / "later.bin")
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(b"\x63")
    with pytest.raises(ProviderError, match="not a table of this version"):
        LocalEmbedder(path).embed(["text"])


def test_the_table_keeps_its_size():
    """At most 10 MB travel with the package."""
    assert os.path.getsize(FILE) <= 10_000_000
