"""Which process something belongs to, so that others on the same machine see that it has died."""

from __future__ import annotations

import os
from functools import lru_cache

STARTED = 19  # the place of the start time in /proc/PID/stat, counted after the name of the program


@lru_cache(maxsize=1)
def _machine() -> str:
    """Name this machine since it was started, and the space in which its processes have their numbers; else ``""``."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read(8)
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino:x}"
    except (OSError, ValueError):
        return ""


def process_name(pid: int | None = None) -> str:
    """Name a process so that no other one ever has the name; without a number this one."""
    number = pid or os.getpid()
    return f"{_machine()}-{number}-{_started(number)}"


def is_dead(name: str) -> bool:
    """Return whether a process of this machine is known to be dead; of other machines nobody knows."""
    machine, _, rest = name.rpartition("-")[0].rpartition("-")
    number = name.rpartition("-")[0].rpartition("-")[2]
    if not rest or not machine or machine != _machine() or not number.isdecimal():
        return False
    return process_name(int(number)) != name


def _started(pid: int) -> str:
    """Return when a process was started, in ticks; ``""`` if there is none, or nobody knows."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[STARTED]  # a zombie is dead, and waits to be looked at by its parent
