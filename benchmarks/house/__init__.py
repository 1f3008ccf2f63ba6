"""Whether tests notice what changes, what damage and nonsense do, and how quickly commands start."""
