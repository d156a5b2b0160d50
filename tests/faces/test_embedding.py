"""Which embedder the command uses: the built-in one, another by setting, none; and how a store changes over."""

from __future__ import annotations

import pytest

from commonplace.app import open_app
from commonplace.cli.exits import ATTENTION
from loopback import LoopbackServer

CONFIG, PROVIDER = 5, 6  # exit codes
MEDICINE, PAINT = "The physician prescribed antibiotics", "The kitchen needs new paint"
QUESTION = "which medicine did the doctor give?"


@pytest.fixture
def kept(cli):
    """A project with two records."""
    for text in (MEDICINE, PAINT):
        cli.add(text)
    return cli


@pytest.fixture
def configure(cli):
    """Write the user's settings."""

    def configure(*lines):
        cli.home.mkdir(exist_ok=True)
        (cli.home / "config.yaml").write_text("\n".join(lines) + "\n")

    return configure


@pytest.fixture
def server():
    """Another embedder, on this machine."""
    with LoopbackServer() as server:
        yield server


def remote(server):
    """The settings that name it."""
    return ["embedder: test-embedder", f'embedder_base_url: "{server.base_url}"', "embedder_dimensions: 64"]


def identity():
    """Whose vectors the store holds."""
    with open_app() as place:
        held = place.store.embedder()
        return held and held.name


def test_other_words_are_found_without_any_setting(kept):
    """No key, no service: the built-in embedder is there from the first record on."""
    assert kept.recall(QUESTION)[0] == MEDICINE
    assert identity() == "commonplace-static-1"


def test_words_alone_if_the_settings_say_so(cli, configure):
    """Then what says the same in other words is not found."""
    configure("embedder: none")
    cli.add(MEDICINE)

    assert cli.recall(QUESTION) == []
    assert identity() is None


def test_another_embedder_finds_by_words_until_the_store_changes_over(kept, configure, server):
    """Two embedders' vectors are never compared; one command changes over, and the answers are there again."""
    configure(*remote(server))
    asked = kept.ok("recall", QUESTION)
    assert (asked.out, "only words were searched" in asked.err) == ("", True)
    added = kept.ok("record", "add", "The paint dries overnight", "--category", "decisions")
    for said in (asked.err, added.err):
        assert "'commonplace-static-1'" in said
        assert "`commonplace reembed` changes over" in said
    assert "`commonplace reembed`" in kept("doctor").out

    done = kept.ok("reembed", "--json").json
    assert done == {"embedded": 3, "before": "commonplace-static-1", "now": identity(), "notes": []}
    assert kept.recall("physician antibiotics")[0] == MEDICINE
    texts = {text for request in server.embedded for text in request.texts}
    assert {PAINT, MEDICINE, "The paint dries overnight"} <= texts


def test_changing_over_twice_is_no_more_work(kept):
    """Nothing lacks a vector: nothing is embedded."""
    assert kept.ok("reembed", "--json").json["embedded"] == 0
    assert "0 texts embedded" in kept.ok("reembed").out


def test_there_is_nothing_to_change_over_to(kept, configure):
    """Without an embedder the command says what to set."""
    configure("embedder: none")
    done = kept("reembed")

    assert done.code == CONFIG
    assert "embedder: is none" in done.err


def test_a_failing_embedder_blocks_no_write_and_is_caught_up(cli, configure, server):
    """The record is kept and found by its words; `doctor --fix` gives it its vector once the service answers."""
    configure(*remote(server)[:1], 'embedder_base_url: "http://127.0.0.1:9/v1"', "embedder_dimensions: 64")
    cli.add(MEDICINE)
    assert cli.recall("antibiotics") == [MEDICINE]

    configure(*remote(server))
    seen = cli("doctor")
    assert seen.code == ATTENTION
    assert "1 text without a vector" in seen.out
    assert "1 text embedded" in cli.ok("doctor", "--fix").out
    assert cli.ok("doctor").lines[-1] == "vectors: ok"


def test_a_service_that_is_down_stops_a_change_over_and_loses_nothing(kept, configure):
    """The old vectors stay in use, and the error names what failed."""
    configure("embedder: test-embedder", 'embedder_base_url: "http://127.0.0.1:9/v1"', "embedder_dimensions: 64")
    assert kept("reembed").code == PROVIDER
    assert identity() == "commonplace-static-1"

    configure("embedder: local")
    assert kept.recall(QUESTION)[0] == MEDICINE


def test_an_unknown_embedder_is_named(kept, configure):
    """With what there is instead."""
    configure("embedder: clever:stuff")
    done = kept("recall", QUESTION)

    assert done.code == CONFIG
    assert "config.yaml: embedder: there is no embedder 'clever:stuff'" in done.err
    assert "ollama" in done.err


def test_an_edited_file_gets_its_vector(kept):
    """What a person writes is found in other words, too."""
    [path] = (kept.folder / "work/.commonplace/decisions").glob("the-kitchen*.md")
    path.write_text(path.read_text().replace(PAINT, "Our cat sleeps on the sofa"))

    assert kept.recall("where does the kitten rest?")[0] == "Our cat sleeps on the sofa"
