"""Kernels for AArch64 and RISC-V, whose forms are made of fields."""
