"""`tedsl.target.datatype` by the name that TVM has for it at its root."""

import sys

from tedsl.target import datatype

sys.modules[__name__] = datatype
