"""tedsl.testing itself, by the module name of TVM 0.8 and later: `from tvm.testing.utils import requires_llvm`."""

import sys

from tedsl import testing

sys.modules[__name__] = testing
