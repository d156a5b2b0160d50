"""The commands of the roles room."""
