"""The command on PostgreSQL: named by an option, a variable or the settings, and everything works as on a file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import commonplace
from commonplace.ci.registry import open_registry
from commonplace.install import install_command
from commonplace.model.errors import StoreError
from commonplace.roles.dialect import load
from commonplace.roles.memory import role_memory
from stands import agree, scripts_of_the_user

pytestmark = pytest.mark.postgres
PASSWORD = "hunter2"  # what must never be seen


@pytest.fixture
def address(new_postgres):
    """The address of a new store, with a password in it that the server does not ask for."""
    given, schema = os.environ["COMMONPLACE_TEST_POSTGRES"], new_postgres().schema
    return f"{given.replace('postgres@', f'postgres:{PASSWORD}@')}{'&' if '?' in given else '?'}schema={schema}"


@pytest.fixture
def shared(outside, address):
    """The command in a project, on that store."""
    outside.env(COMMONPLACE_STORE=address)
    outside.ok("init")
    yield outside
    for path in outside.home.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()


@pytest.fixture
def pnpm(shared):
    """A record to work with."""
    return shared.add("Use pnpm, not npm, in this repository", "decisions", "--tag", "js")


def test_records_live_there_and_their_files_here(shared, pnpm):
    """Add, read, edit the file, recall, archive, forget: as on SQLite, and no database is made here."""
    with open(pnpm["path"], "a") as file:
        file.write("And yarn never.\n")
    assert "And yarn never." in shared.recall("pnpm")[0]
    assert shared.get(pnpm["id"])["version"] == 2
    shared.ok("record", "archive", pnpm["id"])
    assert shared.recall("pnpm") == []
    shared.ok("record", "delete", pnpm["id"], "--yes")
    assert not os.path.exists(pnpm["path"])
    assert not (shared.home / "commonplace.db").exists()


@pytest.mark.usefixtures("pnpm")
def test_status_and_doctor_know_it(shared):
    """What is stored, how large it is, and that all is well; the password is not part of any answer."""
    done = shared.ok("status", "--json")
    assert done.json["database"]["bytes"] > 0
    assert done.json["database"]["path"].startswith("postgresql://")
    assert shared.ok("doctor").lines[0] == "database, full-text index and rows: ok"
    assert PASSWORD not in done.out + done.err + shared.ok("status").out


def test_a_backup_brings_everything_back(shared, pnpm):
    """Backup, change, restore: rows and files are as they were."""
    shared.ok("backup", "copy.db")
    shared.ok("record", "update", pnpm["id"], "Use yarn")
    shared.ok("restore", "copy.db", "--yes")
    assert shared.get(pnpm["id"])["content"] == pnpm["content"]
    assert os.path.exists(pnpm["path"])
    assert shared.ok("doctor").code == 0


def test_an_export_and_an_import_pass(shared, pnpm):
    """What one store exported the other one takes in."""
    shared.ok("export", "out.jsonl")
    shared.ok("--store", "another.db", "import", "out.jsonl")
    assert shared.ok("--store", "another.db", "record", "get", pnpm["id"], "--json").json["content"] == pnpm["content"]


def test_the_option_is_for_one_command(cli, address):
    """``--store`` names the store of this command and of no later one."""
    cli.ok("--store", address, "record", "add", "Use pnpm", "--category", "decisions")
    assert cli.ok("--store", address, "recall", "pnpm").lines
    cli.env(COMMONPLACE_STORE="other.db")
    assert "there is no store 'other.db'" in cli("status").err
    cli.add("Deploy on Mondays", "procedures")
    assert cli.ok("status", "--json").json["database"]["path"] == os.path.abspath("other.db")


def test_the_settings_may_name_it(outside, address):
    """`store` in the user's settings is for every command, unless something nearer says otherwise."""
    scripts_of_the_user(outside.home, f'store: "{address}"')
    outside.ok("init")
    outside.add("Use pnpm")
    assert outside.ok("status", "--json").json["database"]["path"].startswith("postgresql://")
    assert not (outside.home / "commonplace.db").exists()


def test_a_program_opens_it(shared, address):
    """``commonplace.open`` takes the address as it takes a path."""
    with commonplace.open(address, user="ada") as memory:
        memory.remember("The sky is blue")
    with commonplace.open(address, user="ada") as memory:
        assert [hit.text for hit in memory.recall("sky").hits] == ["The sky is blue"]
    del shared


