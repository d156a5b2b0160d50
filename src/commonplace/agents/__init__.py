"""What role agents, pipeline agents and workflow agents share: the model, the loop, the scheduler, the tools."""
