"""Values and contracts. Standard library only."""
