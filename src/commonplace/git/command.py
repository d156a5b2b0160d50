"""Run Git without its traps: the one place where it is run.

A repository's own configuration can name programs that Git then runs: ``core.fsmonitor``, hooks, filters, pagers and
more.  So Git is run only in a folder that the user trusts, only with subcommands that read objects and touch neither
the working tree nor the index, with an environment of its own, and with every such setting overridden.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from commonplace.git.repository import Repository
from commonplace.model.errors import Forbidden, InvalidInput, StoreError
from commonplace.model.values import Value

GIT_SECONDS = 20.0
ALLOWED = frozenset({"rev-list", "diff-tree", "log"})  # they read objects, and nothing else
#: What no caller needs and a repository could make use of.
REFUSED = ("--ext-diff", "--textconv", "--output", "-p", "-u", "--patch", "--show-signature", "--alternate-refs")

#: Settings by which a repository could have a program run, a file read or an address called, and what they are here.
NEUTRAL: Mapping[str, str] = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "none",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.alternateRefsCommand": "false",
    "sequence.editor": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.orderFile": os.devnull,
    "interactive.diffFilter": "",
    "log.showSignature": "false",
    "i18n.logOutputEncoding": "UTF-8",
    "pager.rev-list": "false",
    "pager.diff-tree": "false",
    "pager.log": "false",
    "protocol.allow": "never",
    "protocol.ext.allow": "never",
    "protocol.file.allow": "never",
    "uploadpack.packObjectsHook": "",
    "submodule.recurse": "false",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.x509.program": "false",
    "gpg.ssh.program": "false",
    "gpg.ssh.defaultKeyCommand": "false",
    "gpg.ssh.allowedSignersFile": os.devnull,
    "gpg.ssh.revocationFile": os.devnull,
    "gpg.minTrustLevel": "undefined",
}

ENVIRONMENT: Mapping[str, str] = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",  # since Git 2.45, and in the repairs of earlier ones; the next line holds for all
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
}


class TrustedRepository(Value):
    """A repository in a folder that the user trusts; nothing else can be given to Git."""

    repository: Repository
    is_trusted: bool

    def _check(self) -> None:
        if not self.is_trusted:
            raise Forbidden(
                f"{self.repository.root!r} is not trusted, so Git is not run in it; see `commonplace trust`"
            )


class GitFailed(StoreError):
    """Git is missing, took too long, or could not answer."""


def run_git(
    trusted: TrustedRepository,
    arguments: Sequence[str],
    *,
    stdin: str = "",
    settings: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = GIT_SECONDS,
) -> str:
    """Run one subcommand that reads objects, and return its output; raises ``GitFailed``.

    ``settings`` and ``env`` are the user's own, such as the program that verifies signatures; never a repository's.
    """
    _check_arguments(arguments)
    repository = trusted.repository
    options = {**NEUTRAL, **(settings or {})}
    command = [
        *(find_program(repository.root), "--no-pager", "--no-replace-objects", "--no-optional-locks"),
        f"--git-dir={repository.own}",
        *(text for key, value in options.items() for text in ("-c", f"{key}={value}")),
        *arguments,
    ]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, subcommands from a list, settings overridden
            command, input=stdin.encode(), capture_output=True, timeout=seconds, check=False, cwd=repository.own,
            env={"PATH": os.environ.get("PATH", os.defpath), **ENVIRONMENT, **(env or {})},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"git cannot be run in {repository.root!r}: {error}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise GitFailed(f"git {arguments[0]} failed in {repository.root!r}: {reason}")
    return done.stdout.decode(errors="surrogateescape")


def find_program(root: str) -> str:
    """Return the path of Git: one of the absolute folders of PATH, and none in the repository; raises ``GitFailed``."""
    inside = os.path.join(os.path.realpath(root), "")
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in ("git", "git.exe") if os.name == "nt" else ("git",):
            path = os.path.join(folder, name)
            is_outside = os.path.isabs(folder) and not os.path.realpath(path).startswith(inside)
            if is_outside and os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    raise GitFailed("git was not found in the folders of PATH")


def _check_arguments(arguments: Sequence[str]) -> None:
    if not arguments or arguments[0] not in ALLOWED:
        raise InvalidInput(f"git {arguments[:1]} is not one of the subcommands that read objects only")
    refused = [one for one in arguments if one.startswith(REFUSED)]
    if refused:
        raise InvalidInput(f"git {arguments[0]} may not be run with {refused[0]}")
