"""Memory over the Model Context Protocol, on stdio or over HTTP."""

COMMANDS = {
    "mcp": ("command:mcp", "Serve memory to an agent over the Model Context Protocol.", "Agents"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)
