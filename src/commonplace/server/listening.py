"""Where a server listens: a port, or a Unix socket that only its owner may open."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import Any

from commonplace.files.disk import folder_lock
from commonplace.model.errors import StoreError
from commonplace.server.settings import ServerSettings

BACKLOG = 256  # connections that wait to be accepted
SEND_BYTES = 262_144  # that the system stores for one client
SOCKET_MODE = 0o600
UNIX = "unix://"  # how the address of a socket begins


def bind(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens at the address, or raise an error that names it."""
    if settings.socket is not None:
        return _bind_path(os.path.abspath(settings.socket))
    try:
        [(family, kind, protocol, _, place), *_] = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        taken = socket.socket(family, kind, protocol)
        # Accepted sockets inherit it: without it an answer in two pieces waits 40 ms for the first acknowledgement.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return _listen(taken, place)
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(f"cannot serve at {settings.host}:{settings.port}: {why}") from error


def url_of(listening: socket.socket) -> str:
    """Return the URL of the server."""
    name = listening.getsockname()
    if isinstance(name, str):
        return f"{UNIX}{name}"
    host, port = name[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class SocketFile:
    """The file of a Unix socket, to be removed at the end unless another server has replaced it; none for a port."""

    def __init__(self, listening: socket.socket) -> None:
        name = listening.getsockname()
        self._path = name if isinstance(name, str) else None
        self._inode = os.lstat(name).st_ino if isinstance(name, str) else 0

    def remove(self) -> None:
        """Remove it, if it is still there."""
        with suppress(FileNotFoundError):
            if self._path is not None and os.lstat(self._path).st_ino == self._inode:
                os.unlink(self._path)


def _listen(taken: socket.socket, place: Any) -> socket.socket:
    try:
        # The system would store megabytes for a client that does not read before we notice.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        taken.bind(place)
        if isinstance(place, str):  # nobody can connect before it listens
            os.chmod(place, SOCKET_MODE)
        taken.listen(BACKLOG)
    except OSError:
        taken.close()
        raise
    return taken


def _bind_path(path: str) -> socket.socket:
    """Listen at a path; the file that a dead server has left there is removed, and that of a live one is not."""
    try:
        with folder_lock(os.path.dirname(path)):  # two that start at once would each take the other for dead
            _remove_dead(path)
            return _listen(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), path)
    except OSError as error:  # a path of more than some hundred letters has no number
        raise StoreError(f"cannot serve at {UNIX}{path}: {error.strerror or error}") from error


def _remove_dead(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise StoreError(f"cannot serve at {UNIX}{path}: the file that is there is no socket; choose another path")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)  # a live server whose backlog is full is a live one
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:
            pass
    raise StoreError(f"cannot serve at {UNIX}{path}: another server listens there")
