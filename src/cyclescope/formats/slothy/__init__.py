"""Target modules of SLOTHY, the superoptimizer of AArch64 code."""
