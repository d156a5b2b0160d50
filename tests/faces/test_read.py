"""`commonplace read`: what a memory:// address leads to."""

from __future__ import annotations

import pytest

from stands import rows


@pytest.fixture
def summary(cli):
    """A summary that a person has begun by hand."""
    (cli.folder / "work" / ".commonplace" / "memory_summary.md").write_text("# So far\n\n- We use pnpm.\n")


@pytest.mark.usefixtures("summary")
def test_the_summary_is_written_as_it_is(cli):
    """The text on standard output, what there is to say about it on standard error."""
    done = cli.ok("read", "memory://root")

    assert done.out == "# So far\n\n- We use pnpm.\n"
    assert "edited by hand" in done.err


def test_a_record_is_written_as_its_file_is(cli, pnpm):
    """The address with the short id that every brief shows is enough."""
    with open(pnpm["path"], encoding="utf-8") as file:
        assert cli.ok("read", f"memory://{pnpm['id'][:10]}").out.strip() == file.read().strip()


@pytest.mark.usefixtures("summary")
def test_programs_get_the_content_type(cli):
    """Markdown is text/markdown, a list is text/plain."""
    answer = cli.ok("read", "memory://root", "--json").json

    assert (answer["content_type"], answer["source"], answer["trust"]) == ("text/markdown", "file", "user")
    assert answer["edited"] is True
    assert cli.ok("read", "memory://root/", "--json").json["content_type"] == "text/plain"


@pytest.mark.usefixtures("summary")
def test_a_model_sees_it_quoted(cli):
    """Between the marks, every line as a quotation."""
    first, *lines, last, _ = cli.ok("read", "memory://root", "--quote").out.split("\n")

    assert first.startswith('<memory seal="')
    assert last.startswith('</memory seal="')
    assert all(line.startswith(">") for line in lines)


@rows(
    "url, code, words",
    [
        ("memory://", 2, "needs a namespace"),
        ("memory://attic", 2, "unknown namespace"),
        ("memory://root/../config.yaml", 4, "escapes memory root"),
        ("memory://root/%2e%2e/config.yaml", 4, "escapes memory root"),
        ("memory://root", 1, "not available yet"),
        ("memory://1m7gmb4480", 1, "no record"),
    ],
)
def test_a_mistake_is_one_sentence_and_one_code(cli, url, code, words):
    """Each is told as what it is."""
    done = cli("read", url)

    assert (done.code, done.out) == (code, "")
    assert words in done.err


def test_outside_of_a_project_there_are_no_artifacts(outside):
    """The sentence says what is missing."""
    assert "no project here" in outside("read", "memory://root").err
