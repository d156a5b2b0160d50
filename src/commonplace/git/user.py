"""The user's own settings of Git, read from their files: their addresses, and what verifies signatures for them.

Never a repository's: what it says about programs and people is what has to be judged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from commonplace.git.repository import Settings, read_config

INCLUDES = 5  # files that include files
_EMAILS = frozenset({("user", "email"), ("author", "email"), ("committer", "email")})
_VERIFIES = {
    ("gpg", "", "program"): "gpg.openpgp.program",
    ("gpg", "openpgp", "program"): "gpg.openpgp.program",
    ("gpg", "x509", "program"): "gpg.x509.program",
    ("gpg", "ssh", "program"): "gpg.ssh.program",
    ("gpg", "ssh", "allowedsignersfile"): "gpg.ssh.allowedSignersFile",
    ("gpg", "ssh", "revocationfile"): "gpg.ssh.revocationFile",
    ("gpg", "", "mintrustlevel"): "gpg.minTrustLevel",
}
#: What verifies a signature unless the user's settings name another program.
PROGRAMS = {"gpg.openpgp.program": "gpg", "gpg.x509.program": "gpgsm", "gpg.ssh.program": "ssh-keygen"}
_PATHS = frozenset({"gpg.ssh.allowedSignersFile", "gpg.ssh.revocationFile"})


class GitUser:
    """The user's global configuration, as it applies to one repository."""

    def __init__(self, env: Mapping[str, str], repository: str) -> None:
        self._home = env.get("HOME") or env.get("USERPROFILE") or ""
        self._repository = os.path.join(os.path.realpath(repository), "")
        self._env = env
        self.settings: Settings = [one for file in self._files() for one in self._read(file, INCLUDES)]

    @property
    def emails(self) -> frozenset[str]:
        """The addresses under which the user commits."""
        return frozenset(
            value.lower() for section, _, key, value in self.settings if (section, key) in _EMAILS and value
        )

    @property
    def verification(self) -> dict[str, str]:
        """The settings with which Git verifies signatures for this user."""
        found = dict(PROGRAMS)
        for section, name, key, value in self.settings:
            setting = _VERIFIES.get((section, name.lower(), key))
            if setting:
                found[setting] = self._path(value) if setting in _PATHS else value
        return found

    @property
    def keys(self) -> dict[str, str]:
        """The variables by which a program that verifies finds the user's keys."""
        return {name: self._env[name] for name in ("HOME", "USERPROFILE", "GNUPGHOME") if self._env.get(name)}

    def _files(self) -> list[str]:
        if "GIT_CONFIG_GLOBAL" in self._env:
            return [self._env["GIT_CONFIG_GLOBAL"]]
        base = self._env.get("XDG_CONFIG_HOME") or os.path.join(self._home, ".config")
        return [os.path.join(base, "git", "config"), os.path.join(self._home, ".gitconfig")] if self._home else []

    def _read(self, file: str, depth: int) -> Iterator[tuple[str, str, str, str]]:
        """The settings of a file, with those of the files that it includes here."""
        for section, name, key, value in read_config(file):
            yield section, name, key, value
            included = section == "include" or (section == "includeif" and self._applies(name, file))
            if included and key == "path" and depth:
                yield from self._read(self._path(value, beside=file), depth - 1)

    def _applies(self, condition: str, file: str) -> bool:
        """Whether a condition such as ``gitdir:~/work/`` names a folder around the repository."""
        kind, _, pattern = condition.partition(":")
        if kind not in ("gitdir", "gitdir/i") or not pattern.endswith("/"):
            return False
        folder = os.path.join(os.path.realpath(self._path(pattern, beside=file)), "")
        if kind == "gitdir/i":
            return self._repository.lower().startswith(folder.lower())
        return self._repository.startswith(folder)

    def _path(self, text: str, *, beside: str = "") -> str:
        if text.startswith("~/"):
            return os.path.join(self._home, text[2:])
        return os.path.join(os.path.dirname(beside), text) if beside else text
