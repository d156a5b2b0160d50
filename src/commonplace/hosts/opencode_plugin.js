// Written by `commonplace connect opencode`; `commonplace disconnect opencode` removes it.
// Shows OpenCode's sessions what Commonplace remembers, and lets it take in what was said.
import { spawn } from "node:child_process"

const SCRIPT = "__COMMONPLACE__"
const LIMIT_MS = { "session-start": 10000, prompt: 5000, compact: 15000, stop: 15000, "session-end": 15000 }

// Run one hook and return its answer; whatever goes wrong, the session goes on without it.
function hook(event, said) {
  return new Promise((resolve) => {
    let out = ""
    const done = () => {
      try {
        resolve(JSON.parse(out))
      } catch {
        resolve({})
      }
    }
    try {
      const child = spawn(SCRIPT, ["hook", event, "--host", "opencode"], {
        stdio: ["pipe", "pipe", "ignore"],
        timeout: LIMIT_MS[event],
      })
      child.on("error", () => resolve({}))
      child.on("close", done)
      child.stdout.on("data", (data) => (out += data))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(said))
    } catch {
      resolve({})
    }
  })
}

export const Commonplace = async ({ directory, client }) => {
  const briefs = new Map() // by session: it stays the same, so that prompt caches hold
  const recalled = new Map() // by session: for the last prompt
  const said = (session, more) => ({ session_id: session, cwd: directory, ...more })

  const shown = async (event, data) => (await hook(event, data)).context || ""

  const brief = (session) => {
    if (!briefs.has(session)) briefs.set(session, shown("session-start", said(session, { source: "startup" })))
    return briefs.get(session)
  }

  // The end of a turn: the agent may be asked, once, to save what was settled.
  const stop = async (session) => {
    const { ask } = await hook("stop", said(session, {}))
    if (!ask) return
    const parts = [{ type: "text", text: ask, synthetic: true }]
    await client.session.prompt({ path: { id: session }, body: { parts } }).catch(() => {})
  }

  return {
    "chat.message": async (input, output) => {
      const prompt = (output.parts || [])
        .filter((part) => part.type === "text" && !part.synthetic)
        .map((part) => part.text)
        .join("\n")
      recalled.set(input.sessionID, shown("prompt", said(input.sessionID, { prompt })))
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (!input.sessionID) return
      for (const text of [await brief(input.sessionID), await recalled.get(input.sessionID)]) {
        if (text) output.system.push(text)
      }
    },
    "experimental.session.compacting": async (input) => {
      briefs.delete(input.sessionID)
      await hook("compact", said(input.sessionID, {}))
    },
    event: async ({ event }) => {
      if (event.type === "session.idle") await stop(event.properties.sessionID)
      if (event.type === "session.deleted") briefs.delete(event.properties.info?.id)
    },
    dispose: async () => {
      await Promise.all([...briefs.keys()].map((session) => hook("session-end", said(session, {}))))
    },
  }
}
