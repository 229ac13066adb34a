"""Tuners: which points of a space are measured next.

`tuner.py` measures batches of points; `simple.py` takes them in order or at random, `genetic.py` breeds them, `droplet.py` goes
downhill, `model_based.py` asks a model of their cost (`cost_model.py`); `metric.py` has curves of what they found.
"""

from tedsl.aliases import import_as
from tedsl.autotvm import callback
from tedsl.autotvm.absent import OF_TUNER
from tedsl.autotvm.tuner import metric
from tedsl.autotvm.tuner.droplet import DropletTuner
from tedsl.autotvm.tuner.genetic import GATuner
from tedsl.autotvm.tuner.model_based import ModelBasedTuner, XGBTuner
from tedsl.autotvm.tuner.simple import GridSearchTuner, RandomTuner
from tedsl.autotvm.tuner.tuner import Tuner
from tedsl.errors import entries

__all__ = ["DropletTuner", "GATuner", "GridSearchTuner", "ModelBasedTuner", "RandomTuner", "Tuner", "XGBTuner", "callback",
           "metric"]

entries(globals(), absent=OF_TUNER, later={
    "knob2point": "tedsl.autotvm.tuner.genetic:number_of", "point2knob": "tedsl.autotvm.tuner.genetic:genes_of"})
import_as(globals(), "droplet_tuner", "ga_tuner", "gridsearch_tuner", "index_based_tuner", "model_based_tuner",
          "sa_model_optimizer", "xgboost_cost_model", "xgboost_tuner")
