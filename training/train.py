# ruff: noqa: INP001, T201, S301, N812
"""Teach the table on running text: the sum of a passage's rows shall point where the teacher's vector points.

usage: MINILM=... python training/train.py WORK_FOLDER [--variants FILE] [--data FOLDER]

Reads WORK_FOLDER/corpus.tsv, writes WORK_FOLDER/NAME.npy for each variant.  The teacher and the training
take two minutes on a large GPU, some hours on two cores.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from evaluate import DATA, HEAD, Benchmark, line
from tables import DEVICE, bag, embed
from teacher import LONGEST, Teacher, tokenizer

SHORTEST_HALVED = 12  # tokens
SELDOM = (20, 200)  # times that a rare token occurs
HELD_OUT = 50  # one passage in so many is for judging only
#: Manuals, which would teach it the wrong sense of everyday words
TECHNICAL = "linux-doc-6.1 python3.11-doc perl-doc postgresql-doc-15 git-doc libreoffice-help-en-us lilypond-doc-html"
#: What is shipped; a variants file (JSON: name -> changes) overrides any of it.
CHOSEN: dict[str, float | str] = {
    "start": "sif",  # weights of the rows at the start: none, zipf (by rank) or sif (by count in the corpus)
    "center": 1.0,  # how much of the mean vector is taken from the targets
    "dims": 256,
    "epochs": 16,
    "batch": 8192,
    "rate": 0.01,
    "cosine": 0.2,  # weight of 1 - cos to the teacher
    "likeness": 1.0,  # weight of: likenesses within a batch are spread as the teacher's are
    "heat": 0.05,  # temperature of those likenesses
    "pairs": 0.0,  # weight of: a passage's two halves find each other
    "pair_heat": 0.05,
    "shrink": 100.0,  # a token seen n times keeps n / (n + shrink) of what it learnt
    "skip": TECHNICAL,  # sources left out
}


class Passages:
    """Token ids of passages and of their sentences, and the teacher's vectors of all of them, kept for the next run."""

    def __init__(self, work: Path, limit: int | None) -> None:
        kept = work / "taught.pickle"
        if kept.exists():
            self.__dict__ = pickle.loads(kept.read_bytes())
            return
        lines = [row.split("\t", 1) for row in (work / "corpus.tsv").read_text(encoding="utf-8").split("\n") if row]
        order = np.random.default_rng(0).permutation(len(lines))[:limit]
        source, texts, whole = [], [], []
        for number, at in enumerate(order):
            sentences = [s for s in re.split(r"(?<=[.!?;:])\s+(?=[A-Z\"'(])", lines[at][1]) if s.count(" ") > 1]
            for piece in [lines[at][1], *sentences[:6]] if len(sentences) > 1 else [lines[at][1]]:
                texts.append(piece)
                source.append(lines[at][0])
                whole.append(number)
        tok, step = tokenizer(), 50_000
        parts = (tok.encode_batch(texts[at : at + step], add_special_tokens=False) for at in range(0, len(texts), step))
        self.ids = [encoding.ids[: LONGEST - 2] for part in parts for encoding in part]
        self.source, self.whole = np.array(source), np.array(whole)
        print(f"{len(order)} passages, {len(texts)} texts, {sum(map(len, self.ids))} tokens", flush=True)
        began, gpu = time.time(), DEVICE == "cuda"
        teacher = Teacher(DEVICE, torch.float16 if gpu else torch.float32)
        self.vectors = teacher.encode(self.ids, batch_tokens=1 << 18 if gpu else 1 << 14)
        print(f"teacher: {time.time() - began:.0f} s", flush=True)
        kept.write_bytes(pickle.dumps(self.__dict__, protocol=5))


