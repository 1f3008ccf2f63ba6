"""Dependencies of a block, through registers and memory, in one iteration and from one to the next."""
