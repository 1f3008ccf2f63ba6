"""Other tools as backends: llvm-mca in place of the CPU, and OSACA, each with one file at a time."""
