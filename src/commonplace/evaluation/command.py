"""``commonplace eval``: how well recall finds what it should, measured on any data set, in a throw-away store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import click

from commonplace.app import open as open_memory
from commonplace.cli.commands import Command
from commonplace.cli.session import json_option, plural, progress
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.engine.memory import Memory
from commonplace.evaluation.datasets import READERS, Corpus, decoded, longmemeval_apart, sample
from commonplace.evaluation.measure import Evaluation, Row, as_json, evaluate
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, Tell, silent

OWN = "regression.jsonl"
_PLAIN = ("R@10", "NDCG@10")  # what is shown of plain BM25; --json has the rest


@click.command("eval", cls=Command)
@click.argument("file", required=False)
@click.option(
    "--format", "form", type=click.Choice(list(READERS)), default="jsonl", show_default=True, help="What the file is."
)
@click.option("--per-question", is_flag=True, help="LongMemEval: ask each question of its own sessions, not of all.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Ask so many of the questions, evenly spread.")
@json_option
def eval_(file: str | None, form: str, per_question: bool, limit: int | None, as_json: bool) -> None:
    """Measure how well recall finds what it should, on a data set of documents and questions.

    Without FILE it is the small regression set that comes with Commonplace.  Nothing of yours is read or changed: the
    documents go to a throw-away store.  Plain BM25 is measured in the same run, for comparison.

    Examples:
      commonplace eval
      commonplace eval my-questions.jsonl --json > figures.json
      commonplace eval locomo10.json --format locomo
      commonplace eval longmemeval_oracle.json --format longmemeval --limit 100
    """
    corpus = read(file, form, per_question=per_question)
    corpus = sample(corpus, limit) if limit else corpus
    with progress("Measuring") as tell:
        measured = measure(corpus, tell=tell)
    for sentence in measured.notes:
        print_note(sentence)
    _show(measured, for_programs=as_json)


def read(file: str | None, form: str, *, per_question: bool = False) -> Corpus:
    """A data set from a file, or the one that comes with Commonplace."""
    if per_question and form != "longmemeval":
        raise InvalidInput("--per-question is for --format longmemeval; elsewhere the file says the scopes")
    if file is None and form != "jsonl":
        raise InvalidInput(f"--format {form} needs a FILE")
    if file is None:
        own = files("commonplace").joinpath("evaluation", OWN).read_bytes()
        return READERS["jsonl"](decoded(own, OWN), OWN)
    try:
        with open(file, "rb") as source:
            text = decoded(source.read(), file)
    except OSError as error:
        raise InvalidInput(f"{file!r} cannot be read: {error.strerror}") from error
    return (longmemeval_apart if per_question else READERS[form])(text, file)


def measure(corpus: Corpus, *, tell: Tell = silent, **opening: Any) -> Evaluation:
    """Evaluate on a store of its own, which is gone afterwards; ``opening`` are options of ``commonplace.open``."""
    with tempfile.TemporaryDirectory(prefix="commonplace-eval-") as folder:
        path = os.path.join(folder, "store.db")

        def opened(scope: str, clock: Clock) -> Memory:
            return open_memory(path, user=scope, clock=clock, **opening)

        return evaluate(corpus, opened, tell=tell)


def _show(measured: Evaluation, *, for_programs: bool) -> None:
    if for_programs:
        print_json(as_json(measured))
    else:
        print_text("\n".join(_lines(measured)))


def _lines(measured: Evaluation) -> Iterator[str]:
    corpus, rows = measured.corpus, measured.rows
    scopes = len({passage.scope for passage in corpus.passages})
    asked, kept = plural(len(corpus.questions), "question"), plural(len(corpus.passages), "document")
    yield f"{corpus.name}: {asked} about {kept} in {plural(scopes, 'scope')}"
    for columns in (_found, _spent):
        yield ""
        yield from _table([list(columns(rows[0])), *(list(columns(row).values()) for row in rows)])
    yield ""
    yield f"Keeping a document took {measured.index_cpu_ms:.2f} CPU ms."


def _found(row: Row) -> Mapping[str, str]:
    """What was found, beside what plain BM25 finds; columns by their heads."""
    shares = {name: f"{figure:.3f}" for name, figure in row.recall.items() if not name.startswith("hit")}
    width = {"R@10": shares.pop("R@10"), "+-": f"{row.half_width:.3f}"}
    first = {name: shares.pop(name) for name in ("R@1", "R@5")}
    plain = {f"BM25 {name}": f"{row.bm25[name]:.3f}" for name in _PLAIN}
    return {"category": row.category, "n": str(row.questions), **first, **width, **shares, **plain}


def _spent(row: Row) -> Mapping[str, str]:
    """How many questions have a hit, what is found within so many tokens, and what it costs."""
    hits = {name: f"{figure:.3f}" for name, figure in row.recall.items() if name.startswith("hit")}
    budgets = {f"R@{budget}t": f"{share:.3f}" for budget, share in row.budgets.items()}
    costs = {
        "plain R": f"{row.plain:.3f}",
        "tokens": f"{row.tokens:.0f}",
        "CPU ms p50": f"{row.cpu_ms_p50:.2f}",
        "p95": f"{row.cpu_ms_p95:.2f}",
    }
    return {"category": row.category, "n": str(row.questions), **hits, **budgets, **costs}


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as they must be; the first is words, the others are numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join([row[0].ljust(len(first)), *others])
