"""Tables of AArch64."""
