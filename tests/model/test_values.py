"""``Value``: fields by keyword, compared by content, changed only by ``replace``."""

import copy
import pickle

import pytest

from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value
from stands import rows


class Point(Value):
    """A value with a default."""

    x: int
    y: int = 0


class Solid(Point):
    """A value with more fields than its base."""

    z: int = 0

    def _check(self):
        if self.z < 0:
            raise InvalidInput(f"{self.z} is below the ground")


class Twin(Value):
    """Another type with the same fields."""

    x: int
    y: int = 0


def test_fields_are_given_by_keyword_or_have_a_default():
    """A value holds what it was given, and its defaults."""
    assert (Point(x=1).x, Point(x=1).y, Point(x=1, y=2).y) == (1, 0, 2)


def test_a_subclass_adds_fields():
    """Fields and defaults are inherited, in order."""
    assert Solid(x=1, z=3)._key() == (1, 0, 3)


@rows("given", [{}, {"y": 1}, {"x": 1, "z": 2}, {"y": 1, "z": 2}, {"x": 1, "y": 2, "z": 3}])
def test_missing_and_unexpected_fields_are_named(given):
    """A value that does not fit its fields says which."""
    with pytest.raises(TypeError, match=r"Point: missing .*, unexpected .*"):
        Point(**given)


def test_positions_are_not_accepted():
    """The order of fields means nothing to a caller."""
    with pytest.raises(TypeError):
        Point(1)


def test_values_are_equal_by_content_and_type():
    """The same fields in another type are another value."""
    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Twin(x=1)
    assert Point(x=1) != (1, 0)


def test_equal_values_have_equal_hashes():
    """A value can be a key, apart from its look-alikes."""
    assert {Point(x=1), Point(x=1, y=0), Twin(x=1)} == {Point(x=1), Twin(x=1)}


def test_a_value_cannot_be_changed():
    """Neither a field nor anything else can be set or deleted."""
    point = Point(x=1)
    for name in ("x", "z"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(point, name, 2)
    with pytest.raises(AttributeError, match="immutable"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_replace_makes_another_value():
    """The original stays, the copy differs where it was told to."""
    point = Point(x=1, y=2)
    assert (point.replace(y=3), point) == (Point(x=1, y=3), Point(x=1, y=2))
    with pytest.raises(TypeError, match="unexpected"):
        point.replace(z=1)


def test_a_value_checks_itself_however_it_is_made():
    """What cannot be is refused when built, replaced or unpickled."""
    with pytest.raises(InvalidInput, match="-1 is below"):
        Solid(x=1, z=-1)
    with pytest.raises(InvalidInput):
        Solid(x=1).replace(z=-1)


def test_a_value_shows_its_fields():
    """The text of a value is the call that makes it."""
    assert repr(Point(x=1)) == "Point(x=1, y=0)"


def test_a_value_can_be_copied_and_pickled():
    """What is sent to another process arrives equal."""
    solid = Solid(x=1, y=2, z=3)
    assert pickle.loads(pickle.dumps(solid)) == copy.deepcopy(solid) == copy.copy(solid) == solid
