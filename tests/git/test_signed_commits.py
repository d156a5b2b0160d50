"""Commits that have to be signed: verified by Git, with real keys that the user knows."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from commonplace.model.records import Trust

USER, EXTERNAL = Trust.USER, Trust.EXTERNAL

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is missing: no key can be made")


def make_key(machine, name="id"):
    """A key of one's own; returns its public half."""
    path = machine.root / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path, "-C", ""], check=True)
    return path, (machine.root / f"{name}.pub").read_text().strip()


def sign_with(machine, path):
    """Have every commit signed with a key."""
    machine.configure(f"[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = {path}.pub\n[commit]\n\tgpgsign = true\n")


@pytest.fixture
def known(ada, bob):
    """Bob signs; Ada knows his key, and wants commits of Bob's to be signed."""
    path, public = make_key(bob)
    sign_with(bob, path)
    signers = ada.root / "signers"
    signers.write_text(f"bob@example.com {public}\n")
    ada.configure(f'[gpg "ssh"]\n\tallowedSignersFile = {signers}\n')
    ada.trust("bob@example.com", signed=True)
    return signers


def pull(ada, bob, text):
    """Bob commits and pushes; Ada pulls and syncs."""
    bob.commit((text.split()[-1], text), message=text)
    bob.git("push", "-q")
    ada.git("pull", "-q", "--ff-only")
    ada.sync()


@pytest.mark.usefixtures("known")
def test_a_signed_commit_is_the_users_word_and_an_unsigned_one_is_not(ada, bob):
    """What Bob has signed counts; what only has his address does not."""
    pull(ada, bob, "Bob says one")
    bob.git("config", "commit.gpgsign", "false")
    pull(ada, bob, "Bob says two")

    assert ada.live() == {"Bob says one": USER, "Bob says two": EXTERNAL}


def test_a_key_that_the_user_does_not_know_signs_nothing(ada, bob, known):
    """A good signature of nobody in particular is none."""
    known.write_text("")
    pull(ada, bob, "Bob says one")

    assert ada.live() == {"Bob says one": EXTERNAL}


@pytest.mark.usefixtures("known")
def test_somebody_elses_key_does_not_sign_for_a_trusted_author(ada, bob, known):
    """A key that the user knows for other purposes does not make its owner a trusted author."""
    path, public = make_key(bob, "mallory")
    sign_with(bob, path)
    known.write_text(known.read_text() + f"mallory@example.com {public}\n")
    pull(ada, bob, "Mallory says one")

    assert ada.live() == {"Mallory says one": EXTERNAL}


@pytest.mark.usefixtures("known")
def test_a_repository_does_not_say_who_may_sign(ada, bob):
    """Its own list of signers, and its own program, are not asked."""
    path, public = make_key(bob, "mallory")
    sign_with(bob, path)
    signers = ada.folder / "signers"
    signers.write_text(f"bob@example.com {public}\n")
    ada.git("config", "gpg.ssh.allowedSignersFile", signers)
    ada.git("config", "gpg.ssh.program", "true")
    signers.rename(ada.root / "planted")
    ada.git("config", "gpg.ssh.allowedSignersFile", ada.root / "planted")
    pull(ada, bob, "Mallory says one")

    assert ada.live() == {"Mallory says one": EXTERNAL}
