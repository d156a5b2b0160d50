"""Role memory with an index of its vectors in LanceDB."""
