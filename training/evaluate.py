# ruff: noqa: INP001, T201, S301, SIM905
"""How good a table finds things: LoCoMo and the LongMemEval pool, dense alone and half and half with BM25.

usage: python training/evaluate.py [--data FOLDER] TABLE...        (a .bin as shipped, or a .npy of weighted rows)

LoCoMo conversations 1-5 are for choosing, 6-10 for reporting; the LongMemEval pool is a second opinion on other text.
Neither is ever trained on.  Speaker names are no part of a turn's text and are taken out of the question (they are
structure, not text).  Needs numpy and tokenizers; BM25 is SQLite's.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tables import embed, read_table
from teacher import tokenizer

STOP = set(
    """a an the and or but if of at by for with about to from in on is are was were be been being do does did doing have
has had having i me my we our you your he him his she her it its they them their what which who whom whose this that
these those am will would shall should can could may might must when where why how not no nor so than too very s t d ll
m re ve there here as into over under again then once all any both each few more most other some such only own same
just up down out of""".split()
)
WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z]+)?")
DATA = Path(__file__).parents[2] / "shared" / "data"


def terms(question: str) -> list[str]:
    """The words of a question that BM25 asks for."""
    words = [re.sub(r"'\w*$", "", word) for word in WORD.findall(question.lower())]
    return list(dict.fromkeys([word for word in words if word not in STOP] or words))


def bm25(texts: list[str], questions: list[str]) -> np.ndarray:
    """A row of scores for each question, the best of a row being 1."""
    db = sqlite3.connect(":memory:")
    db.execute("create virtual table f using fts5(body, tokenize='porter unicode61 remove_diacritics 2')")
    db.executemany("insert into f(rowid, body) values (?, ?)", enumerate(texts))
    scores = np.zeros((len(questions), len(texts)), np.float32)
    for row, question in zip(scores, questions, strict=True):
        match = " OR ".join(f'"{term}"' for term in terms(question))
        for at, score in db.execute("select rowid, -bm25(f) from f where f match ?", (match,)) if match else ():
            row[at] = score
        row[:] /= row.max() or 1
    return scores


def locomo(path: Path) -> list[tuple[list[str], list[str], list[set[int]]]]:
    """For each conversation: its turns, its questions without names, and which turns answer them."""
    scopes = []
    for conversation in json.loads(path.read_text()):
        said = conversation["conversation"]
        names = "|".join(re.escape(said[key]) for key in ("speaker_a", "speaker_b"))
        sessions = sorted(int(key[8:]) for key in said if re.fullmatch(r"session_\d+", key))
        turns = [turn for number in sessions for turn in said[f"session_{number}"]]
        place = {turn["dia_id"]: at for at, turn in enumerate(turns)}
        shown = [turn.get("blip_caption") for turn in turns]
        texts = [turn.get("text", "") + (f" [shares {s}]" if s else "") for turn, s in zip(turns, shown, strict=True)]
        questions, gold = [], []
        for asked in conversation["qa"]:
            evidence = re.findall(r"D:?(\d+)\s*:\s*(\d+)", " ".join(asked.get("evidence") or []))
            turn_ids = [f"D{int(session)}:{int(turn)}" for session, turn in evidence]
            if answers := {place[turn] for turn in turn_ids if turn in place}:
                bare = re.sub(rf"\b({names})(?:'s)?\b", "", asked["question"], flags=re.IGNORECASE)
                questions.append(re.sub(r"\s+", " ", bare).strip() or asked["question"])
                gold.append(answers)
        scopes.append((texts, questions, gold))
    return scopes


def longmemeval(path: Path) -> list[tuple[list[str], list[str], list[set[int]]]]:
    """All evidence sessions in one scope."""
    texts: list[str] = []
    seen: dict[str, int] = {}
    questions, gold = [], []
    for asked in json.loads(path.read_text()):
        answers = set()
        for session, turns in zip(asked["haystack_session_ids"], asked["haystack_sessions"], strict=True):
            if session not in seen:
                seen[session] = len(texts)
                texts += [turn["content"] for turn in turns]
            answers |= {seen[session] + at for at, turn in enumerate(turns) if turn.get("has_answer")}
        if answers and not asked["question_id"].endswith("_abs"):
            questions.append(asked["question"])
            gold.append(answers)
    return [(texts, questions, gold)]


class Benchmark:
    """Texts tokenised and BM25 scored once, then any number of tables measured."""

    def __init__(self, data: Path) -> None:
        kept = data / "benchmark.pickle"
        if kept.exists():
            self.ready = pickle.loads(kept.read_bytes())
            return
        tok = tokenizer()
        conversations = locomo(data / "locomo10.json")
        parts = {
            "LoCoMo 1-5": conversations[:5],
            "LoCoMo 6-10": conversations[5:],
            "LongMemEval": longmemeval(data / "longmemeval_oracle.json"),
        }

        def ids(texts: list[str]) -> list[list[int]]:
            return [encoding.ids for encoding in tok.encode_batch([t[:4000] for t in texts], add_special_tokens=False)]

        self.ready = {
            name: [(ids(texts), ids(questions), bm25(texts, questions), gold) for texts, questions, gold in scopes]
            for name, scopes in parts.items()
        }

    def measure(self, vectors: Callable[[list[list[int]]], np.ndarray]) -> dict[str, dict[str, dict[str, float]]]:
        """Part -> way of scoring -> figure -> mean over questions."""
        result = {}
        for name, scopes in self.ready.items():
            rows: dict[str, list[dict[str, float]]] = {"bm25": [], "dense": [], "both": []}
            for texts, questions, lexical, gold in scopes:
                similar = vectors(questions) @ vectors(texts).T
                low, high = similar.min(1, keepdims=True), similar.max(1, keepdims=True)
                scaled = (similar - low) / np.maximum(high - low, 1e-9)
                for way, scores in (("bm25", lexical), ("dense", scaled), ("both", lexical + scaled)):
                    order = np.argsort(-scores, axis=1, kind="stable")[:, :20]
                    rows[way] += [figures(list(o), g) for o, g in zip(order, gold, strict=True)]
            result[name] = {way: {k: sum(r[k] for r in rs) / len(rs) for k in rs[0]} for way, rs in rows.items()}
        return result


def figures(ranked: list[int], gold: set[int]) -> dict[str, float]:
    """Recall at three depths, and NDCG@10."""
    found = {f"R@{k}": len(gold & set(ranked[:k])) / len(gold) for k in (5, 10, 20)}
    gain = sum(1 / math.log2(at + 2) for at, doc in enumerate(ranked[:10]) if doc in gold)
    return found | {"NDCG@10": gain / sum(1 / math.log2(at + 2) for at in range(min(10, len(gold))))}


def line(name: str, result: dict[str, dict[str, dict[str, float]]]) -> str:
    """One row of the table that is printed: R@10 and NDCG@10, dense and with BM25, of each part."""
    cells = [f"{result[part][way][k]:.3f}" for part in result for way in ("dense", "both") for k in ("R@10", "NDCG@10")]
    return f"| {name} | " + " | ".join(cells) + " |"


HEAD = "| table | " + " | ".join(
    f"{part} {way} {k}" for part in ("L1-5", "L6-10", "LME") for way in ("dense", "both") for k in ("R@10", "N@10")
)


def main() -> None:
    """Print a row for each table, and one for BM25 alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("tables", nargs="+", type=Path)
    given = parser.parse_args()
    benchmark = Benchmark(given.data)
    print(HEAD, "|")
    for path in given.tables:
        table = read_table(path)
        result = benchmark.measure(lambda rows, table=table: embed(table, rows))
        print(line(path.name, result))
    print(line("BM25 alone", {part: dict.fromkeys(("dense", "both"), ways["bm25"]) for part, ways in result.items()}))


if __name__ == "__main__":
    main()
