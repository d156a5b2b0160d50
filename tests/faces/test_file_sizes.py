"""Files that are looked at before they are read: huge ones, pipes and devices are refused with a sentence."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import contextmanager

import pytest

from commonplace.ci import dialect as pipelines
from commonplace.files import disk, user_files
from commonplace.intents import workflow_dialect as workflows
from commonplace.learning.model_prompts import prompt_files
from commonplace.model.errors import ConfigError, InvalidInput
from commonplace.roles import dialect as roles
from commonplace.roles import flow_dialect as flows

HUGE = 400 * 1024 * 1024
SOME = 32 * 1024 * 1024  # bytes of memory that a refusal may take


def sparse(path):
    """Make a file of 400 MB that takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.truncate(HUGE)
    return str(path)


def pipe(path):
    """Make a pipe into which nobody writes."""
    os.mkfifo(path)
    return str(path)


@contextmanager
def little_memory():
    """Fail if more than a little memory is taken."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < SOME
    finally:
        tracemalloc.stop()


def test_a_huge_record_file_is_named_and_the_rest_is_synced(cli):
    """It is not read, and it is left as it is."""
    folder = cli.folder / "work" / ".commonplace" / "decisions"
    huge = sparse(folder / "huge.md")
    (folder / "small.md").write_text("Owls hunt at night\n", encoding="utf-8")
    with little_memory():
        done = cli("sync")

    assert done.code == 1
    assert f"decisions/huge.md:1: cannot be read: it has {HUGE} bytes, and at most 1114128 are read" in done.err
    assert cli.recall("what do owls do?") == ["Owls hunt at night"]
    assert os.path.getsize(huge) == HUGE


def test_the_file_of_a_record_that_became_huge_is_not_written_over(cli):
    """Somebody put it there; the record itself goes on."""
    made = cli.add("Owls hunt at night")
    [file] = (cli.folder / "work" / ".commonplace" / "decisions").glob("*.md")
    sparse(file)
    with little_memory():
        cli("record", "update", made["id"], "--content", "Owls hunt by day")

    assert file.stat().st_size == HUGE


@pytest.mark.parametrize("name", ["home/config.yaml", "work/.commonplace/config.yaml"])
def test_huge_settings_are_refused(cli, name):
    """With the file, its size and the limit."""
    huge = sparse(cli.folder / name)
    with little_memory():
        done = cli("status")

    assert done.code != 0
    assert name.rpartition("/")[2] in done.err
    assert f"cannot be read: it has {HUGE} bytes, and at most 262144 are read" in done.err
    assert os.path.getsize(huge) == HUGE


def test_settings_that_are_a_pipe_are_not_waited_for(cli):
    """A process of its own, which would hang."""
    settings = cli.folder / "work" / ".commonplace" / "config.yaml"
    settings.unlink()
    pipe(settings)
    done = cli.start("status")

    assert done.code != 0
    assert "it is not a regular file" in done.err


def refused(read, path, limit, error=ConfigError):
    """Read a huge file, a pipe and a device: each is refused with a sentence."""
    for make, reason in ((sparse, f"it has {HUGE} bytes, and at most {limit} are read"), (pipe, "not a regular file")):
        path.unlink(missing_ok=True)
        make(path)
        with little_memory(), pytest.raises(error, match=reason):
            read()
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(error):
        read()


@pytest.mark.parametrize("load", [roles.load, flows.load, pipelines.load, workflows.load])
def test_a_role_or_pipeline_of_that_size_is_refused(tmp_path, load):
    """All of them have one reader."""
    refused(lambda: load(str(tmp_path / "x.yaml")), tmp_path / "x.yaml", 262_144)


def test_variables_beside_a_role_are_refused(tmp_path):
    """The .env that lies there came with the role."""
    refused(lambda: roles.read_dotenv(str(tmp_path / ".env")), tmp_path / ".env", 262_144)


def test_a_prompt_of_that_size_is_refused(tmp_path):
    """It is not cut off in the middle of a rule, either."""
    (tmp_path / "prompts").mkdir()
    refused(lambda: prompt_files(str(tmp_path))("read_path.md"), tmp_path / "prompts" / "read_path.md", 262_144)


@pytest.mark.parametrize(("make", "reason"), [(sparse, f"it has {HUGE} bytes"), (pipe, "not a regular file")])
def test_guidance_of_that_size_is_not_imported(cli, make, reason):
    """A clone may have it."""
    make(cli.folder / "work" / "AGENTS.md")
    with little_memory():
        done = cli("import", "--from", "agents-md", ".")
    assert done.code == 2
    assert "AGENTS.md' cannot be read: it" in done.err
    assert reason in done.err


def test_an_export_is_read_line_by_line_up_to_a_length(cli, monkeypatch):
    """A file of one line that does not end is refused at that line; 64 MiB in earnest."""
    monkeypatch.setattr(user_files, "LINE_BYTES", 1000)
    huge = sparse(cli.folder / "work" / "export.jsonl")
    with little_memory():
        done = cli("import", huge)
    assert done.code == 2
    assert "export.jsonl:1: longer than 1000 bytes" in done.err


def test_an_export_may_come_through_a_pipe_that_the_shell_has_opened(cli):
    """As in `commonplace import <(zcat export.gz)`; a pipe that nobody writes to is refused."""
    cli.add("Owls hunt at night")
    cli.ok("export", "all.jsonl")
    reading, writing = os.pipe()
    with open("all.jsonl", "rb") as file:
        os.write(writing, file.read())
    os.close(writing)
    assert "1 duplicate" in cli.ok("import", f"/dev/fd/{reading}").out
    os.close(reading)
    assert "it is not a regular file" in cli("import", pipe(cli.folder / "work" / "named")).err


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path):
    """Its size was looked at before."""
    path = tmp_path / "log"
    path.write_bytes(b"x" * 10)
    with disk.open_file(str(path), limit=10) as file:
        with open(path, "ab") as more:
            more.write(b"x" * 10)
        with pytest.raises(OSError, match="more than 10 bytes"):
            disk.read_rest(file, limit=10)


def test_what_has_no_size_has_the_same_limit():
    """Where all of a text is needed at once."""
    reading, writing = os.pipe()
    os.write(writing, b"x" * 11)
    os.close(writing)
    with pytest.raises(InvalidInput, match="more than 10 bytes"):
        user_files.read_text(f"/dev/fd/{reading}", limit=10)
    os.close(reading)
