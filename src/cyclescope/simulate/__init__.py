"""An out-of-order core driven by a machine model, with a trace."""
