"""`tedsl.transform` by the name that TVM has for it in `tvm.ir`."""

import sys

from tedsl import transform

sys.modules[__name__] = transform
