"""Questions about how much of something a core has."""
