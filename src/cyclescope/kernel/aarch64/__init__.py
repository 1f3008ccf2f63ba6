"""What only AArch64 has."""
