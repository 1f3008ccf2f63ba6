"""Files of any number of blocks, predicted by any executor."""
