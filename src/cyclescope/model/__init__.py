"""Machine models: pure data, measured here or extracted from elsewhere."""
