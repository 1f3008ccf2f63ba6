"""Generator of the x86-64 instruction table."""
