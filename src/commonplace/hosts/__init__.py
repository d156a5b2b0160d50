"""Other people's agents: what their hooks say and want to hear, where their transcripts lie, how they are connected."""

COMMANDS = {
    "connect": ("connect_command:connect", "Connect a coding agent: its hooks and its MCP settings."),
    "disconnect": ("connect_command:disconnect", "Take that back, exactly."),
    "hook": ("hook_click:hook", "Answer a hook of a coding agent; what `connect` sets up."),
}  #: name -> where it lives in this package, what it does
