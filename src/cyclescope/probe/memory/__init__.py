"""Questions about loads and stores."""