class Trainer:
    """Everything on the device, and a table for each variant."""

    def __init__(self, passages: Passages, raw: np.ndarray) -> None:
        self.raw = torch.from_numpy(raw).to(DEVICE)
        self.source = passages.source
        self.held = passages.whole % HELD_OUT == 0
        self.whole = passages.whole
        self.targets = torch.from_numpy(passages.vectors).to(DEVICE)
        self.flat, self.starts = bag(passages.ids)
        self.lengths = torch.tensor([len(row) for row in passages.ids], device=DEVICE)
        self.counts = torch.bincount(self.flat, minlength=len(raw)).float()

    def rows(self, which: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The ids of some texts, one after the other, and where each starts."""
        lengths = self.lengths[which]
        starts = lengths.cumsum(0) - lengths
        inside = torch.arange(int(lengths.sum()), device=DEVICE) - starts.repeat_interleave(lengths)
        return self.flat[self.starts[which].repeat_interleave(lengths) + inside], starts

    def train(self, v: dict[str, Any]) -> np.ndarray:
        """The table of one variant; ``judged`` is then its mean cosine to the teacher on passages held out."""
        torch.manual_seed(0)
        goal, table0 = self.begin(v)
        table = table0.clone().requires_grad_(True)
        learn = torch.from_numpy(~self.held & ~np.isin(self.source, v["skip"].split())).to(DEVICE).nonzero()[:, 0]
        batch = int(v["batch"])
        rounds = len(learn) // batch
        steps = int(v["epochs"] * rounds)
        optimizer = torch.optim.Adam([table], lr=v["rate"], betas=(0.9, 0.99))
        rate = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, step / 100) * max(0.02, 1 - step / max(1, steps))
        )
        for step in range(steps):
            at = step % rounds
            if at == 0:
                shuffled = learn[torch.randperm(len(learn), device=DEVICE)]
            optimizer.zero_grad(set_to_none=True)
            self.loss(table, goal, shuffled[at * batch : (at + 1) * batch], v).backward()
            optimizer.step()
            rate.step()
        with torch.no_grad():
            learnt = self.finish(table, table0, v["shrink"])
            judge = torch.from_numpy(self.held).to(DEVICE).nonzero()[:, 0]
            self.judged = float((self.said(learnt, *self.rows(judge)) * goal[judge]).sum(1).mean())
        return learnt.cpu().numpy()

    def begin(self, v: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Where each text's vector shall point, and the table at the start: both along the texts' principal axes."""
        centred = self.targets - self.targets.mean(0) * v["center"]
        some = torch.randperm(len(centred), device=DEVICE)[:200_000]
        _, _, axes = torch.linalg.svd(centred[some].double(), full_matrices=False)
        axes = axes[: int(v["dims"])].T.float()
        rank = torch.arange(1, len(self.raw) + 1, device=DEVICE).float()
        share = self.counts / self.counts.sum()
        weight = {"none": torch.ones_like(rank), "zipf": torch.log1p(rank), "sif": 1e-3 / (1e-3 + share)}[v["start"]]
        table = (self.raw - self.raw.mean(0)) @ axes * weight[:, None]
        return F.normalize(centred @ axes, dim=1), table / table.norm(dim=1).mean()

    def said(self, table: torch.Tensor, ids: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """What the table makes of texts."""
        return F.normalize(F.embedding_bag(ids, table, starts, mode="sum"), dim=1, eps=1e-6)

    def loss(self, table: torch.Tensor, goal: torch.Tensor, which: torch.Tensor, v: dict[str, Any]) -> torch.Tensor:
        """How far the table is from the teacher on some texts."""
        ids, starts = self.rows(which)
        said = self.said(table, ids, starts)
        loss = v["cosine"] * (1 - (said * goal[which]).sum(1)).mean()
        if v["likeness"]:
            full = F.normalize(self.targets[which], dim=1)
            teacher = F.log_softmax((full @ full.T / v["heat"]).fill_diagonal_(-1e4), dim=1)
            student = F.log_softmax((said @ said.T / v["heat"]).fill_diagonal_(-1e4), dim=1)
            loss = loss + v["likeness"] * F.kl_div(student, teacher, log_target=True, reduction="batchmean")
        if v["pairs"]:
            loss = loss + v["pairs"] * self.halves(table, ids, starts, self.lengths[which], v["pair_heat"])
        return loss

    def halves(
        self, table: torch.Tensor, ids: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor, heat: float
    ) -> torch.Tensor:
        """In-batch contrast: the two halves of a text find each other."""
        both = torch.stack([starts, starts + (lengths // 2).clamp(min=1)], 1).reshape(-1)
        pair = self.said(table, ids, both.clamp(max=len(ids))).view(-1, 2, table.shape[1])
        left, right = pair[lengths >= SHORTEST_HALVED].unbind(1)
        scores = left @ right.T / heat
        truth = torch.arange(len(left), device=DEVICE)
        return (F.cross_entropy(scores, truth) + F.cross_entropy(scores.T, truth)) / 2

    def finish(self, table: torch.Tensor, table0: torch.Tensor, shrink: float) -> torch.Tensor:
        """Rare tokens stay near their start, which is first made as long as training makes tokens like them."""
        seldom = (self.counts >= SELDOM[0]) & (self.counts < SELDOM[1])
        longer = (table[seldom].norm(dim=1) / table0[seldom].norm(dim=1).clamp(min=1e-6)).median()
        trust = (self.counts / (self.counts + shrink))[:, None]
        return trust * table + (1 - trust) * table0 * longer


def main() -> None:
    """Train and measure every variant asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--variants", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--teacher", action="store_true", help="measure the teacher too")
    given = parser.parse_args()
    passages = Passages(given.work, given.limit)
    raw = Teacher(DEVICE).encode([[token] for token in range(tokenizer().get_vocab_size())])
    trainer = Trainer(passages, raw)
    benchmark = Benchmark(given.data)
    variants = json.loads(given.variants.read_text()) if given.variants else {"chosen": {}}
    print(HEAD, "| held-out cos | s |", flush=True)
    if given.teacher:
        print(line("teacher", benchmark.measure(Teacher(DEVICE).encode)), flush=True)
    for name, changes in variants.items():
        began = time.time()
        table = trainer.train(CHOSEN | changes)
        result = benchmark.measure(lambda rows, table=table: embed(table, rows))
        print(line(name, result), f"{trainer.judged:.4f} | {time.time() - began:.0f} |", flush=True)
        np.save((given.out or given.work) / f"{name}.npy", table.astype(np.float16))


if __name__ == "__main__":
    main()
