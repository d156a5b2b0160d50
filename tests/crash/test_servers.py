"""Several servers on one store: writers, servers and workers, some of them killed in mid-work."""

import random

import pytest
from lives import check_servers, servers
from serving import check_serving, serving


@pytest.mark.parametrize("runs", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_killed_worker_loses_nothing_and_nothing_is_done_twice(new_home, runs):
    """What was acknowledged is done, once; `python bench/servers.py` does this fifty times."""
    for seed in range(runs):
        place = new_home()
        assert check_servers(place, servers(place, random.Random(seed))) >= 40


@pytest.mark.slow
def test_a_killed_server_loses_nothing_and_the_other_goes_on(new_home, tmp_path):
    """Its clients hear errors, nobody else does; `python bench/servers.py --serve` does this again and again."""
    place = new_home()
    assert check_serving(place, *serving(place, tmp_path, random.Random(0))) >= 20
