"""Records rendered as text and JSON; nothing here computes a result."""
