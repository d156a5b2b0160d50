"""How well recall finds what it should: the tables of LoCoMo and of the LongMemEval pool, as Markdown.

    python bench/quality.py locomo10.json [longmemeval_oracle.json]

Get the files from github.com/snap-research/locomo (CC BY-NC 4.0) and github.com/xiaowu0162/LongMemEval (MIT).  The
figures are those of `commonplace eval`; plain BM25 is measured in the same run, question by question.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from commonplace.faces.cli.evaluate import measure, read
from commonplace.pipelines.evaluate import TOP, Evaluation, figures

SHOWN = ("R@1", "R@5", "R@10", "R@20", "hit@5", "hit@10", "all@10", "NDCG@10", "MRR")
FORMS = ("locomo", "longmemeval")  # in the order of the arguments


def show(measured: Evaluation) -> None:
    """Print one data set's table, and what the comparison with plain BM25 comes to."""
    overall, *categories = measured.rows
    corpus = measured.corpus
    print(f"\n{corpus.name}: {len(corpus.questions)} questions, {len(corpus.passages)} documents\n")
    print("| system |", " | ".join([*SHOWN, *(f"R@10: {row.category}" for row in categories)]), "|")
    print("| --- |", " | ".join(["---"] * (len(SHOWN) + len(categories))), "|")
    line("plain BM25", overall.bm25, [row.bm25["R@10"] for row in categories])
    line("recall", overall.recall, [row.recall["R@10"] for row in categories])
    better, worse = compared(measured)
    print(f"\nR@10 +- {overall.half_width:.3f}; against plain BM25 better on {better} questions, worse on {worse}")
    within = ", ".join(f"{budget}: {share:.3f}" for budget, share in overall.budgets.items())
    print(f"recall within tokens: {within}; without options: {overall.plain:.3f} with {overall.tokens:.0f}")
    times = f"{overall.cpu_ms_p50:.1f} / {overall.cpu_ms_p95:.1f} ms a question (p50 / p95)"
    print(f"CPU: {measured.index_cpu_ms:.2f} ms a document, {times}")


def line(name: str, overall: Mapping[str, float], by_category: list[float]) -> None:
    """Print one row, written as the papers write it."""
    shown = [overall[figure] for figure in SHOWN] + by_category
    print(f"| {name} |", " | ".join(f"{figure:.3f}".removeprefix("0") for figure in shown), "|")


def compared(measured: Evaluation) -> tuple[int, int]:
    """How many questions recall answers better than plain BM25, and how many worse, by R@10."""
    name = f"R@{TOP}"
    pairs = [
        (figures(answer.ranked, answer.question.gold)[name], figures(answer.bm25, answer.question.gold)[name])
        for answer in measured.answers
    ]
    return sum(ours > plain for ours, plain in pairs), sum(ours < plain for ours, plain in pairs)


def main() -> None:
    """Measure every file that was given."""
    if not 1 < len(sys.argv) <= 1 + len(FORMS):
        sys.exit(__doc__)
    for path, form in zip(sys.argv[1:], FORMS, strict=False):
        show(measure(read(path, form)))


if __name__ == "__main__":
    main()
