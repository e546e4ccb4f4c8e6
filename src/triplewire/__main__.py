"""`python -m triplewire` is `triplewire`."""

from triplewire.cli import main

main()
