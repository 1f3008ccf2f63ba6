"""What cores do beyond executing single forms: published of some, found by probes of others."""
