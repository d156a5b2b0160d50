"""The command `commonplace`: the mechanism that loads and runs the commands of the rooms."""

COMMANDS = {
    "init": ("project:init", "Make this repository or folder a project with its own memory.", "Project"),
    "trust": ("trust:trust", "Trust a folder, list trusted folders, or take a yes back.", "Project"),
    "sync": ("project:sync", "Sync the Markdown files and the records.", "Project"),
    "status": ("upkeep:status", "Show what is stored where, and problems.", "Project"),
    "doctor": ("upkeep:doctor", "Check the database, its index and the files; --fix repairs.", "Store"),
    "backup": ("upkeep:backup", "Copy the store to a file.", "Store"),
    "scrub": ("scrub:scrub_command", "Replace secrets stored before today's rules knew them.", "Store"),
    "restore-backup": ("upkeep:restore_backup", "Restore a backup.", "Store"),
    "restore": ("upkeep:restore_backup", "Earlier name of `restore-backup`.", ""),
    "migrate": ("transfer:migrate", "Carry a whole store to another database, SQLite or PostgreSQL.", "Store"),
    "reembed": ("upkeep:reembed", "Embed everything anew with the configured embedder.", "Store"),
    "export": ("transfer:export", "Write every record, with its past, as JSON Lines.", "Store"),
    "import": ("transfer:import_", "Import records. Importing the same file twice changes nothing.", "Store"),
    "config": ("config:config", "Read and change settings.", "Project"),
    "enable": ("project:enable", "Switch a memory on.", "Project"),
    "disable": ("project:disable", "Switch a memory off: nothing is saved or recalled.", "Project"),
    "clear": ("project:clear", "Erase everything in a memory irreversibly.", "Project"),
    "demo": ("demo:demo", "Show what Commonplace does, in a temporary folder.", "Everyday"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)
