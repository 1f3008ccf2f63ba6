"""What cores do beside executing single forms: published of some, found out by experiments of others."""
