"""What is written to a terminal, and how dates are read from it."""

from __future__ import annotations

import io
import json
import os
import sys
from datetime import UTC, datetime

import pytest

from commonplace.cli import dates as moments
from commonplace.cli import terminal
from commonplace.model.errors import InvalidInput
from stands import rows

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)


@rows(
    "text, shown",
    [
        ("plain text\twith\nlines", "plain text\twith\nlines"),
        ("ümlaut 漢字 🙂", "ümlaut 漢字 🙂"),
        ("no\u00a0break and zero\u200dwidth", "no\u00a0break and zero\u200dwidth"),
        ("\x1b[31mred\x07", "\\u001b[31mred\\u0007"),
        ("back\x08space\rreturn", "back\\u0008space\\u000dreturn"),
        ("\x9b2J", "\\u009b2J"),
        ("right\u202eto left", "right\\u202eto left"),
        ("tag\U000e0041", "tag\\udb40\\udc41"),
    ],
)
def test_nothing_acts_on_the_terminal(text, shown):
    """Control, direction and tag characters are shown; whatever people write stays."""
    assert terminal.visible(text) == shown


def test_json_stays_json():
    """What is shown instead is what JSON would write."""
    text = json.dumps({"a": "x\x9b\u202e\U000e0041y"}, ensure_ascii=False)
    assert json.loads(terminal.visible(text)) == json.loads(text)


def test_a_path_is_shown_from_where_one_is(monkeypatch, tmp_path):
    """Inside of the working directory relative, elsewhere whole; a name that only begins alike is elsewhere."""
    monkeypatch.chdir(tmp_path)
    here = os.getcwd()
    assert terminal.short_path(f"{here}/a/b.md") == "a/b.md"
    assert terminal.short_path(f"{here}-other/b.md") == f"{here}-other/b.md"


def test_any_text_can_be_written(monkeypatch):
    """Characters that the terminal's encoding lacks, and bytes that were no text, are escaped, not fatal."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    terminal.prepare_streams()
    terminal.print_text("漢 \udcff")
    stream.flush()
    assert stream.buffer.getvalue() == b"\\u6f22 \\udcff\n"


def test_json_stays_json_in_any_encoding(monkeypatch):
    """What a terminal of ASCII cannot show is written as JSON writes it, beyond the first 65536 characters too."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    terminal.prepare_streams()
    terminal.print_json({"text": "café 😀"})
    stream.flush()
    assert json.loads(stream.buffer.getvalue()) == {"text": "café 😀"}


@rows(
    "text, until, since",
    [
        ("2026-05-01", "2026-05-01T00:00:00+00:00", "2026-05-01T23:59:59.999999+00:00"),
        ("2026-05-01T10:00", "2026-05-01T10:00:00+00:00", "2026-05-01T10:00:00+00:00"),
        ("2026-05-01t10:00z", "2026-05-01T10:00:00+00:00", "2026-05-01T10:00:00+00:00"),
        ("2026-05-01T10:00+02:00", "2026-05-01T08:00:00+00:00", "2026-05-01T08:00:00+00:00"),
        ("12h", "2026-05-11T00:00:00+00:00", "2026-05-10T00:00:00+00:00"),
        ("7D", "2026-05-17T12:00:00+00:00", "2026-05-03T12:00:00+00:00"),
        (" 2w ", "2026-05-24T12:00:00+00:00", "2026-04-26T12:00:00+00:00"),
    ],
)
def test_a_moment_is_a_date_or_a_duration(text, until, since):
    """Durations go forward for what lapses and back for what is asked; a date alone is its whole day when asked."""
    assert moments.until(text, NOW).isoformat() == until
    assert moments.since(text, NOW).isoformat() == since


@rows("text", ["", "soon", "7", "7x", "-7d", "2026-02-30", "9" * 30 + "d", "9999999d", "12:30", "٣d"])
def test_what_is_no_moment_is_refused(text):
    """The message shows how dates are written; a number of days that no calendar reaches is no date."""
    with pytest.raises(InvalidInput, match="2026-12-01"):
        moments.since(text, NOW)
