"""A newcomer's afternoon: the three programs of the audit, and the screens that a terminal shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCREENS = ROOT / "tests" / "fixtures" / "screens" / "newcomer.txt"


def test_the_programs_of_a_newcomer_do_what_they_should():
    """What they print, and the screens at 80 and 40 columns, is what was agreed; the variable writes it anew."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "newcomer.py", "1000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if os.environ.get("COMMONPLACE_WRITE_SCREENS"):
        SCREENS.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == SCREENS.read_text(encoding="utf-8")
