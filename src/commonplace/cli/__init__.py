"""The command `commonplace`: the mechanism that loads and runs the commands of the rooms."""

COMMANDS = {
    "init": ("project:init", "Make this repository or folder a project with a memory."),
    "sync": ("project:sync", "Bring the Markdown files and the records together."),
    "status": ("upkeep:status", "Say what is stored where, and whether it is well."),
    "doctor": ("upkeep:doctor", "Check the database, its index and the files; --fix mends."),
    "backup": ("upkeep:backup", "Copy the store to a file while others use it."),
    "restore": ("upkeep:restore", "Put a backup in the place of what is there."),
    "migrate": ("transfer:migrate", "Carry a whole store to another database, SQLite or PostgreSQL."),
    "reembed": ("upkeep:reembed", "Embed everything anew, with the embedder of the settings."),
    "export": ("transfer:export", "Write every record, with its past, as JSON Lines."),
    "import": ("transfer:import_", "Import records. Importing the same file twice changes nothing."),
    "enable": ("project:enable", "Switch a memory on."),
    "disable": ("project:disable", "Switch a memory off: nothing is kept in it, nothing recalled."),
    "clear": ("project:clear", "Erase everything in a memory, for good."),
    "demo": ("demo:demo", "See it at work, in a throw-away folder, in a few seconds."),
}  #: name -> where it lives in this package, what it does
