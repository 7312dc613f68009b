"""`python -m comity.reproduction`."""

import sys

from .command import main

sys.exit(main())
