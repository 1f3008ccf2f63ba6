"""Blocks on which a prediction and a machine, or two predictions, disagree most."""
