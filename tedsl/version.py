"""The version of tedsl, defined only here."""

import time

VERSION = "0.1.0"
IMPORTED = time.time()  # when this process began to load tedsl: files that changed since may not be the code that runs
