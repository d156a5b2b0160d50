"""The commands of the records room."""
