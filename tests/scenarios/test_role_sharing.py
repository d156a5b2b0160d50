"""Agents with one memory, through the real command: in a flow, and by delegation, in one process and in two."""

from __future__ import annotations

import socket
import urllib.request

import pytest

from desk import MemoryAccess, model
from loopback import LoopbackServer, calls, says

FLOW = """\
apiVersion: initrunner/v1
kind: Flow
metadata:
  name: newsroom
spec:
  shared_memory:
    enabled: true
    max_memories: 500
  agents:
    researcher:
      role: roles/researcher.yaml
      sink:
        type: delegate
        target: writer
    writer:
      role: roles/writer.yaml
"""
ROLE = """\
apiVersion: initrunner/v1
kind: Agent
metadata:
  name: NAME
spec:
  role: You are the NAME.
  model:
    provider: openai
    name: NAME
"""
DELEGATING = ROLE.replace("NAME", "coordinator") + """\
  tools:
    - type: delegate
      agents:
        - name: researcher
          role_file: ./roles/researcher.yaml
          description: "Researches topics"
        - name: writer
          role_file: ./roles/writer.yaml
          description: "Writes content"
      mode: inline
      shared_memory:
        store_path: ./shared-memory.db
        max_memories: 500
"""  # fmt: skip


def newsroom(request):
    """The researcher remembers what it is asked and hands on; the writer looks it up and writes."""
    last = request.body["messages"][-1]
    if request.body["model"] == "researcher":
        return says("Write it up.") if last["role"] == "tool" else calls(("remember", {"content": request.prompt}))
    return says(last["content"]) if last["role"] == "tool" else calls(("recall", {"query": "Where is tea grown?"}))


def seated(folder, server):
    """A desk with both roles."""
    desk = MemoryAccess(folder, server)
    (folder / "roles").mkdir()
    for name in ("researcher", "writer"):
        desk.writes(ROLE.replace("NAME", name), f"roles/{name}.yaml")
    return desk


@pytest.mark.slow
def test_in_a_flow_one_agents_remember_is_anothers_recall(tmp_path):
    """Within one run, and for whoever looks at the store afterwards, by the flow's own file."""
    with LoopbackServer(answers=newsroom, dimensions=1536) as server:
        desk = seated(tmp_path, server)
        desk.writes(FLOW, "flow.yaml")
        done = desk("run", "flow.yaml", "-p", "Tea is grown in Assam")
        assert done.stdout.splitlines()[1] == "Tea is grown in Assam"
        assert "· researcher: remember: Remembered (id=" in done.stderr
        assert "· writer: recall: 1 memory" in done.stderr
        assert [chat.prompt for chat in server.chats if chat.body["model"] == "writer"] == ["Write it up."] * 2
        assert (tmp_path / "home" / "memory" / "newsroom-shared.db").exists()
        assert "[semantic:general]" in desk("memory", "list", "flow.yaml").stdout


@pytest.mark.slow
def test_a_flow_waits_for_the_triggers_of_its_agents(tmp_path):
    """A call for one agent sets off those after it; each leaves its episode in the store of all."""
    with LoopbackServer(answers=newsroom, dimensions=1536) as server, socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        one.close()
        desk = seated(tmp_path, server)
        triggered = f"  triggers:\n    - {{type: webhook, port: {port}}}\n"
        desk.writes(ROLE.replace("NAME", "researcher") + triggered, "roles/researcher.yaml")
        desk.writes(FLOW, "flow.yaml")
        with desk.starts("run", "flow.yaml", "--daemon") as daemon:
            line = daemon.stderr.readline()
            assert line == f"researcher: webhook POST http://127.0.0.1:{port}/webhook (without a secret)\n"
            call = urllib.request.Request(f"http://127.0.0.1:{port}/webhook", data=b"Tea is grown in Assam")
            with urllib.request.urlopen(call, timeout=10) as answer:
                assert answer.status == 202
            assert daemon.stdout.readline().startswith("[Type: semantic | Category: general | Score: ")
            assert daemon.stdout.readline() == "Tea is grown in Assam\n"
            daemon.terminate()
            assert daemon.wait(60) == 0
        shown = desk("memory", "list", "flow.yaml", "--type", "episodic").stdout
    assert "Daemon trigger (webhook): Write it up." in shown
    assert "Daemon trigger (webhook): [Type: semantic" in shown


@pytest.mark.slow
def test_by_delegation_one_agents_remember_is_anothers_recall_in_another_process(tmp_path):
    """Each run is a process of its own; the one that asks has no part in what they share."""
    with LoopbackServer(answers=model, dimensions=1536) as server:
        desk = seated(tmp_path, server)
        desk.writes(DELEGATING)
        told = desk("run", "role.yaml", "-p", "ask researcher: fact: Tea is grown in Assam")
        assert "· researcher: remember: Remembered (id=" in told.stderr
        assert "· delegate_to_researcher: Done: Remembered (id=" in told.stderr
        done = desk("run", "role.yaml", "-p", "ask writer: find: tea")
        assert done.stdout == "Done: Done: Tea is grown in Assam\n"
        assert (tmp_path / "home" / "shared-memory.db").exists()
        tools = [tool["function"]["name"] for chat in server.chats[:1] for tool in chat.body["tools"]]
        assert tools == ["delegate_to_researcher", "delegate_to_writer"]
