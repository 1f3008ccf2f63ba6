"""Tables of RISC-V."""
