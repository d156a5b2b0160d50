"""What an agent holds."""
