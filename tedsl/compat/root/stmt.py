"""`tedsl.tir` by the name that TVM has for it at its root."""

import sys

from tedsl import tir

sys.modules[__name__] = tir
