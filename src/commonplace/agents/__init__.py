"""Agents at work, on PydanticAI.  Nothing is imported here: commands that run no agent must not pay for one."""
