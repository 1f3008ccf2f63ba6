"""What other backends say of a form: micro-operations and ports, beside those of a store."""
