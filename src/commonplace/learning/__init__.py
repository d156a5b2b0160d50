"""Autonomous memory: learn from sessions, consolidate, brief the next session, keep receipts."""

COMMANDS = {
    "brief": ("commands.brief:brief", "Write what a session should be shown before it starts."),
    "used": ("commands.used:used", "Say what a session was shown, and what of it was used."),
    "read": ("commands.read:read", "Read what a memory:// address leads to, whole."),
    "extract": ("commands.extract:extract", "Make records of what was learned in sessions."),
    "learn": ("commands.learn:learn", "Learn from sessions that are over; what a host runs at its start."),
    "consolidate": ("commands.consolidate:consolidate", "Put what was learned together: MEMORY.md, a summary, skills."),
    "memory": ("commands.memory:memory", "See, clear or rebuild what this project learned."),
}  #: name -> where it lives in this package, what it does
