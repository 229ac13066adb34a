"""`tedsl.nd`, which stands above, under the name that TVM has for it here."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("tedsl.nd")
