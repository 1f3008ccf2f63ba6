"""Code that is timed beside other code."""
