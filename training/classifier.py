# ruff: noqa: INP001, T201, E402
"""Train the classifier of learning on our labelled clauses and write its weights into the package.

Run: ``python training/classifier.py [--check]``.  Needs numpy, and nothing else; half a minute on one core.  With
``--check`` a fifth of the lines is kept back and scored, and nothing is written.  Thresholds are chosen on the ``dev``
sessions of ``bench/sets/learning``; the ``held`` ones are for the final figure and are read by nobody here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from clauses import KINDS, all_clauses

from commonplace.learning.features import BUCKETS, features
from commonplace.learning.rules_text import mask_quoted
from commonplace.providers.local import DIMENSIONS, LocalEmbedder

OUT = ROOT / "src" / "commonplace" / "learning" / "data" / "clauses.bin"
STEPS, RATE = 300, 0.1
DECAY_WORDS, DECAY_MEANING = 6e-6, 2e-6
MEANING = 3.0  # how much the vectors weigh against the words


def matrix(clauses: list) -> np.ndarray:
    """The features of clauses: words and signs, then the vector of the clause."""
    embedder = LocalEmbedder()
    rows = np.zeros((len(clauses), BUCKETS + DIMENSIONS + 1), np.float32)
    for number, one in enumerate(clauses):
        text = mask_quoted(one.text)
        found = features(text, before=one.before, speaker=one.speaker)
        rows[number, found] = 1 / np.sqrt(len(found))
        rows[number, BUCKETS:-1] = np.array(embedder.embed([text])[0]) * MEANING
    rows[:, -1] = 1
    return rows


def fit(rows: np.ndarray, wanted: np.ndarray, *, steps: int = STEPS) -> np.ndarray:
    """Multinomial logistic regression by Adam, all rows at once."""
    weights = np.zeros((rows.shape[1], len(KINDS)), np.float32)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    decay = np.full((rows.shape[1], 1), DECAY_WORDS, np.float32)
    decay[BUCKETS:] = DECAY_MEANING
    target = np.eye(len(KINDS), dtype=np.float32)[wanted]
    for step in range(1, steps + 1):
        scores = rows @ weights
        scores -= scores.max(1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(1, keepdims=True)
        slope = rows.T @ (shares - target) / len(rows) + decay * weights
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        weights -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def check(clauses: list) -> None:
    """Train on four fifths of the lines and score the rest."""
    aside = np.array([one.source % 5 == 0 for one in clauses])
    rows, wanted = matrix(clauses), np.array([KINDS.index(one.kind) for one in clauses])
    weights = fit(rows[~aside], wanted[~aside])
    scores = rows[aside] @ weights
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    durable, truth = 1 - shares[:, 0], wanted[aside] != 0
    for line in (0.5, 0.6, 0.7, 0.8, 0.9):
        kept = durable >= line
        print(f"{line}: precision {truth[kept].mean():.3f}, recall {kept[truth].mean():.3f}")
    right = scores[:, 1:].argmax(1) + 1 == wanted[aside]
    print(f"kind right, of what is durable: {right[truth].mean():.3f}")


def write(weights: np.ndarray) -> None:
    """Write the weights as bytes with a scale for each kind."""
    scales = np.abs(weights[:-1]).max(0) / 127
    whole = np.round(weights[:-1] / scales).astype(np.int8)
    OUT.parent.mkdir(exist_ok=True)
    head = np.array([*scales, *weights[-1]], "<f4").tobytes()
    OUT.write_bytes(b"cmncls1\0" + head + whole.tobytes())
    print(f"{OUT.relative_to(ROOT)}: {OUT.stat().st_size:,} bytes")


def main() -> None:
    """Train, and write the weights or check them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="keep a fifth back, score it, and write nothing")
    given = options.parse_args()
    clauses = all_clauses()
    print(f"{len(clauses)} clauses")
    if given.check:
        check(clauses)
        return
    write(fit(matrix(clauses), np.array([KINDS.index(one.kind) for one in clauses])))


if __name__ == "__main__":
    main()
