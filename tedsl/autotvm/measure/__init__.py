"""Measuring of configurations: `options.py` says how, `inputs.py` what is measured and what comes out, `batch.py` does it."""

from tedsl.aliases import import_as
from tedsl.autotvm.absent import OF_MEASURE
from tedsl.autotvm.measure.batch import create_measure_batch
from tedsl.autotvm.measure.inputs import MeasureErrorNo, MeasureInput, MeasureResult
from tedsl.autotvm.measure.options import LocalBuilder, LocalRunner, RayRunner, RPCRunner, measure_option
from tedsl.errors import entries

__all__ = ["LocalBuilder", "LocalRunner", "MeasureErrorNo", "MeasureInput", "MeasureResult", "RPCRunner", "RayRunner",
           "create_measure_batch", "measure_option"]

entries(globals(), absent=OF_MEASURE)
import_as(globals(), "local_executor", "measure", "measure_methods")
