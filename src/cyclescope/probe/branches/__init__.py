"""Questions about what predicts branches."""
