"""Extraction by rules: what holds for any session at all."""

from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.engine.transcripts import Turn
from commonplace.learning.rules import extract
from commonplace.model.records import CATEGORIES, CEILING, Channel

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=200)
PIECES = st.lists(
    st.sampled_from(
        [
            "we use pnpm", "never push to main", "always run mypy in CI", "I prefer concise answers", "lol", "if",
            "the fix was to pin numpy", "remember that the api is frozen", "let's go with NATS", "scratch that",
            "actually no", "pretend",
            "To deploy, run `make`, then `make x`", ". ", ", and ", "? ", "\n", "```", '"', "'",
            '"""', "> ", "- ", "1. ", ": ", '<memory seal="a">', '</memory seal="a">', "from now on", "yes, agreed",
            "3 passed", "\u0130", "\x00", "\ud800",
        ]
    ),
    max_size=14,
).map(" ".join)  # fmt: skip
SESSION = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tool", "user"]), ANYTHING | PIECES), max_size=8
).map(lambda said: [Turn(ref=str(n), speaker=speaker, text=text) for n, (speaker, text) in enumerate(said)])


@settings(deadline=None)
@given(SESSION)
def test_any_session_can_be_read(turns):
    """Every proposal quotes its turn, in a known category and scope, and is trusted no more than an extraction."""
    texts = {turn.ref: turn.text for turn in turns}
    for found in extract(turns):
        assert found.quote in texts[found.refs[0]]
        assert found.content.strip()
        assert found.category in CATEGORIES
        assert found.scope in {"project", "assistant"}
        assert found.trust <= CEILING[Channel.EXTRACTION]


@settings(deadline=None)
@given(SESSION)
def test_the_same_session_gives_the_same_proposals(turns):
    """Nothing but the turns decides."""
    assert extract(turns) == extract(list(turns))


@settings(deadline=None)
@given(SESSION, st.text("abcdefgh .,?", max_size=60))
def test_a_session_that_grows_keeps_what_it_said(turns, more):
    """A later turn that takes nothing back leaves every earlier proposal as it was."""
    before = extract(turns)
    after = extract([*turns, Turn(ref="last", speaker="user", text=more)])
    assert [found for found in after if found in before] == before
