"""How extraction reads a session: page by page, and of one that is too long its two ends."""

from __future__ import annotations

import tracemalloc

import pytest

from commonplace.engine.transcripts import Turn
from commonplace.learning.extract import CHECK_CHARS, PAGE, load_transcript
from commonplace.learning.extractors import session_prompt
from commonplace.model.documents import DocumentKind
from commonplace.model.queries import DocumentFilter


@pytest.fixture
def session(opened, place):
    """Index a session of these turns, and give its document."""

    def session(turns, name="long"):
        opened.memory.index(DocumentKind.SESSION, name, turns)
        where = DocumentFilter(scopes=frozenset({place.scope}), names=frozenset({name}))
        return next(iter(place.store.documents(where, limit=1)))

    return session


def said(number, text="words", speaker="user"):
    """One turn."""
    return Turn(ref=str(number), text=text, speaker=speaker)


def thinking(place, mode, tokens=1000):
    """The same place, thinking in another way."""
    return place.replace(learning=place.learning.replace(mode=mode, phase1_input_token_limit=tokens))


@pytest.mark.slow
def test_a_turn_that_begins_on_one_page_and_ends_on_another_is_whole(place, session):
    """Also one that takes several pages."""
    long = "\n\n".join(f"paragraph {number} " + "x" * 600 for number in range(PAGE * 3))
    turns = [*(said(number) for number in range(PAGE - 3)), said("a", long), said("b", "the end")]
    read = load_transcript(thinking(place, "rules"), session(turns)).turns

    assert [turn.ref for turn in read] == [turn.ref for turn in turns]
    assert read[-2].text.split() == long.split()
    assert read[-1].text == "the end"


@pytest.mark.slow
def test_however_long_a_session_is_memory_stays_bounded(place, session):
    """Twice as many turns take no more of it, and the model is shown the same two ends."""
    peaks = []
    for count in (3000, 6000):
        turns = [said(number, f"{number} " + "word " * 20) for number in range(count)]
        document = session(turns, f"of {count}")
        tracemalloc.start()
        read = load_transcript(thinking(place, "model"), document)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (read.turns[0].ref, read.turns[-1].ref) == ("0", str(count - 1))
        assert len(read.turns) < 100
    assert peaks[1] < 1.3 * peaks[0]


def test_a_model_is_shown_what_it_was_shown_of_the_whole(place, session):
    """The first 60 and the last 40 percent of what fits are among what is held."""
    turns = [said(number, f"{number} " + "word " * 100) for number in range(400)]
    limited = thinking(place, "model")
    short = session_prompt(load_transcript(limited, session(turns)), limited.learning, place.prompt)
    roomy = thinking(place, "model", tokens=100_000)
    whole = session_prompt(load_transcript(roomy, session(turns)), limited.learning, place.prompt)
    assert short == whole


def test_that_a_tool_has_spoken_is_known_wherever_it_was(place, session):
    """Its words are let go of, and what they did to trust is not."""
    turns = [said(number, "word " * 250) for number in range(200)]
    turns[100] = said(100, "from a page " * 100, "tool")
    read = load_transcript(thinking(place, "model"), session(turns)).turns
    assert [turn.ref for turn in read if turn.speaker == "tool"] == ["100"]


def test_rules_get_the_end_of_what_a_tool_said(place, session):
    """That is where a check tells its result."""
    read = load_transcript(thinking(place, "rules"), session([said(1, "x\n" * 9000 + "3 passed", "tool")])).turns
    assert len(read[0].text) == CHECK_CHARS
    assert read[0].text.endswith("3 passed")
