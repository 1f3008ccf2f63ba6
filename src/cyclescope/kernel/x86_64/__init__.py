"""Kernels for x86-64."""
