"""`tedsl.ir.instrument` by the name that TVM has for it at its root."""

import sys

from tedsl.ir import instrument

sys.modules[__name__] = instrument
