"""People save files while syncs, recalls and agents write them: every edit is in the history or in a file."""

from __future__ import annotations

import subprocess

from commonplace.app import open_app
from commonplace.model.queries import State
from faults import Result, World

FILES = 24

#: What each program does first: ``portable`` takes the exchange of two files away, as on a Mac.
_START = """
import os, random, sys, time
from pathlib import Path
from commonplace.app import open_app
from commonplace.files import swap
from commonplace.model.errors import CommonplaceError, StoreBusy

if sys.argv[1] == "portable":
    swap._renameat2 = lambda: None
"""

#: Saves files as editors do, one line more each time, and says which line it has saved.
EDITOR = """
import os, random, sys, time

_, folder, name, count = sys.argv
chance = random.Random(name)
own = sorted(os.path.join(at, file) for at, _, files in os.walk(folder) for file in files if file.endswith(".md"))
own = own[int(name) :: 2]
for number in range(int(count)):
    path, line = chance.choice(own), f"edit-{name}-{number}-"
    how = chance.choice(["rename", "rename", "in place", "anew"])
    while True:
        try:
            text = open(path).read() + line + "\\n"
            break
        except FileNotFoundError:  # without an exchange there is no file for a moment
            time.sleep(0.001)
    if how == "rename":
        with open(f"{path}.swp{name}", "w") as file:
            file.write(text)
        os.replace(f"{path}.swp{name}", path)
    elif how == "in place":
        with open(path, "w") as file:
            file.write(text[:40])
            file.flush()
            time.sleep(chance.random() * 0.002)
            file.write(text[40:])
    else:
        if os.path.exists(path):
            os.rename(path, f"{path}~{name}")
        with open(path, "w") as file:
            file.write(text)
    os.write(1, f"{line}\\n".encode())
    time.sleep(chance.random() * 0.004)
"""

#: Syncs, or recalls, or updates records as an agent does, until its standard input closes.
BUSY = (
    _START
    + """
import threading
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
chance, number = random.Random(sys.argv[2]), 0
with open_app() as app:
    while not ended.is_set():
        number += 1
        try:
            if sys.argv[2] == "sync":
                app.folders.sync(app.where.project)
            elif sys.argv[2] == "recall":
                app.recall("edit")
            else:
                one = chance.choice(app.memory.list(limit=100))
                app.memory.update(one.id, content=f"agent {number}")
                time.sleep(0.01)
        except CommonplaceError:
            pass
"""
)


def edits_against_writers(folder, tries, *, portable=False):
    """Save so many edits while a sync, a recall and an agent's writes are under way."""
    world = World(folder)
    result = Result("edits saved while syncs and agents write" + (", without an exchange" if portable else ""))
    for number in range(FILES):
        world.ok("record", "add", f"Decision {number}", "--category", "decisions") if number == 0 else None
    with open_app(str(world.project), env=world.env) as app:
        for number in range(1, FILES):
            app.memory.remember(f"Decision {number}", category="decisions")
    saved = _edit(world, tries, "portable" if portable else "native")
    result.tries = len(saved)
    with open_app(str(world.project), env=world.env) as app:
        app.folders.sync(app.where.project)
        everything = "\n".join(_everything(app, world))
    lost = [line for line in saved if line not in everything]
    result.expect(not lost, f"{len(lost)} edits are lost, such as {lost[:3]}")
    left = sorted(path.name for path in world.project.rglob(".tmp-*"))
    result.expect(not left, f"temporary files are left: {left[:3]}")
    return result


def _edit(world, tries, how):
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    busy = [world.start(BUSY, how, what, **pipes) for what in ("sync", "recall", "agent")]
    files = world.project / ".commonplace" / "decisions"
    editors = [world.start(EDITOR, files, name, tries // 2, stdout=subprocess.PIPE) for name in (0, 1)]
    saved = [line for editor in editors for line in editor.communicate()[0].decode().split()]
    for process in busy:
        _, trouble = process.communicate(b"")
        assert process.returncode == 0, trouble.decode()
    return saved


def _everything(app, world):
    """Every version of every record, and every file."""
    for record in app.memory.list(states=State, limit=1000):
        yield from (version.content for version in app.memory.history(record.id))
    for path in (world.project / ".commonplace" / "decisions").iterdir():
        if path.suffix == ".md":
            yield path.read_text()
