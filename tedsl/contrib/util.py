"""`tedsl.contrib.utils` by its name before TVM 0.8."""

import sys

from tedsl.contrib import utils

sys.modules[__name__] = utils
