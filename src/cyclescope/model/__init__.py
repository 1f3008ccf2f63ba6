"""What a machine is: pure data, measured here or extracted from elsewhere."""
