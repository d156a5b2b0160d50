"""Replay what a newcomer tried: three programs against the library, then the command on 80 and on 40 columns.

    python scripts/newcomer.py [NOTES]

A chatbot that is started three times, a folder of many notes (2,000 unless said otherwise), and a web service with
several users.  Everything happens in a temporary folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commonplace

COMMAND = Path(sys.executable).with_name("commonplace")
SCREENS = [["search", "when do we deploy?"], ["list", "--limit", "3"], ["show", "nothing"]]


def chatbot(folder: Path) -> list[str]:
    """Add, search, list, update, delete and look back, over three starts, for two users."""
    said = []
    with commonplace.open(folder / "chat.db", user="ada") as memory:
        memory.learn([{"role": "user", "content": "I prefer short answers. Remember that my daughter is called Mia."}])
        said.append(f"start 1: {len(memory)} learned")
    with commonplace.open(folder / "chat.db", user="ada") as memory:
        [hit] = memory.recall("what is my daughter called?", limit=1)
        memory.update(hit.id, content="My daughter is called Mia and is nine.")
        said.append(f"start 2: {hit.text} -> {memory.get(hit.id).content}")
    with commonplace.open(folder / "chat.db", user="ada") as memory:
        daughter = memory.recall("daughter", limit=1)[0].record
        said.append(f"start 3: {len(memory.history(daughter.id))} versions")
        memory.forget(daughter.id)
        said.append(f"ada has {len(memory)}, bob has {len(memory.for_user('bob'))}")
    return said


def notes(folder: Path, count: int) -> list[str]:
    """Load many notes, page through them, and find one."""
    with commonplace.open(folder / "notes.db") as memory:
        began = time.perf_counter()
        done = memory.remember_many(
            {"text": f"Folder note {n} about subject {n % 97}", "metadata": {"n": n}} for n in range(count)
        )
        seconds = time.perf_counter() - began
        print(f"{count / seconds:,.0f} notes a second", file=sys.stderr)
        pages = sum(1 for _ in memory.iterate())
        [found], best = memory.list(metadata={"n": 77}), memory.recall('"note 77"')[0]
        return [
            f"{done.added} added, {len(memory)} counted, {pages} paged through",
            f"note 77: {found.content}; recall: {best.text}",
            f"as JSON: {json.loads(json.dumps(found.to_dict()))['metadata']}",
        ]


def service(folder: Path) -> list[str]:
    """Serve several users over one connection, as a web service would in its handlers."""

    async def handle(memory: commonplace.AsyncMemory, user: str, body: dict[str, object]) -> tuple[int, object]:
        try:
            saved = await memory.for_user(user).remember(body["text"], tags=body.get("tags", ()))  # type: ignore[arg-type]  # it came by HTTP
        except commonplace.InvalidInput as error:
            return 400, str(error)
        return 201, saved.record.to_dict()["content"]

    async def run() -> list[str]:
        async with await commonplace.open_async(folder / "service.db") as memory:
            bodies = [("ada", {"text": "Tea at four"}), ("bob", {"text": "x", "tags": "js"}), ("bob", {"text": 5})]
            answers = await asyncio.gather(*(handle(memory, user, dict(body)) for user, body in bodies))
            counts = [len(await memory.for_user(user).list()) for user in ("ada", "bob")]
            return [*(f"{status}: {said}" for status, said in answers), f"ada has {counts[0]}, bob has {counts[1]}"]

    return asyncio.run(run())


def screens(folder: Path, width: int) -> list[str]:
    """Show what the command prints on a terminal of that width; ids and times as they are each time."""
    env = os.environ | {
        "COMMONPLACE_HOME": str(folder / "home"), "COMMONPLACE_FORCE_TTY": str(width), "NO_COLOR": "1",
        "COMMONPLACE_PROGRESS": "never",
    }  # fmt: skip
    rows = folder / "rows.jsonl"
    texts = ["Deploys happen on Fridays, after the smoke tests have passed and somebody watches the error rate",
             "Use pnpm, not npm", "日本語のメモ: the office moved to Kyoto"]  # fmt: skip
    rows.write_text("".join(json.dumps({"text": text, "tags": ["demo"]}) + "\n" for text in texts), encoding="utf-8")
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "config.yaml").write_text("scripts_speak_as: user\n")
    shown = []
    for command in [["import", str(rows)], *SCREENS]:
        done = subprocess.run([COMMAND, *command], cwd=folder, env=env, capture_output=True, text=True, check=False)
        shown.append(f"$ commonplace {' '.join(command).replace(str(folder), '.')}\n{done.stdout}{done.stderr}")
    listed = subprocess.run([COMMAND, "list", "--json"], cwd=folder, env=env, capture_output=True, check=True)
    text = "\n".join(shown)
    for record in json.loads(listed.stdout)["records"]:
        text = text.replace(record["id"][-5:], "short")
    text = re.sub(r"\b[01]\.\d\d$", "0.00", text, flags=re.MULTILINE)  # scores follow the ranking, not the screen
    return re.sub(r"just now|\d+ (?:minute|hour)s? ago", "just now", text).splitlines()


def main() -> None:
    """Run all of it and print what came of it."""
    count = int(sys.argv[1]) if sys.argv[1:] else 2_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, lines in (
            ("A chatbot over restarts", chatbot(folder)), (f"{count} notes", notes(folder, count)),
            ("A service with users", service(folder)), ("The command on 80 columns", screens(folder, 80)),
            ("The command on 40 columns", screens(folder, 40)),
        ):  # fmt: skip
            print(f"## {title}\n", *lines, "", sep="\n")


if __name__ == "__main__":
    main()
