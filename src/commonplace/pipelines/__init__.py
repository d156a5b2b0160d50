"""What runs around an agent's work.  Each pipeline has one spine: read, think, admit, apply."""
