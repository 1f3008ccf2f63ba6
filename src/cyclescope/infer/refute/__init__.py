"""The model tried on mixes of forms that had no part in making it."""
