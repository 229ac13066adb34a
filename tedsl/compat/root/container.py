"""`tedsl.ir.container` by the name that TVM has for it at its root."""

import sys

from tedsl.ir import container

sys.modules[__name__] = container