def test_a_role_may_live_there_if_it_is_allowed_to(shared, address):
    """`store_path` is the address; a role from elsewhere cannot send memories away unasked."""
    text = f'name: helper\nrole: Help.\nmodel: {{provider: test, name: t}}\nmemory:\n  store_path: "{address}"\n'
    Path("role.yaml").write_text(text)
    refused = shared("memory", "list", "role.yaml")
    assert (refused.code, "restrict_db_paths: false" in refused.err, PASSWORD in refused.err) == (5, True, False)
    Path("role.yaml").write_text(f"{text}security:\n  tools:\n    restrict_db_paths: false\n")
    role = load("role.yaml")
    with role_memory(role) as memory:
        assert memory.store.census() == []
    assert str(role.scope("/data")) == "namespace:postgres"


def test_pipelines_remember_there(shared):
    """The ledger of pipelines is in the same store as everything else."""
    with open_registry() as known:
        assert known.store.census() is not None
        assert type(known.store).__name__ == "PostgresStore"
    del shared


def test_two_machines_with_folders_of_the_same_path_do_not_disturb_each_other(shared, pnpm):
    """What one machine knows of its files says nothing of the other's: no record is taken for deleted."""
    elsewhere = Path(pnpm["path"])
    kept = elsewhere.read_bytes()
    shared.moves_to(shared.folder / "other home")
    elsewhere.unlink()  # the other machine has a folder of the same path, in which nothing is yet
    agree(Path.cwd())
    shared.ok("sync")
    assert shared.get(pnpm["id"])["state"] == "live"
    assert elsewhere.read_bytes() == kept
    shared.env(COMMONPLACE_HOME=shared.home)
    shared.ok("sync")
    assert shared.get(pnpm["id"])["version"] == 1


# What goes wrong


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (f"postgresql://ada:{PASSWORD}@127.0.0.1:1/memory", "cannot be opened"),
        (f"postgresql://ada:{PASSWORD}@[host/memory", "no address of a PostgreSQL database"),
        (f"postgresql://ada:{PASSWORD}@/memory?colour=red", "no address of a PostgreSQL database"),
    ],
)
def test_a_store_that_cannot_be_opened_is_one_sentence(cli, store, said):
    """Where it is and why, in one line, without the password."""
    done = cli("--store", store, "recall", "anything")
    assert (done.code in (2, 6), done.out, len(done.err.splitlines())) == (True, "", 1)
    assert said in done.err
    assert PASSWORD not in done.err


def test_a_newer_store_is_one_sentence(shared, new_postgres, address):
    """What a later Commonplace wrote is refused and left alone."""
    store = new_postgres()
    with store.using() as db:
        db.execute("update meta set value = '999' where key = 'schema'")
    done = shared("--store", address.replace(address.partition("schema=")[2], store.schema), "status")
    assert (done.code, "schema 999" in done.err, len(done.err.splitlines())) == (6, True, 1)


WITHOUT = "import sys; sys.modules['psycopg'] = None; from commonplace.cli.main import main; sys.exit(main())"


def test_without_the_extra_it_is_said_what_to_install(cli, address):
    """One sentence, with the command."""
    command = [sys.executable, "-c", WITHOUT, "--store", address, "status"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, len(done.stderr.splitlines())) == (6, 1)
    assert install_command("postgres") in done.stderr
    del cli


def test_an_error_of_the_store_names_no_password(address):
    """Neither the sentence nor what caused it."""
    with pytest.raises(StoreError) as caught:
        commonplace.open(address.replace("/postgres?", "/no_such_database?"))
    shown = f"{caught.value} {caught.value.__cause__!r}"
    assert "no_such_database" in shown
    assert PASSWORD not in shown


def test_what_is_forgotten_there_stays_out_and_is_erased_in_our_backups(shared, pnpm):
    """A backup of PostgreSQL is a file like any other; an export and a restore bring nothing back."""
    shared.ok("export", shared.folder / "out.jsonl")
    made = shared.ok("backup", "--json").json["path"]
    assert b"pnpm" in Path(made).read_bytes()
    assert shared.ok("forget", pnpm["id"], "--yes", "--json").json["backups"] == [
        {"path": made, "erased": 1, "trouble": None}
    ]
    assert b"pnpm" not in Path(made).read_bytes()
    assert "1 record not revived" in shared.ok("import", shared.folder / "out.jsonl").err
    assert shared.ok("restore", made, "--yes", "--json").json["records"] == 0
    assert "1 record not revived" in shared.ok("import", shared.folder / "out.jsonl").err
    assert shared.recall("pnpm") == []
