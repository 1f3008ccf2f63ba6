"""What LLVM's own tools read and write."""
