"""What the command line and the Python interface call."""
