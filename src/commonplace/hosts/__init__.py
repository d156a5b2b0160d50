"""Other people's agents: what their hooks say and want to hear, where their transcripts lie, how they are connected."""
