"""From code to a prediction of its cycles."""
