"""Pipeline memory: agents in YAML pipelines that remember between runs, each isolated from the others."""

COMMANDS = {
    "pipeline": ("command:pipeline", "Run pipelines whose agents remember; see what they learned."),
}  #: name -> where it lives in this package, what it does
