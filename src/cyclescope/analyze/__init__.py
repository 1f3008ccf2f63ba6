"""Code in, a prediction of its cycles out."""
