"""What instructions cost on a machine, where they stand."""
