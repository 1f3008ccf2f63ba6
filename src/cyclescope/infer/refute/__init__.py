"""The model against mixes that had no part in making it."""
