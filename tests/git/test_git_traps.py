"""A repository full of traps: each names a program that leaves a canary, and none of them ever runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from commonplace.config.paths import find
from commonplace.config.trust_registry import trust_folder
from commonplace.git import command
from commonplace.git.command import GitFailed, TrustedRepository, run_git
from commonplace.git.repository import Repository, repository_at
from commonplace.model.errors import Forbidden, InvalidInput
from stands import rows

#: Settings of a repository that name a program; ``{canary}`` is a script that leaves its name behind.
SETTINGS = {
    "core.fsmonitor": "{canary} fsmonitor",
    "core.hooksPath": "{hooks}",
    "core.pager": "{canary} pager",
    "core.editor": "{canary} editor",
    "core.askPass": "{canary}",
    "core.sshCommand": "{canary} ssh",
    "core.gitProxy": "{canary}",
    "core.alternateRefsCommand": "{canary} refs",
    "core.worktree": "{elsewhere}",
    "sequence.editor": "{canary} sequence",
    "pager.log": "{canary} pager.log",
    "pager.rev-list": "{canary} pager.rev-list",
    "pager.diff-tree": "{canary} pager.diff-tree",
    "pager.status": "{canary} pager.status",
    "interactive.diffFilter": "{canary} diffFilter",
    "diff.external": "{canary} diff",
    "diff.x.command": "{canary} diff.x",
    "diff.x.textconv": "{canary} textconv",
    "filter.x.clean": "{canary} clean",
    "filter.x.smudge": "{canary} smudge",
    "filter.x.process": "{canary} process",
    "merge.x.driver": "{canary} merge",
    "gpg.program": "{canary}",
    "gpg.openpgp.program": "{canary}",
    "gpg.ssh.program": "{canary}",
    "gpg.x509.program": "{canary}",
    "gpg.ssh.defaultKeyCommand": "{canary} key",
    "log.showSignature": "true",
    "credential.helper": "!{canary} credential",
    "alias.rev-list": "!{canary} alias",
    "alias.diff-tree": "!{canary} alias",
    "alias.log": "!{canary} alias",
    "alias.status": "!{canary} alias",
    "submodule.part.update": "!{canary} submodule",
    "submodule.part.active": "true",
    "protocol.ext.allow": "always",
    "protocol.file.allow": "always",
    "uploadpack.packObjectsHook": "{canary} pack",
    "remote.origin.uploadpack": "{canary} uploadpack",
    "remote.origin.receivepack": "{canary} receivepack",
    "remote.origin.url": "ext::{canary} ext",
    "remote.origin.promisor": "true",
    "remote.origin.partialclonefilter": "tree:0",
    "extensions.partialClone": "origin",
    "include.path": "{included}",
    "includeIf.gitdir:/.path": "{included}",
    "init.templateDir": "{hooks}",
    "maintenance.auto": "true",
    "gc.auto": "1",
}
HOOKS = (
    "post-index-change", "post-checkout", "post-merge", "post-commit", "pre-commit", "reference-transaction",
    "fsmonitor-watchman", "pre-auto-gc", "post-rewrite", "prepare-commit-msg", "sendemail-validate",
)  # fmt: skip
ENVIRONMENT = {
    "GIT_DIR": "{elsewhere}", "GIT_WORK_TREE": "{elsewhere}", "GIT_PAGER": "{canary} GIT_PAGER",
    "GIT_EDITOR": "{canary} GIT_EDITOR", "GIT_SSH_COMMAND": "{canary} GIT_SSH", "GIT_ASKPASS": "{canary}",
    "GIT_EXTERNAL_DIFF": "{canary} GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND": "{canary}", "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "{canary} counted",
    "GIT_CONFIG_KEY_1": "log.showSignature", "GIT_CONFIG_VALUE_1": "true",
    "GIT_CONFIG_PARAMETERS": "'core.pager'='{canary} parameters'", "GIT_EXEC_PATH": "{programs}",
    "GIT_TEMPLATE_DIR": "{hooks}", "GIT_TRACE": "{traces}/trace",
}  # fmt: skip


class Traps:
    """A repository with every trap set, and what shows that one was sprung."""

    def __init__(self, machine, root):
        self.machine, self.root = machine, root
        self.caught = root / "caught"
        self.canary = self.script(root / "canary", "canary")
        self.names = {"canary": self.canary, "caught": self.caught, "traces": root}
        self.names["hooks"] = root / "hooks"
        self.names["programs"] = root / "programs"
        self.names["included"], self.names["elsewhere"] = root / "included", root / "elsewhere"

    def script(self, path, name):
        """A program that leaves its name behind."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho {name} "$@" >> "{self.caught}"\nexit 1\n')
        path.chmod(0o755)
        return path

    def set(self, settings=SETTINGS):
        """Set the traps in the repository's configuration, its hooks, attributes and modules."""
        folder = self.machine.folder
        for hook in HOOKS:
            self.script(folder / ".git" / "hooks" / hook, hook)
            self.script(self.names["hooks"] / hook, f"hooksPath/{hook}")
        for program in ("git-rev-list", "git-diff-tree", "git-upload-pack", "git"):
            self.script(self.names["programs"] / program, program)
            self.script(folder / program, f"folder/{program}")
        self.names["included"].write_text(f"[core]\n\tfsmonitor = {self.canary} included\n")
        self.names["elsewhere"].mkdir()
        (folder / ".gitmodules").write_text('[submodule "part"]\n\tpath = part\n\turl = ./part\n\tupdate = !sh\n')
        (folder / ".git" / "info" / "attributes").write_text("* filter=x diff=x merge=x\n")
        (folder / ".git" / "objects" / "info" / "alternates").write_text(f"{self.names['elsewhere']}\n")
        self.machine.git("config", "core.hooksPath", "/dev/null")
        (folder / ".gitattributes").write_text("* filter=x diff=x merge=x ident\n")
        bare = folder / "nested"
        self.machine.git("init", "-q", "--bare", bare)
        (bare / "config").write_text(f"[core]\n\tbare = true\n\tfsmonitor = {self.canary} nested\n")
        for key, value in settings.items():
            self.machine.git("config", "--add", key, value.format(**self.names))

    @property
    def environment(self):
        """What a caller's environment may say."""
        return {name: value.format(**self.names) for name, value in ENVIRONMENT.items()}

    @property
    def sprung(self):
        """The names of the programs that ran."""
        return self.caught.read_text().splitlines() if self.caught.exists() else []


