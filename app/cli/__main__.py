"""`python -m app.cli` is the same as `mergeward`."""

from app.cli import main

main()
