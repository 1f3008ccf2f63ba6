"""`python -m cyclescope`."""

from cyclescope.cli.main import main

main()
