"""Memory over the Model Context Protocol: one surface, spoken on standard input and output, or over HTTP."""
