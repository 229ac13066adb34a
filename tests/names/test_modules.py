"""Modules by the paths that TVM has for them: `import tedsl.x.y as z`, `from tedsl.x.y import name`."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tedsl
from tedsl import target

MODULES = [path for line in Path(__file__).with_name("modules.txt").read_text().splitlines() if not line.startswith("#")
           for path in line.split()]
NAMES = {  # what a program takes from a file of TVM
    "tir.op": "exp", "tir.function": "PrimFunc", "tir.buffer": "decl_buffer", "tir.data_layout": "bijective_layout",
    "runtime.ndarray": "array", "runtime.object": "Object", "runtime.packed_func": "PackedFunc", "ir.module": "IRModule",
    "ir.transform": "PassContext", "ir.base": "structural_equal", "target.generic_func": "generic_func", "datatype": "register",
    "te.hybrid.module": "HybridModule", "driver.build_module": "lower",
    "contrib.util": "tempdir", "container": "Array", "autotvm.tuner.xgboost_tuner": "XGBTuner",
    "autotvm.measure.measure_methods": "LocalBuilder", "autotvm.tuner.callback": "progress_bar",
    "auto_scheduler.search_task": "SearchTask", "auto_scheduler.cost_model.xgb_model": "XGBModel",
    "topi.nn.bitserial_dense": "bitserial_dense", "topi.sparse.csrmm": "csrmm", "topi.tensor": "full",
    "topi.x86.batch_matmul": "schedule_batch_matmul", "topi.cuda.injective": "schedule_injective",
    "topi.vision.ssd.multibox": "multibox_prior", "topi.scatter_add": "scatter_add",
}


@pytest.mark.parametrize("path", MODULES)
def test_a_module_can_be_imported(path):
    module = import_module(f"tedsl.{path}")
    assert path not in NAMES or getattr(module, NAMES[path]) is not None


def test_each_form_of_an_import_in_a_new_process():
    lines = [f"from tedsl.{path} import {name}" for path, name in NAMES.items()]
    lines += ["import tedsl.tir.op as op", "import tedsl.datatype as datatype", "from tedsl.tir import op as same",
              "import tedsl.runtime.ndarray", "assert same is op and datatype.register is register",
              "assert tedsl.nd is tedsl.runtime.ndarray and tedsl.ndarray is tedsl.nd"]
    subprocess.run([sys.executable, "-W", "ignore", "-c", "\n".join(lines)], check=True)


def test_functions_that_are_called_as_the_file_they_are_in_stay_functions():
    import_module("tedsl.target.generic_func")
    import_module("tedsl.topi.x86.batch_matmul")
    assert callable(target.generic_func) and callable(tedsl.topi.x86.batch_matmul)


def test_no_module_of_the_root_is_loaded_before_it_is_asked_for():
    program = "import sys, tedsl; assert 'tedsl.datatype' not in sys.modules and 'tedsl.tir.op' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
