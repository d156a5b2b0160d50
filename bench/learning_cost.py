"""What learning costs: calls and tokens for one new session with a model, and how often an agent is asked to save.

Run: `python bench/learning_cost.py [--records 10,100,500]`.  The model is scripted: it repeats what it is shown.  The
second table is of the labelled sessions in `bench/sets/learning` (something durable was said) and of the small talk in
`bench/sets/hook` (nothing was).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from commonplace.app import open_app
from commonplace.config.paths import find
from commonplace.config.trust_registry import trust_new_project
from commonplace.config.writing import make_project
from commonplace.engine.transcripts import Turn
from commonplace.learning.asking import sounds_durable
from commonplace.learning.consolidate import consolidate_memory
from commonplace.learning.extract import extract_sessions
from commonplace.learning.opening import open_workspace
from commonplace.learning.workspace import Workspace
from commonplace.model.ports import ModelAnswer
from commonplace.records.index import index
from commonplace.text.cleaning import estimate_tokens
from learning import SETS, turns_of

SAID = "The 7 service now belongs to team 12, because the audit asked for it."
EXTRACTED = {
    "rollout_summary": "a team changed", "rollout_slug": "team", "raw_memory": f"- {SAID}",
    "records": [{"content": SAID, "category": "decisions", "quote": SAID, "turns": [1]}],
}  # fmt: skip


class Repeating:
    """A model that extracts one record, and repeats what it is shown; it counts calls and tokens."""

    name, window = "bench:repeating", 128_000

    def __init__(self) -> None:
        self.calls: list[int] = []

    def ask(self, system: str, prompt: str, *, max_tokens: int, effort: str = "low") -> ModelAnswer:
        """Answer, and count what was sent and said."""
        del max_tokens, effort
        lines = [line for line in prompt.splitlines() if line.startswith("- ")]
        memory = "\n".join(["## Decisions", "", *(lines or ["- nothing"])])
        made = EXTRACTED if "Session `" in prompt else {"memory_md": memory, "memory_summary": "x", "skills": []}
        text = json.dumps(made)
        self.calls.append(estimate_tokens(system + prompt) + estimate_tokens(text))
        return ModelAnswer(text=text, model=self.name, tokens_in=self.calls[-1], tokens_out=estimate_tokens(text))


def workspace(folder: Path, now: list[datetime], model: Repeating) -> tuple[Any, Workspace]:
    """A project that learns with the model."""
    (folder / "work").mkdir()
    env = {"COMMONPLACE_HOME": str(folder / "home"), "USER": "ada", "HOME": str(folder)}
    make_project(str(folder / "work" / ".commonplace"), None)
    place = find(str(folder / "work"))
    assert place is not None
    trust_new_project(place, str(folder / "home"))
    app = open_app(str(folder / "work"), env=env, clock=lambda: now[0], embedder=None)
    work = open_workspace(app).replace(scope=app.where.scope("project"), folder=None, model=lambda _role: model)
    return app, work.replace(learning=work.learning.replace(enabled=True, mode="model"))


def cost_of_a_session(records: int) -> tuple[list[int], list[int]]:
    """The tokens of each call of extraction and of consolidation for one new session."""
    with tempfile.TemporaryDirectory() as name:
        now, model = [datetime(2026, 1, 1, tzinfo=UTC)], Repeating()
        app, work = workspace(Path(name), now, model)
        with app:
            for number in range(records):
                text = f"The {number % 37} {number} service is owned by team {number}"
                app.memory.remember(text, category="decisions", scope=work.scope)
            consolidate_memory(work)
            model.calls.clear()
            now[0] += timedelta(days=1)
            path = Path(name) / "s.jsonl"
            path.write_text(f'{{"session": "s"}}\n{json.dumps({"role": "user", "content": SAID})}\n')
            index(work, [str(path)])
            extract_sessions(work, only=["s"])
            extraction, model.calls = model.calls, []
            now[0] += timedelta(minutes=1)
            consolidate_memory(work)
            return extraction, model.calls


def asked_share() -> list[tuple[str, int, int]]:
    """In how many labelled sessions the agent is asked, of those with something to keep and of small talk."""
    rows = []
    loaded = [json.loads((SETS / f"{name}.json").read_text()) for name in ("dev", "held")]
    sessions = [one for part in loaded for one in (part["sessions"] if isinstance(part, dict) else part)]
    for label, wanted in (("sessions with facts", True), ("sessions without", False)):
        chosen = [one for one in sessions if "turns" in one and bool(one.get("facts")) is wanted]
        rows.append((label, sum(sounds_durable(turns_of(one)) for one in chosen), len(chosen)))
    lines = [line for path in sorted((SETS.parent / "hook").glob("*.jsonl")) for line in path.read_text().splitlines()]
    talk = [one["prompt"] for one in map(json.loads, lines) if one["kind"] == "small"]
    turns = [[Turn(ref="1", speaker="user", text=text)] for text in talk]
    rows.append(("small talk, a prompt each", sum(sounds_durable(one) for one in turns), len(turns)))
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default="10,100,500")
    counts = [int(word) for word in parser.parse_args().records.split(",")]
    print("| records before | extraction: calls, tokens | consolidation: calls, tokens |\n|---|---|---|")
    for count in counts:
        extraction, consolidation = cost_of_a_session(count)
        pairs = [f"{len(one)}, {sum(one):,}" for one in (extraction, consolidation)]
        print(f"| {count} | {pairs[0]} | {pairs[1]} |")
    print("\n| the agent is asked in | of |\n|---|---|")
    for label, asked, of in asked_share():
        print(f"| {asked} of {of} {label} |")


if __name__ == "__main__":
    main()
