"""Several servers on one store: a writer and two workers, one of them killed in mid-work."""

import random

import pytest
from lives import check_servers, servers


@pytest.mark.parametrize("runs", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_killed_worker_loses_nothing_and_nothing_is_done_twice(new_home, runs):
    """What was acknowledged is done, once; `python bench/servers.py` does this fifty times."""
    for seed in range(runs):
        place = new_home()
        assert check_servers(place, servers(place, random.Random(seed))) >= 40
