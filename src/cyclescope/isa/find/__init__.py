"""Forms by the names and examples that people write."""
