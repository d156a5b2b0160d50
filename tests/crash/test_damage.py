"""Files that are damaged: what is read is what was written, and what can be read survives a repair."""

from __future__ import annotations

import pytest

from faults.damage import repairs_of_damaged_files


@pytest.mark.parametrize("tries", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_a_repair_keeps_every_row_that_can_be_read(tmp_path, tries):
    """Of every table; a repair never ends in a traceback, and never leaves damage."""
    assert repairs_of_damaged_files(tmp_path, tries).violations == []