@pytest.fixture
def traps(ada, bob, tmp_path):
    """Ada's clone with somebody else's commits in it and every trap set."""
    ada.commit(("pnpm", "Use pnpm, not npm"))
    bob.commit(("yarn", "Use yarn"))
    bob.git("push", "-q", "-f", "origin", "HEAD:refs/heads/pr")
    ada.git("fetch", "-q")
    ada.git("merge", "-q", "--no-edit", "origin/pr")
    made = Traps(ada, tmp_path / "traps")
    made.set()
    return made


COMMANDS = [
    ["init"], ["sync"], ["recall", "which package manager?"], ["brief"], ["status"], ["doctor"], ["learn"],
    ["record", "list"], ["record", "add", "We test first", "--category", "principles"],
    ["trust", "--yes", "--signed", "--author", "bob@example.com"], ["sync"],
]  # fmt: skip
EVENTS = ["session-start", "prompt", "turn-end", "session-end"]


def test_no_command_springs_a_trap(traps):
    """Whatever is run in the repository, with whatever in the environment: no program that it names runs."""
    where = {**traps.environment, **traps.machine.env}
    at = {"cwd": traps.machine.folder, "env": where, "capture_output": True, "text": True}
    started = "import sys; from commonplace.cli.main import run; sys.exit(run(sys.argv[1:]))"
    codes = {}
    for arguments in COMMANDS:
        done = subprocess.run([sys.executable, "-c", started, *arguments], check=False, **at)
        codes[" ".join(arguments)] = done.returncode
        assert "Traceback" not in done.stderr
    for event in EVENTS:
        command = [sys.executable, "-c", started, "hook", event, "--host", "claude-code"]
        payload = f'{{"session_id": "s", "cwd": "{traps.machine.folder}", "prompt": "which package manager?"}}'
        subprocess.run(command, input=payload, check=False, **at)
    assert codes["sync"] == 0
    assert traps.sprung == []


