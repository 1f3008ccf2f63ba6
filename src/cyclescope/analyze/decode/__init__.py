"""Machine code to instructions: their forms, where their values are, and what is known of these."""
