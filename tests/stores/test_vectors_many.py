"""Among many vectors the nearest are found as if each of them were compared, whatever the filter keeps."""

import random
from math import hypot

import pytest

from commonplace.model.changes import AdoptEmbedder, PutDocument
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope
from commonplace.stores import codes as signatures
from stands import rows

DIMENSIONS, MANY = 64, 2_000
OTHER = Scope.parse("user:bob")


def unit(numbers):
    """A vector of unit length."""
    length = hypot(*numbers)
    return [number / length for number in numbers]


def crowd(seed, count, dimensions=DIMENSIONS):
    """Vectors in clusters around a common direction, as those of texts are."""
    chance = random.Random(seed)
    middles = [[chance.gauss(0.5, 1) for _ in range(dimensions)] for _ in range(20)]
    return [unit([number + chance.gauss(0, 0.7) for number in chance.choice(middles)]) for _ in range(count)]


VECTORS, QUESTIONS = crowd(1, MANY), crowd(2, 20)


def exact(question, numbers, limit=10):
    """The numbers of the nearest of these, each compared."""
    cosine = {number: sum(a * b for a, b in zip(question, VECTORS[number], strict=True)) for number in numbers}
    return sorted(numbers, key=lambda number: -cosine[number])[:limit]


@pytest.fixture
def many(store, make):
    """Records with a number each, of two kinds and ten categories, a third of them tagged, and a few that expire."""
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="crowd", dimensions=DIMENSIONS))])
    kinds, late = (Kind.SEMANTIC, Kind.EPISODIC), make.clock()
    changes = [make.put("0", vector=vector) for vector in crowd(3, 50)]
    store.apply([change.replace(record=change.record.replace(scope=OTHER)) for change in changes])
    for number, vector in enumerate(VECTORS):
        fields = {"kind": kinds[number % 2], "category": f"c{number % 10}", "expires_at": None if number % 50 else late}
        tags = frozenset({"third"} if number % 3 == 0 else {"other"})
        changes.append(make.put(make(str(number), tags=tags, **fields), vector=vector))
    store.apply(changes[50:])
    return store


@rows(
    "fields, kept",
    [
        ({}, lambda number: number % 50),
        ({"categories": frozenset({"c3"})}, lambda number: number % 10 == 3),
        ({"kinds": frozenset({Kind.EPISODIC})}, lambda number: number % 2),
        ({"tags": frozenset({"third"})}, lambda number: number % 3 == 0 and number % 50),
    ],
)
def test_the_best_of_what_a_filter_keeps_are_found(many, make, fields, kept):
    """At least 99 of 100 of the ten nearest are found, in their order, however many others are nearer."""
    numbers, found = [number for number in range(MANY) if kept(number)], 0
    for question in QUESTIONS:
        answer = [int(match.record.content) for match in many.nearest(make.where(**fields), question, limit=10)]
        best = exact(question, numbers)
        found += len(set(best) & set(answer))
        assert all(number in numbers for number in answer)
        assert answer == exact(question, answer)
    assert found >= 0.99 * 10 * len(QUESTIONS)


def test_few_are_compared_exactly(many, make):
    """When no more are left than would be compared anyway, the answer is exact, scores and all."""
    ids = {record.id: int(record.content) for record in many.find(make.where(), order="newest", limit=100)}
    for question in QUESTIONS:
        answer = many.nearest(make.where(ids=frozenset(ids)), question, limit=100)
        assert [ids[match.id] for match in answer] == exact(question, list(ids.values()), 100)
        assert answer[0].score == pytest.approx(sum(map(float.__mul__, question, VECTORS[ids[answer[0].id]])), abs=1e-6)


def test_records_and_chunks_are_compared_together(many, make):
    """A filter over several scopes and both sorts finds the best of all."""
    session = make.document()
    chunks = make.chunks(session, *(f"chunk {number}" for number in range(150)))
    vectors = dict(enumerate(crowd(4, 150)))
    many.apply([PutDocument(document=session, **chunks, vectors=vectors)])
    for number in (7, 77, 149):
        [match] = many.nearest(make.where(make.scope, OTHER, chunks=True), vectors[number], limit=1)
        assert match.chunk.text == f"chunk {number}"


def test_all_that_tie_are_weighed_by_id(store, make):
    """Of hundreds of equal vectors the first by id are found."""
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="crowd", dimensions=DIMENSIONS))])
    records = [make(str(number)) for number in range(400)]
    store.apply([make.put(record, vector=VECTORS[0]) for record in reversed(records)])
    answer = [match.record.content for match in store.nearest(make.where(), VECTORS[0], limit=5)]
    assert answer == ["0", "1", "2", "3", "4"]


def test_a_vector_need_not_be_of_unit_length(store, make):
    """Nearness is the angle: a long vector is no nearer than a short one, and one of no length is near to nothing."""
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="compass", dimensions=2))])
    lengths = {"long": (300.0, 300.0), "short": (0.1, 0.0), "none": (0.0, 0.0)}
    store.apply([make.put(text, vector=vector) for text, vector in lengths.items()])
    answer = store.nearest(make.where(), (5.0, 0.0), limit=9)
    assert [match.record.content for match in answer] == ["short", "long", "none"]
    assert [match.score for match in answer] == pytest.approx([1.0, 0.5**0.5, 0.0], abs=1e-6)


# The codes themselves


@rows("dimensions", [2, 64, 256, 384, 1000, 1536])
def test_turning_keeps_angles(dimensions):
    """The turned vectors have the cosine that they had before, whatever their size."""
    one, other = crowd(5, 2, dimensions)
    turn = signatures.rotation(dimensions)
    a, b = turn.numbers(one), turn.numbers(other)
    cosine = sum(x * y for x, y in zip(a, b, strict=True)) / hypot(*a) / hypot(*b)
    assert cosine == pytest.approx(sum(x * y for x, y in zip(one, other, strict=True)), abs=1e-3)


@pytest.mark.parametrize("dimensions", [2, 256, 1536])
def test_a_code_points_where_its_vector_points(dimensions):
    """Of many codes those of a question's own vector and of its like lead."""
    vectors = crowd(6, 300, dimensions)
    codes = b"".join(signatures.code_for_entry(number * 4, vector) for number, vector in enumerate(vectors))
    assert len(codes) == 300 * signatures.length(dimensions)
    for number in (0, 150, 299):
        assert number * 4 in signatures.best(codes, vectors[number], 20)


def test_codes_stay_what_they_are():
    """They are stored: another version, another machine must make the same ones."""
    vector = unit([(number * 37 % 101) - 50 for number in range(256)])
    assert signatures.code(vector).hex()[:32] == "a20e95da65841a07566ac46a8a98995d"


def test_extreme_vectors_have_codes():
    """One number alone, all alike, none at all, tiny or huge: nothing overflows."""
    for numbers in ([1.0] + [0.0] * 255, [1.0] * 256, [0.0] * 256, [1e-30] * 256, [3e38, -3e38] * 128):
        code = signatures.code(numbers)
        assert len(code) == 64
        assert code == signatures.code([number / 2 for number in numbers])
