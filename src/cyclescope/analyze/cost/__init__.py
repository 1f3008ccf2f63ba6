"""What instructions cost on a machine, in their place in a block."""
