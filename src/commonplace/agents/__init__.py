"""What the three kinds of agents share: models, tools, tolerance of memory failures."""
