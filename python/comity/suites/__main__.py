"""`python -m comity.suites`."""

import sys

from .command import main

sys.exit(main())
