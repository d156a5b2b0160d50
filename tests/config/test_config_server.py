"""How the server is set up: the environment's variables, and options that win over them."""

from __future__ import annotations

import pytest

from commonplace.config.paths import is_loopback
from commonplace.model.errors import ConfigError, Forbidden
from commonplace.server.settings import read_settings
from stands import rows


def test_nothing_said_is_this_machine_alone():
    """The default listens on loopback, asks for keys and knows the names of this machine."""
    plain = read_settings({})

    assert (plain.host, plain.port, plain.keys) == ("127.0.0.1", 8000, True)
    assert plain.names == {"127.0.0.1", "localhost", "::1"}


def test_options_win_over_variables():
    """What was typed is newer than what was set."""
    env = {"COMMONPLACE_SERVE_HOST": "0.0.0.0", "COMMONPLACE_SERVE_PORT": "9000"}

    assert (read_settings(env).host, read_settings(env).port) == ("0.0.0.0", 9000)
    assert read_settings(env, port=0, host=None).port == 0


def test_lists_are_joined():
    """Names from the environment and names that were typed all count."""
    made = read_settings({"COMMONPLACE_SERVE_ALLOW_HOSTS": "a, b,,"}, hosts=("c",), host="10.0.0.1")
    assert made.names == {"a", "b", "c", "10.0.0.1"}


@rows(
    "name, value",
    [
        ("PORT", "0x1f"),
        ("PORT", "65536"),
        ("BODY_BYTES", "-1"),
        ("KEY", "short"),
        ("PORT", "1" * 99),
        ("EVENT_DAYS", "never"),
        ("EVENT_DAYS", "36501"),
    ],
)
def test_a_wrong_variable_is_named(name, value):
    """The error says which variable and what it should be."""
    with pytest.raises(ConfigError, match=f"COMMONPLACE_SERVE_{name}"):
        read_settings({f"COMMONPLACE_SERVE_{name}": value})


def test_limits_come_from_the_environment():
    """A large import may need a larger body."""
    assert read_settings({"COMMONPLACE_SERVE_BODY_BYTES": "123"}).limits.body_bytes == 123


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "memory.example"])
def test_without_keys_others_are_not_served(host):
    """Whatever can be reached from elsewhere needs keys."""
    with pytest.raises(Forbidden, match="without keys"):
        read_settings({}, keys=False, host=host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_has_several_names(host):
    """All of them are this machine alone."""
    assert is_loopback(host)
    assert not read_settings({}, keys=False, host=host).keys


def test_what_happened_is_kept_for_thirty_days_unless_told():
    """A variable or an option says for how many days; 0 is for ever."""
    env = {"COMMONPLACE_SERVE_EVENT_DAYS": "0"}

    assert (
        read_settings({}).event_days,
        read_settings(env).event_days,
        read_settings(env, event_days=7).event_days,
    ) == (30, 0, 7)
    assert read_settings({}, event_days=0).event_days == 0
