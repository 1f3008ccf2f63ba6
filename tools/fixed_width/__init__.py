"""The instruction tables of AArch64 and RISC-V, from LLVM."""
