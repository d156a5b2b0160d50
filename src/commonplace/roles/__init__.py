"""Role memory: agents described by a role.yaml that remember facts, episodes and procedures."""

COMMANDS = {
    "run": ("commands.run:run", "Run an agent with a memory: talk to it, ask it once, or let it work."),
}  #: name -> where it lives in this package, what it does
