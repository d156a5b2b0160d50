"""Record the README's first commands on a real terminal as docs/assets/demo.svg.

    .venv/bin/python scripts/recording.py

Runs each command of the README's first console block that is not about setting up, in an empty home directory and on a
terminal of 80 columns, and draws what it printed, with its colours, as one SVG that types and prints by itself (no
script; readers who ask for less motion see the end at once).
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "assets" / "demo.svg"
COLUMNS, LINE, WIDTH, FONT, MARGIN = 84, 20, 8.43, 14, 16
TYPING, PAUSE = 0.035, 1.1  # seconds for a character, and after a command
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
ESCAPES = re.compile(r"\x1b\](?:[^\x07\x1b]*)(?:\x07|\x1b\\)|\x1b\[([0-9;]*)([A-Za-z])")
STYLES = {"1": "b", "2": "d", "4": "u", "31": "r", "32": "g", "33": "y", "34": "n", "35": "m", "36": "c"}
SHEET = """text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d8dee4;white-space:pre}
.b{font-weight:700}.d{fill:#8b949e}.u{text-decoration:underline}.r{fill:#ff7b72}.g{fill:#7ee787}.y{fill:#f2cc60}
.n{fill:#79c0ff}.m{fill:#d2a8ff}.c{fill:#76e3ea}.p{fill:#7ee787}
.l{opacity:0;animation:show .01s linear forwards}.t{animation:type linear forwards}
@keyframes show{to{opacity:1}}@keyframes type{to{transform:translateX(100%)}}
@media (prefers-reduced-motion:reduce){.l{opacity:1;animation:none}.t{display:none}}"""


def main() -> None:
    """Record and write the picture."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    commands = [
        line[2:] for block in blocks if "scripts/" not in block for line in block.splitlines() if line[:2] == "$ "
    ]
    with tempfile.TemporaryDirectory(prefix="recording-") as home:
        shown = [(command, printed) for command, printed in zip(commands, record(commands, Path(home)), strict=True)]
    TARGET.write_text(draw(shown), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")


def record(commands: list[str], home: Path) -> list[str]:
    """What each command prints on a terminal; where one leaves the shell, the next one starts."""
    folder, printed = home, []
    for command in commands:
        left = home / ".left"
        printed.append(on_terminal(f"{command}; pwd > '{left}'", folder, home))
        folder = Path(left.read_text(encoding="utf-8").strip())
    return printed


def on_terminal(program: str, folder: Path, home: Path) -> str:
    """Run a program with a terminal for its input and output."""
    ours, theirs = pty.openpty()
    os.set_inheritable(theirs, True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    keep = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    child = subprocess.Popen(
        ["bash", "-c", program],
        cwd=folder,
        env=keep,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    received = b""
    try:
        while part := os.read(ours, 65_536):
            received += part
    except OSError:  # Linux ends a terminal without a writer with an error
        pass
    os.close(ours)
    if child.wait() != 0:
        sys.exit(f"{program}\n{received.decode()}")
    return received.decode().replace("\r\n", "\n").replace(str(home), "~")


def draw(shown: list[tuple[str, str]]) -> str:
    """The whole picture."""
    rows, clock, y = [], 0.4, MARGIN + 34
    for command, printed in shown:
        rows.append(typed(command, y, clock))
        clock += len(command) * TYPING + 0.3
        y += LINE
        for line in printed.rstrip("\n").split("\n"):
            begin = f'<text class="l" x="{MARGIN}" y="{y}" style="animation-delay:{clock:.2f}s">'
            rows.append(f"{begin}{styled(line)}</text>")
            y += LINE
        clock += PAUSE
    width, height = int(COLUMNS * WIDTH) + 2 * MARGIN, y + MARGIN - LINE + 8
    dots = "".join(
        f'<circle cx="{20 + 18 * i}" cy="18" r="5.5" fill="{c}"/>'
        for i, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="A terminal: memory is made, filled and searched">\n<style>{SHEET}</style>\n'
        f'<rect width="{width}" height="{height}" rx="10" fill="#0d1117"/>{dots}\n' + "\n".join(rows) + "\n</svg>\n"
    )


def typed(command: str, y: int, clock: float) -> str:
    """A command that appears character by character, from under a cover that moves away."""
    start, length = MARGIN + 2 * WIDTH, len(command)
    motion = f"animation-delay:{clock:.2f}s;animation-duration:{length * TYPING:.2f}s"
    place = f'x="{start:.1f}" y="{y - 15}" width="{length * WIDTH + 4:.1f}" height="{LINE}"'
    look = f'fill="#0d1117" style="{motion};animation-timing-function:steps({length})"'
    cover = f'<svg {place}><rect class="t" width="100%" height="100%" {look}/></svg>'
    prompt = f'<tspan class="p">$</tspan> {escape(command)}'
    return f'<text class="l" x="{MARGIN}" y="{y}" style="animation-delay:{clock:.2f}s">{prompt}</text>{cover}'


def styled(line: str) -> str:
    """A printed line with its colours as classes; links and the moves of the cursor fall away."""
    line = line.rpartition("\r")[2]  # what a progress line leaves
    parts, styles, last = [], set[str](), 0
    for found in ESCAPES.finditer(line):
        parts.append(span(line[last : found.start()], styles))
        last = found.end()
        if found[2] == "m":
            for code in (found[1] or "0").split(";"):
                styles = set() if code in {"", "0"} else styles | {STYLES.get(code, "")}
    return "".join([*parts, span(line[last:], styles)])


def span(text: str, styles: set[str]) -> str:
    """A run of text with one style."""
    classes = " ".join(sorted(styles - {""}))
    return f'<tspan class="{classes}">{escape(text)}</tspan>' if text and classes else escape(text)


if __name__ == "__main__":
    main()
