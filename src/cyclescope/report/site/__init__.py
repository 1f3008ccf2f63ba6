"""A machine as a site that needs no server and no network: a table of all forms and a card of each."""
