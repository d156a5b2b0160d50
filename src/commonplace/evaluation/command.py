"""``commonplace eval``: measure on any data set how well recall finds what it should."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import click

from commonplace.app import open as open_memory
from commonplace.cli.commands import Command
from commonplace.cli.progress import show_progress
from commonplace.cli.session import json_option
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.evaluation.datasets import READERS, Corpus, jsonl, longmemeval, sample
from commonplace.evaluation.measure import Evaluation, Row, evaluate, to_json
from commonplace.files.user_files import read_text
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.text.cleaning import plural

OWN = "regression.jsonl"
FILE_BYTES = 4 << 30  # of a data set; the largest that is published has less
_PLAIN = ("R@10", "NDCG@10")  # what is shown of plain BM25; --json has the rest


@click.command("eval", cls=Command)
@click.argument("file", required=False)
@click.option(
    "--format", "form", type=click.Choice(list(READERS)), default="jsonl", show_default=True, help="The format of FILE."
)
@click.option("--per-question", is_flag=True, help="LongMemEval: ask each question of its own sessions, not of all.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Ask only N of the questions, evenly spread.")
@json_option
def eval_(file: str | None, form: str, per_question: bool, limit: int | None, as_json: bool) -> None:
    """Measure how well recall finds what it should, on a data set of documents and questions.

    Without FILE it uses the small regression set that comes with Commonplace.  Your own memory is neither read nor
    changed: the documents go to a temporary store.  Plain BM25 is measured in the same run, for comparison.

    Examples:
      commonplace eval
      commonplace eval my-questions.jsonl --json > figures.json
      commonplace eval locomo10.json --format locomo
      commonplace eval longmemeval_oracle.json --format longmemeval --limit 100
    """
    corpus = read(file, form, per_question=per_question)
    corpus = sample(corpus, limit) if limit else corpus
    with show_progress("Measuring") as progress:
        measured = measure(corpus, progress=progress)
    for sentence in measured.notes:
        print_note(sentence)
    if as_json:
        print_json(to_json(measured))
    else:
        print_text("\n".join(_lines(measured)))


def read(file: str | None, form: str, *, per_question: bool = False) -> Corpus:
    """Return a data set from a file, or the one that comes with Commonplace."""
    if per_question and form != "longmemeval":
        raise InvalidInput("--per-question goes with --format longmemeval; elsewhere the file names the scopes")
    if file is None and form != "jsonl":
        raise InvalidInput(f"--format {form} needs a FILE")
    if file is None:
        return jsonl(files("commonplace").joinpath("evaluation", OWN).read_text(encoding="utf-8"), OWN)
    text = read_text(file, limit=FILE_BYTES)
    return longmemeval(text, file, apart=True) if per_question else READERS[form](text, file)


def measure(corpus: Corpus, *, progress: ProgressCallback = no_progress, **opening: Any) -> Evaluation:
    """Evaluate on a temporary store; ``opening`` are options of ``commonplace.open``."""
    with tempfile.TemporaryDirectory(prefix="commonplace-eval-") as folder:
        path = os.path.join(folder, "store.db")
        return evaluate(
            corpus, lambda scope, clock: open_memory(path, user=scope, clock=clock, **opening), progress=progress
        )


def _lines(measured: Evaluation) -> Iterator[str]:
    corpus, rows = measured.corpus, measured.rows
    asked, stored = plural(len(corpus.questions), "question"), plural(len(corpus.passages), "document")
    yield f"{corpus.name}: {asked} about {stored} in {plural(measured.scopes, 'scope')}"
    for columns in (_recall_columns, _cost_columns):
        yield ""
        cells = [{"category": row.category, "n": str(row.questions), **columns(row)} for row in rows]
        yield from _table([list(cells[0]), *(list(row.values()) for row in cells)])
    yield ""
    yield f"Storing a document took {measured.index_cpu_ms:.2f} CPU ms."


def _recall_columns(row: Row) -> Mapping[str, str]:
    """Return what was found, and what plain BM25 finds; columns by their heads."""
    shares = {name: f"{figure:.3f}" for name, figure in row.recall.items() if not name.startswith("hit")}
    first = {name: shares.pop(name) for name in ("R@1", "R@5", "R@10")}
    plain = {f"BM25 {name}": f"{row.bm25[name]:.3f}" for name in _PLAIN}
    return {**first, "+-": f"{row.half_width:.3f}", **shares, **plain}


def _cost_columns(row: Row) -> Mapping[str, str]:
    """Return how many questions have a hit, what is found within so many tokens, and what it costs."""
    hits = {name: f"{figure:.3f}" for name, figure in row.recall.items() if name.startswith("hit")}
    budgets = {f"R@{budget}t": f"{share:.3f}" for budget, share in row.budgets.items()}
    costs = {"plain R": f"{row.plain:.3f}", "tokens": f"{row.tokens:.0f}"}
    return {**hits, **budgets, **costs, "CPU ms p50": f"{row.cpu_ms_p50:.2f}", "p95": f"{row.cpu_ms_p95:.2f}"}


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines with columns as wide as they must be; the first is words, the others are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *numbers])
