"""The command `commonplace`: the mechanism that loads and runs the commands of the rooms."""

COMMANDS = {
    "init": ("project:init", "Make this repository or folder a project with its own memory."),
    "trust": ("trust:trust", "Trust a folder, list trusted folders, or take a yes back."),
    "sync": ("project:sync", "Sync the Markdown files and the records."),
    "status": ("upkeep:status", "Show what is stored where, and problems."),
    "doctor": ("upkeep:doctor", "Check the database, its index and the files; --fix repairs."),
    "backup": ("upkeep:backup", "Copy the store to a file."),
    "scrub": ("scrub:scrub_command", "Replace secrets stored before today's rules knew them."),
    "restore": ("upkeep:restore", "Restore a backup."),
    "migrate": ("transfer:migrate", "Carry a whole store to another database, SQLite or PostgreSQL."),
    "reembed": ("upkeep:reembed", "Embed everything anew with the configured embedder."),
    "export": ("transfer:export", "Write every record, with its past, as JSON Lines."),
    "import": ("transfer:import_", "Import records. Importing the same file twice changes nothing."),
    "enable": ("project:enable", "Switch a memory on."),
    "disable": ("project:disable", "Switch a memory off: nothing is saved or recalled."),
    "clear": ("project:clear", "Erase everything in a memory irreversibly."),
    "demo": ("demo:demo", "Show what Commonplace does, in a temporary folder."),
}  #: name -> where it lives in this package, what it does
