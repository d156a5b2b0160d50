"""Places, settings files and the decoder of YAML dialects; below this layer there is no YAML and no environment."""
