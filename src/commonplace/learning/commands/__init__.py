"""The commands of the learning room."""
