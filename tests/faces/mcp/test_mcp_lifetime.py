"""Servers come and go: with their parent, beside each other, and without leaving anything behind."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("commonplace"))
PARENT = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
print(server.pid, flush=True)
time.sleep(60)
"""
EACH = 12


def lives(pid):
    """Whether there is such a process that is not merely waiting to be buried."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def is_gone(pid, seconds=8):
    """Wait until a process is gone."""
    until = time.monotonic() + seconds
    while lives(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not lives(pid)


def remember(number, who):
    fact = {"content": f"Server {who} keeps fact number {number}", "category": "decisions"}
    params = {"name": "remember", "arguments": fact}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_a_server_ends_with_its_input(raw):
    """A host that closes its end is enough."""
    assert raw.ask("ping")["result"] == {}
    assert raw.end() == ([], 0)


def test_a_server_ends_when_its_parent_is_killed_though_the_pipe_stays_open(cli):
    """Somebody else may still hold the other end of its input: it looks for its parent, and goes."""
    assert cli
    reads, writes = os.pipe()
    command = [sys.executable, "-c", PARENT, COMMAND, "mcp"]
    with subprocess.Popen(command, stdin=reads, stdout=subprocess.PIPE, text=True) as parent:
        os.close(reads)
        server = int(parent.stdout.readline())
        os.write(writes, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        time.sleep(0.5)
        assert lives(server)
        parent.kill()
        parent.wait()
        assert is_gone(server)
    os.close(writes)


def test_a_server_ends_when_nobody_reads_its_answers(raws):
    """A host that is gone in the middle of an answer leaves no process behind."""
    server = raws()
    server.process.stdout.close()
    server.lines.close()
    server.say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert server.process.wait(10) == 0


def test_a_server_ends_well_when_a_socket_is_closed_before_its_answer_was_read(cli):
    """Hosts that start it with sockets for pipes reset them when they go; that is an end like any other."""
    assert cli
    ours, theirs = socket.socketpair()
    with subprocess.Popen([COMMAND, "mcp"], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as server:
        theirs.close()
        ours.sendall(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        assert select.select([ours], [], [], 20)[0]  # the answer is there, and is not read
        ours.close()
        assert (server.stderr.read(), server.wait(10)) == (b"", 0)


def test_a_server_whose_folder_is_gone_says_so(raws, tmp_path):
    """Call by call, in words that a person can act on."""
    (tmp_path / "gone").mkdir()
    server = raws(cwd=tmp_path / "gone")
    assert server.ask("ping")["result"] == {}
    (tmp_path / "gone").rmdir()
    said = server.ask("tools/call", name="recall", arguments={"query": "x"})["result"]
    assert "the folder that this server was started in is gone" in said["content"][0]["text"]
    assert server.ask("resources/list")["error"]["code"] == -32603


def test_a_server_can_be_stopped(raw):
    """The signal that hosts send to what does not end by itself ends it."""
    assert raw.ask("ping")["result"] == {}
    raw.process.send_signal(signal.SIGTERM)
    assert raw.process.wait(10) == -signal.SIGTERM


def test_two_servers_write_to_one_store_at_once(raws, cli):
    """Both get every answer, and every write of both is there."""
    servers = [raws(), raws()]
    for number in range(EACH):
        for who, server in enumerate(servers):
            server.say(remember(number, who))
    for server in servers:
        answers = [server.hear() for _ in range(EACH)]
        assert [answer["id"] for answer in answers] == list(range(EACH))
        assert not any(answer["result"]["isError"] for answer in answers)
    kept = cli.ok("record", "list", "--limit", "100", "--json").json["records"]
    wanted = {f"Server {who} keeps fact number {number}" for who in (0, 1) for number in range(EACH)}
    assert {record["content"] for record in kept} == wanted
    assert cli.ok("doctor").code == 0


def test_of_two_servers_that_change_one_record_one_is_first(raws):
    """Of two updates of the same version exactly one is made; the other hears of it."""
    servers = [raws(), raws()]
    saved = servers[0].ask("tools/call", **remember(0, "one")["params"])["result"]["content"][0]["text"]
    made = saved.removeprefix("Saved ").partition(" ")[0]
    change = {"name": "update", "arguments": {"id": made, "content": "Use yarn", "expect_version": 1}}
    for who, server in enumerate(servers):
        change["arguments"]["content"] = f"Use yarn {who}"
        server.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": change})
    failed = [server.hear()["result"]["isError"] for server in servers]
    assert sorted(failed) == [False, True]


def test_what_one_server_keeps_another_recalls(raws):
    """Two hosts share one memory without a restart."""
    one, other = raws(), raws()
    assert not one.ask("tools/call", **remember(1, "one")["params"])["result"]["isError"]
    found = other.ask("tools/call", name="recall", arguments={"query": "which fact does the server keep?"})["result"]
    assert "Server one keeps fact number 1" in found["content"][0]["text"]
