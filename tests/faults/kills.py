"""Commands that are killed at random moments: what comes next finds everything, and ends what was begun."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from contextlib import closing
from itertools import pairwise

from commonplace.app import open_app
from commonplace.model.queries import State
from faults import Result, World

FILES = 20


def template(folder):
    """A project with records in files, an export, and a backup, to be copied for each try."""
    world = World(folder)
    with open_app(str(world.project), env=world.env) as app:
        for number in range(FILES):
            app.memory.remember(f"Decision {number} is taken", category="decisions")
    world.ok("export", str(world.folder / "export.jsonl"))
    world.ok("backup", str(world.folder / "backup.db"))
    return world


def edit_files(world):
    """Edit half of the files, delete two, add three."""
    files = sorted((world.project / ".commonplace" / "decisions").iterdir())
    for number, file in enumerate(files[: FILES // 2]):
        file.write_text(file.read_text().replace("is taken", f"is edited {number}"))
    for file in files[-2:]:
        file.unlink()
    for number in range(3):
        (files[0].parent / f"new-{number}.md").write_text(f"A new file {number}\n")


def _nothing(_world):
    """The command needs nothing."""


#: What is killed: what comes before it, and its words.
COMMANDS = {
    "record add": (_nothing, ["record", "add", "One more", "--category", "decisions"]),
    "sync": (edit_files, ["sync"]),
    "import": (_nothing, ["import", "EXPORT"]),
    "reembed": (_nothing, ["reembed"]),
    "doctor --fix": (edit_files, ["doctor", "--fix"]),
    "backup": (_nothing, ["backup"]),
    "restore-backup": (edit_files, ["restore-backup", "BACKUP", "--yes"]),
}


def killed_commands(folder, tries, names=tuple(COMMANDS)):
    """Kill one command after another, run it again, and look at the memory."""
    result, lengths = Result("commands that are killed"), {}
    whole = template(folder / "whole")
    for number in range(tries):
        name = names[number % len(names)]
        place = folder / f"try-{number}"
        world = _copied(whole, place)
        lengths[name] = _kill_once(world, name, random.Random(number), lengths.get(name, 1.0))
        _look(world, name, result, f"{name} {number}")
        result.tries += 1
        shutil.rmtree(place)
    return result


def _copied(whole, place):
    """The same world at another place, which its user trusts."""
    world = World(place)
    shutil.rmtree(world.project)
    shutil.copytree(whole.project, world.project)
    for name in ("commonplace.db", "redaction.key"):
        if (whole.home / name).exists():
            shutil.copy(whole.home / name, world.home / name)
    for name in ("export.jsonl", "backup.db"):
        shutil.copy(whole.folder / name, world.folder / name)
    world.ok("sync")
    return world


def _kill_once(world, name, chance, length):
    """Kill a command that takes about so long, and run it again; return how long it takes."""
    before, words = COMMANDS[name]
    places = {"EXPORT": str(world.folder / "export.jsonl"), "BACKUP": str(world.folder / "backup.db")}
    words = [places.get(word, word) for word in words]
    before(world)
    start = time.monotonic()
    process = subprocess.Popen(
        world.command(*words), cwd=world.project, env=world.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(chance.uniform(0.1, 1.1) * length)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    else:
        length = (length + time.monotonic() - start) / 2
    world.run(*words)  # again, as whoever sees that it was killed does
    world.run("sync", "--accept-missing")
    return length


def _look(world, name, result, what):
    done = world.run("doctor", "--json")
    checks = json.loads(done.stdout)["checks"] if done.stdout else {"doctor": [{"what": done.stderr.decode()[-300:]}]}
    found = [problem["what"] for problems in checks.values() for problem in problems]
    result.expect(not found, f"{what}: doctor: {found}")
    left = [str(path) for path in world.project.rglob(".tmp-*")] + [str(path) for path in world.home.rglob("*.part")]
    result.expect(not left, f"{what}: left over: {left}")
    with closing(open_app(str(world.project), env=world.env)) as app:
        records = app.memory.list(states=State, limit=1000)
        past = {record.id: [version.content for version in app.memory.history(record.id)] for record in records}
    said = {text for texts in past.values() for text in texts}
    lost = [number for number in range(FILES) if f"Decision {number} is taken" not in said]
    result.expect(not lost or name == "restore-backup", f"{what}: lost: {lost}")
    for id_, texts in past.items():
        doubled = [one for one, other in pairwise(texts) if one == other and name == "sync"]
        live = next(record for record in records if record.id == id_)
        result.expect(not doubled or live.archived_at is not None, f"{what}: the same text as two versions: {doubled}")