def test_git_is_not_run_at_all_for_a_stranger(traps, tmp_path):
    """In a folder that nobody trusts even a Git of one's own is left alone, by commands and by hooks."""
    program = traps.script(tmp_path / "bin" / "git", "git")
    env = {**traps.machine.env, "COMMONPLACE_HOME": str(tmp_path / "fresh"), "PATH": str(program.parent)}
    at = {"cwd": traps.machine.folder, "env": env, "capture_output": True, "text": True}
    started = "import sys; from commonplace.cli.main import run; sys.exit(run(sys.argv[1:]))"
    for arguments in (["sync"], ["recall", "which package manager?"], ["brief"], ["status"], ["doctor"], ["learn"]):
        subprocess.run([sys.executable, "-c", started, *arguments], check=False, **at)
    for event in EVENTS:
        payload = f'{{"session_id": "s", "cwd": "{traps.machine.folder}", "prompt": "which package manager?"}}'
        command = [sys.executable, "-c", started, "hook", event, "--host", "claude-code"]
        subprocess.run(command, input=payload, check=False, **at)
    assert traps.sprung == []

    with_program = {**traps.machine.env, "COMMONPLACE_HOME": str(tmp_path / "trusted"), "PATH": str(program.parent)}
    trust_folder(find(str(traps.machine.folder)), with_program["COMMONPLACE_HOME"], "github.com/acme/shop")
    subprocess.run([sys.executable, "-c", started, "sync"], check=False, **at | {"env": with_program})
    assert any(line.startswith("git ") for line in traps.sprung), "this is what would have been seen"


def test_reading_the_history_springs_no_trap(traps, monkeypatch):
    """Git itself is run here, for the files of two people, and answers."""
    for name, value in traps.environment.items():
        monkeypatch.setenv(name, value)
    traps.machine.sync()

    assert {trust.name for trust in traps.machine.live().values()} == {"USER", "EXTERNAL"}
    assert traps.sprung == []


@pytest.mark.parametrize("look", [["--format=%G?"], ["--format=%H"]], ids=["asked for", "log.showSignature"])
def test_without_the_overrides_a_trap_springs(traps, monkeypatch, look):
    """The tests above can fail: a signature is verified by the repository's program, unless that is overridden."""
    head, _, message = traps.machine.git("cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"
    signed = subprocess.run(
        ["git", "-C", traps.machine.folder, "hash-object", "-t", "commit", "-w", "--stdin"], check=True,
        input=f"{head}\n{signature}\n\n{message}\n", capture_output=True, text=True, env=traps.machine.env,
    ).stdout.strip()  # fmt: skip
    trusted = TrustedRepository(repository=repository_at(str(traps.machine.folder)), is_trusted=True)
    run_git(trusted, ["log", "--no-walk", *look, signed])
    assert traps.sprung == []

    monkeypatch.setattr(command, "NEUTRAL", {})
    run_git(trusted, ["log", "--no-walk", *look, signed])
    assert traps.sprung, "the trap works"


def test_a_missing_object_is_not_fetched(traps, monkeypatch):
    """A promisor remote would be asked for it, by a program that the repository names."""
    trusted = TrustedRepository(repository=repository_at(str(traps.machine.folder)), is_trusted=True)
    lost = traps.machine.git("rev-parse", "HEAD~1")
    objects = traps.machine.folder / ".git" / "objects"
    (objects / lost[:2] / lost[2:]).unlink()
    with pytest.raises(GitFailed):
        run_git(trusted, ["rev-list", "HEAD"])
    assert traps.sprung == []

    traps.machine.git("config", "--replace-all", "remote.origin.url", str(traps.names["elsewhere"]))
    allowed = {
        name: value
        for name, value in command.ENVIRONMENT.items()
        if name not in {"GIT_ALLOW_PROTOCOL", "GIT_NO_LAZY_FETCH"}
    }
    monkeypatch.setattr(command, "ENVIRONMENT", allowed)
    monkeypatch.setattr(command, "NEUTRAL", {})
    with pytest.raises(GitFailed):
        run_git(trusted, ["rev-list", "HEAD"])
    assert traps.sprung, "the trap works"


def test_git_is_not_run_in_a_folder_that_is_not_trusted(ada):
    """There is nothing to pass to Git but a repository that the user trusts."""
    with pytest.raises(Forbidden, match="is not trusted"):
        TrustedRepository(repository=repository_at(str(ada.folder)), is_trusted=False)


@rows(
    "arguments",
    [
        ["status"],
        ["log", "--show-signature"],
        ["checkout", "main"],
        ["diff"],
        [],
        ["rev-list", "--output=x"],
        ["diff-tree", "-p"],
    ],
)
def test_only_what_reads_objects_is_run(arguments):
    """No subcommand that touches the working tree or the index, and no option that runs or writes anything."""
    repository = Repository(root="/nowhere", own="/nowhere/.git", common="/nowhere/.git", is_own=True)
    with pytest.raises(InvalidInput):
        run_git(TrustedRepository(repository=repository, is_trusted=True), arguments)


def test_a_program_of_the_folder_is_not_git(ada, monkeypatch):
    """PATH may name the folder, or no folder at all: the program there is the repository's."""
    planted = ada.folder / "git"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f".{os.pathsep}{ada.folder}")
    with pytest.raises(GitFailed, match="was not found"):
        command.find_program(str(ada.folder))
