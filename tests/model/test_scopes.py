"""``Scope``: a path of (kind, name) segments, compared by identity."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.model.errors import InvalidInput
from commonplace.model.scopes import KINDS, NAME_BYTES, Scope
from stands import rows

NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=30)
relaxed = settings(max_examples=50, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
SEGMENTS = st.lists(st.tuples(st.sampled_from(KINDS), NAMES), min_size=1, max_size=4)


@relaxed
@given(SEGMENTS)
def test_what_is_written_is_read_again(segments):
    """``parse`` reads what ``str`` writes, whatever the names."""
    scope = Scope.of(*segments)
    assert Scope.parse(str(scope)) == scope


@relaxed
@given(SEGMENTS, SEGMENTS)
def test_different_scopes_are_written_differently(one, other):
    """The text of a scope is as good as its identity."""
    assert (str(Scope.of(*one)) == str(Scope.of(*other))) == (one == other)


@relaxed
@given(st.text())
def test_any_other_text_is_refused(text):
    """What is no scope is bad input and nothing worse."""
    try:
        scope = Scope.parse(text)
    except InvalidInput:
        return
    assert Scope.parse(str(scope)) == scope


@rows("text", ["", "ada", "user:", "user: ", "person:ada", "user:ada/", "/user:ada", "user:a\nb", "user:\x1b"])
def test_what_is_no_scope_is_named(text):
    """An error shows what was given or what is wrong with it."""
    with pytest.raises(InvalidInput):
        Scope.parse(text)


def test_a_scope_knows_its_innermost_segment():
    """Kind and name are those of the last segment."""
    scope = Scope.parse("pipeline:release/agent:reviewer")
    assert (scope.kind, scope.name) == ("agent", "reviewer")


def test_a_scope_knows_what_is_around_it():
    """The parent is the path without its last segment; the outermost has none."""
    scope = Scope.parse("pipeline:p/agent:a/task:t")
    assert str(scope.parent) == "pipeline:p/agent:a"
    assert scope.parent.parent.parent is None


def test_names_may_hold_the_marks_of_the_path():
    """A slash, a colon or a percent sign in a name is no segment."""
    scope = Scope.of(("project", "github.com/a/b:c%2Fd"))
    assert str(scope) == "project:github.com%2Fa%2Fb:c%252Fd"
    assert Scope.parse(str(scope)).name == "github.com/a/b:c%2Fd"


def test_a_prefix_is_another_scope():
    """Scopes are never compared by text."""
    assert Scope.parse("project:app") != Scope.parse("project:apple")
    assert Scope.parse("project:app/agent:a") != Scope.parse("project:app%2Fagent:a")
    assert len({Scope.parse("user:a"), Scope.parse("user:a"), Scope.parse("agent:a")}) == 2


def test_a_scope_needs_a_segment():
    """Everywhere is no scope."""
    with pytest.raises(InvalidInput):
        Scope.of()


def test_a_name_has_a_limit_in_bytes():
    """A name of the greatest length is accepted, one byte more is not."""
    Scope.of(("user", "é" * (NAME_BYTES // 2)))
    with pytest.raises(InvalidInput, match=str(NAME_BYTES)):
        Scope.of(("user", "é" * (NAME_BYTES // 2) + "x"))


def test_a_name_cannot_be_half_a_character():
    """A lone surrogate could not be stored."""
    with pytest.raises(InvalidInput):
        Scope.of(("user", "\ud800"))
