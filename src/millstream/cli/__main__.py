"""`python -m millstream.cli` is the `millstream` command."""

from millstream.cli import main

main()
