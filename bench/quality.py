"""How well recall finds what it should: the tables of LoCoMo and of the LongMemEval pool, as Markdown.

    python bench/quality.py [--limit QUESTIONS] locomo10.json [longmemeval_oracle.json]

Get the files from github.com/snap-research/locomo (CC BY-NC 4.0) and github.com/xiaowu0162/LongMemEval (MIT).  The
figures are those of `commonplace eval`: recall with the built-in embedder, recall by words alone, and plain BM25,
measured in the same run, question by question.  Within a number of tokens a document counts whole, for all alike.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from commonplace.evaluation.command import measure, read
from commonplace.evaluation.datasets import Corpus, sample
from commonplace.evaluation.measure import BUDGETS, TOP, Evaluation, MeasuredAnswer, figures, mean, share
from commonplace.providers.local import LocalEmbedder
from commonplace.text.cleaning import estimate_tokens

SHOWN = ("R@1", "R@5", "R@10", "R@20", "hit@5", "hit@10", "all@10", "NDCG@10", "MRR")
FITTED_SCOPES = 5  # conversations of LoCoMo that the weights were fitted on
FORMS = ("locomo", "longmemeval")  # in the order of the arguments


def show(corpus: Corpus, hybrid: Evaluation, words: Evaluation) -> None:
    """Print one data set's tables, and what the comparison with plain BM25 comes to."""
    names = [row.category for row in hybrid.rows[1:]]
    print(f"\n{corpus.name}: {len(corpus.questions)} questions, {len(corpus.passages)} documents\n")
    heading("system", [*SHOWN, *(f"R@10: {name}" for name in names)])
    line("plain BM25", words.rows[0].bm25, [row.bm25["R@10"] for row in words.rows[1:]])
    for name, measured in (("recall, words alone", words), ("recall", hybrid)):
        line(name, measured.rows[0].recall, [row.recall["R@10"] for row in measured.rows[1:]])
    print()
    heading("within tokens", [str(budget) for budget in BUDGETS])
    row("plain BM25", curve(corpus, words.answers, [answer.bm25 for answer in words.answers]))
    for name, measured in (("recall, words alone", words), ("recall", hybrid)):
        row(name, curve(corpus, measured.answers, [answer.ranked for answer in measured.answers]))
    print()
    for name, measured in (("recall, words alone", words), ("recall", hybrid)):
        told(name, measured)


def heading(first: str, columns: Sequence[str]) -> None:
    """Print the head of a table."""
    print(f"| {first} |", " | ".join(columns), "|")
    print("| --- |", " | ".join(["---"] * len(columns)), "|")


def line(name: str, overall: Mapping[str, float], by_category: list[float]) -> None:
    """Print one row of figures."""
    row(name, [overall[figure] for figure in SHOWN] + by_category)


def row(name: str, shown: Sequence[float]) -> None:
    """Print one row, written as the papers write it."""
    print(f"| {name} |", " | ".join(f"{figure:.3f}".removeprefix("0") for figure in shown), "|")


def told(name: str, measured: Evaluation) -> None:
    """Print what no table has room for."""
    overall = measured.rows[0]
    better, worse = compared(measured)
    print(
        f"{name}: R@10 +- {overall.half_width:.3f}; against plain BM25 better on {better} questions, worse on {worse}"
    )
    for what, answers in zip(("fitted on", "the others"), halves(measured), strict=True):
        if answers:
            found = [figures(answer.ranked, answer.question.gold) for answer in answers]
            means = ", ".join(f"{key} {mean([one[key] for one in found]):.3f}" for key in ("R@10", "NDCG@10"))
            print(f"  {what} ({len(answers)} questions): {means}")
    below = [row.category for row in measured.rows if row.recall["R@10"] < row.bm25["R@10"]]
    print(f"  categories below plain BM25 by R@10: {', '.join(below) or 'none'}")
    print(f"  without options it finds {overall.plain:.3f} with {overall.tokens:.0f} tokens")
    times = f"{overall.cpu_ms_p50:.1f} / {overall.cpu_ms_p95:.1f} ms a question (p50 / p95)"
    print(f"  CPU: {measured.index_cpu_ms:.2f} ms a document, {times}")


def curve(corpus: Corpus, answers: Sequence[MeasuredAnswer], rankings: Sequence[Sequence[str]]) -> list[float]:
    """The share of the answers within each number of tokens."""
    costs = {(passage.scope, passage.id): estimate_tokens(passage.text) for passage in corpus.passages}
    found = []
    for budget in BUDGETS:
        shares = []
        for answer, ranking in zip(answers, rankings, strict=True):
            scope = answer.question.scope
            fits = fitting(ranking, [costs[scope, document] for document in ranking], budget)
            shares.append(share(fits, answer.question.gold))
        found.append(mean(shares))
    return found


def fitting(ranking: Sequence[str], costs: Sequence[int], budget: int) -> set[str]:
    """What fits, in order; what does not fit makes room for something shorter, as in a recall."""
    fits = set()
    for document, cost in zip(ranking, costs, strict=True):
        if cost <= budget:
            fits.add(document)
            budget -= cost
    return fits


def halves(measured: Evaluation) -> tuple[list[MeasuredAnswer], list[MeasuredAnswer]]:
    """The answers to what the weights were fitted on, and to the rest: the first five conversations, else every other.

    One scope is a pool: there every second question was used, from the first on.
    """
    scopes = list(dict.fromkeys(answer.question.scope for answer in measured.answers))
    used = [
        answer.question.scope in scopes[:FITTED_SCOPES] if len(scopes) > 1 else number % 2 == 0
        for number, answer in enumerate(measured.answers)
    ]
    pairs = list(zip(measured.answers, used, strict=True))
    return [answer for answer, fitted in pairs if fitted], [answer for answer, fitted in pairs if not fitted]


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
    limit, paths = None, sys.argv[1:]
    if paths[:1] == ["--limit"] and len(paths) > 1:
        limit, paths = int(paths[1]), paths[2:]
    if not 0 < len(paths) <= len(FORMS):
        sys.exit(__doc__)
    sys.stdout.reconfigure(line_buffering=True)
    for path, form in zip(paths, FORMS, strict=False):
        corpus = read(path, form)
        corpus = sample(corpus, limit) if limit else corpus
        show(corpus, measure(corpus, embedder=LocalEmbedder()), measure(corpus, embedder=None))


if __name__ == "__main__":
    main()
