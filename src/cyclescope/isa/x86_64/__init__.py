"""Tables of x86-64."""
