"""Kernels: code whose time answers a question about an instruction form."""
