"""Settings: the fast reader and the parser are one reader."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from commonplace.config.settings import PROJECT, check, parse_flat, template, with_switch
from commonplace.model.scopes import Scope
from commonplace.text import strict_yaml

PIECES = st.sampled_from(
    [
        *(
            "project",
            "enabled",
            "recall_limit",
            "x",
            "_",
            ":",
            ": ",
            ":  ",
            " :",
            "\n",
            "\n\n",
            " ",
            "  ",
            "#",
            " # ",
            "#x",
            "\n  ",
            ":\n  ",
            ":\n    ",
            "\n   ",
            "0.7",
            "0.70",
            "1.0",
            "00.5",
            "memories",
            "aB1",
        ),
        *(
            "true",
            "false",
            "null",
            "yes",
            "No",
            "~",
            "0",
            "00",
            "007",
            "1",
            "12",
            "-1",
            "1.5",
            "1e3",
            "0x1F",
            "12:30",
            "2024-05-17",
        ),
        *(
            "a.b/c",
            "github.com/acme/shop",
            "commit:0ab",
            "a:",
            "a:b",
            "a: b",
            "@x",
            "-",
            "- a",
            "--- ",
            "...",
            "/",
            ".",
            "a b",
        ),
        *(
            "'q'",
            '"q"',
            "[a]",
            "{a: 1}",
            "|",
            ">",
            "&a",
            "*a",
            "!t",
            "%",
            "?",
            ",",
            "\t",
            "\r",
            "\x85",
            "\u2028",
            "\xa0",
            "\ufeff",
            "é",
        ),
        *("9" * 17, "9" * 19, "9" * 5000, "k" * 100, "k" * 1100, "Null", "TRUE", "on", "n", "y", "\x07", "\x7f"),
    ]
)
LIKELY = st.lists(PIECES, max_size=10).map("".join)
LINES = st.lists(
    st.tuples(
        st.sampled_from(
            ["project", "enabled", "recall_limit", "a_b", "_", "  mode", "  aB", "   c", "    d", "memories"]
        ),
        st.sampled_from([":", ": ", ":  ", " : "]),
        PIECES | st.text("abz019_./@:-", max_size=8),
        st.sampled_from(["", " ", " # c", "# c", "  #"]),
    ).map("".join),
    max_size=6,
).map("\n".join)
NAMES = st.text(max_size=30).filter(lambda name: name.strip() and name.isprintable())


@settings(deadline=None, max_examples=400)
@given(LIKELY | LINES | st.text(max_size=20))
@example("enabled:false")
@example("project: a.b:")
@example("recall_limit: 0")
@example("\x85")
@example("# \x07")
@example("memories:\n  enabled: true\n  mode: rules")
@example("memories:\n  rolloutPayloadPercent: 0.70")
@example("a:\n  b:\n c: 1")
def test_the_fast_reader_agrees_with_the_parser(text):
    """Whatever the fast reader accepts, the parser reads in the same way, down to the types."""
    said = parse_flat(text)

    if said is not None:
        read = strict_yaml.load(text, file="it") or {}
        assert said == read
        assert {key: type(value) for key, value in said.items()} == {key: type(value) for key, value in read.items()}


@settings(deadline=None)
@given(NAMES, st.booleans(), st.integers(1, 1000), st.none() | st.integers(1, 1_000_000))
def test_a_template_can_be_read_back(name, enabled, limit, budget):
    """Whatever a project is called, its settings file says so."""
    Scope.of(("project", name))
    said = {"project": name, "enabled": enabled, "recall_limit": limit, "recall_budget": budget}
    text = template(PROJECT, said, title="Settings.")

    read = check(strict_yaml.load(text, file="it") or {}, PROJECT, "it")
    assert {key: read[key] for key in said} == said


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["# a comment", "", "project: a.b/c", "enabled: true # x", "recall_limit: 3"]), unique=True
    ),
    st.booleans(),
)
def test_a_switch_turned_and_turned_back_leaves_the_file(lines, value):
    """Turning a switch changes its own line and no other."""
    text = "".join(f"{line}\n" for line in lines)
    after = with_switch(text, "enabled", value=value)

    assert (strict_yaml.load(after, file="it") or {})["enabled"] is value
    assert [line for line in after.split("\n") if "enabled" not in line][: len(lines)] == [
        line for line in text.split("\n") if "enabled" not in line
    ][: len(lines)] or not text.strip()
    assert with_switch(with_switch(after, "enabled", value=not value), "enabled", value=value) == after
