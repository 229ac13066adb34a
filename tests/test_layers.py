"""The house as tests: the direction of imports, the sizes of files, the cost of importing, one home per concept."""

import ast
import functools
import pathlib
import subprocess
import sys
from collections import Counter

ROOT = pathlib.Path(__file__).parent.parent
PACKAGE = ROOT / "tedsl"
LAYERS = ["version", "record", "digest", "errors", "amounts", "processors", "aliases", "findings", "garbage",
          "absent", "plugins", "display", "ir", "cache", "target", "arith", "runtime", "simulate", "lang", "autodiff",
          "schedule", "lower", "passes", "codegen", "compiler", "driver", "tracing", "te", "tir", "nd", "transform",
          "testing", "error", "topi", "autograd", "optim", "nn", "graph", "bottlenecks", "tune", "autotvm",
          "auto_scheduler", "tuning", "actors", "graph.placement", "contrib", "compat", "fuzz", "shell", "__main__",
          "__init__"]
NAMES = {"te", "tir", "nd", "transform", "testing", "error", "topi"}  # the top floor: modules of names, side by side
FRONT, BACK = {"lang", "autodiff", "schedule", "lower"}, {"passes", "codegen"}
# Late imports that the design allows, all inside functions: operators on tensors, a schedule that shows its loops, and loops
# that are shown with the indices that are proved for them.
# Type checkers see in tedsl.ir the name `transform`, which programs look for there.
LATE = {("lang/tensor.py", "lang"), ("schedule/explain.py", "driver"), ("ir/script/__init__.py", "arith"),
        ("ir/__init__.py", "transform")}


def room_of(names):
    """The layer of what stands at a path inside tedsl: its first name, or a room inside a room that stands on another floor."""
    inside = ".".join(names[:2])
    return inside if inside in LAYERS else names[0]


def layer_of(path):
    return room_of(path.relative_to(PACKAGE).with_suffix("").parts)


@functools.cache
def import_statements(path):
    """The imports of a file, wherever they stand: each with whether that is in a function, and whether it is for types only."""
    found, stack = [], [(node, False, False) for node in ast.parse(path.read_text()).body]
    while stack:
        node, inside, for_types = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((node, inside, for_types))
            continue
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for_types = for_types or for_types_only(node)
        stack += [(child, inside, for_types) for child in ast.iter_child_nodes(node) if isinstance(child, HOLD_STATEMENTS)]
    return found


HOLD_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def for_types_only(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports_of(path):
    """The layers of tedsl that a file imports."""
    found = set()
    for node, _, _ in import_statements(path):
        names = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        found |= {room_of((name.split(".") + ["__init__"])[1:]) for name in names if name.split(".")[0] == "tedsl"}
    return found


def test_modules_import_only_lower_layers():
    assert not [complaint for path in sorted(PACKAGE.rglob("*.py")) for complaint in imports_from_elsewhere(path)]


def imports_from_elsewhere(path):
    """What a file of tedsl imports from layers above its own, and from the other wing."""
    mine = layer_of(path)
    if mine == "__init__":
        return
    late = {layer for name, layer in LATE if str(path.relative_to(PACKAGE)) == name}
    imported = {layer for layer in imports_of(path) if layer in LAYERS} - late - {mine}
    if mine in NAMES:
        imported -= NAMES
    above = sorted(layer for layer in imported if LAYERS.index(layer) > LAYERS.index(mine))
    if above:
        yield f"{path} ({mine}) imports from {above}: the arrow points the other way"
    across = imported & (BACK if mine in FRONT else FRONT if mine in BACK else set())
    if across:
        yield f"{path} ({mine}) imports from the other wing: {across}"


# --- circles between files, at any depth ------------------------------------------------------------------------------

# Late imports that close a circle: the file, what it imports inside functions, the reason.
CIRCLES = {
    ("tedsl/ir/operators.py", "tedsl.ir.build"): "operators and operands of expressions are made by what stands on expressions",
    ("tedsl/ir/operators.py", "tedsl.ir.script"): "errors about expressions show them",
    ("tedsl/lang/tensor.py", "tedsl.lang.elementwise"): "operators of tensors are operations, which read tensors",
    ("tedsl/ir/ops.py", "tedsl.ir.calls.registered"): "attributes that programs set are kept beside rules, which read calls",
    ("tedsl/ir/func.py", "tedsl.ir.walk.specialize"): "func.specialize() rewrites what it is a method of",
    ("tedsl/ir/func.py", "tedsl.ir.script"): "func.readable() prints what it is a method of",
    ("tedsl/ir/func.py", "tedsl.ir.tvmscript"): "func.script() prints what it is a method of",
    ("tedsl/ir/script/__init__.py", "tedsl.arith.places"): "indices are shown as they are proved to be",
    ("tedsl/schedule/explain.py", "tedsl.driver"): "s.explain() shows what lowering knows of a schedule",
    ("tedsl/graph/value.py", "tedsl.graph.apply"): "operators of values are nodes, which read values",
    ("tedsl/graph/graph.py", "tedsl.graph.text.printer"): "str(graph) prints what it is a method of",
    ("tedsl/graph/graph.py", "tedsl.graph.picture"): "notebooks show the picture of what they hold",
    ("tedsl/graph/graph.py", "tedsl.graph.text.parser"): "Graph.parse makes what it is a method of",
    ("tedsl/actors/plan/description.py", "tedsl.actors.plan.text"): "str(plan) prints what it is a method of",
    ("topi/kinds.py", "topi.adjoints.table"): "adjoints are made of operators, which leave records",
}
# Late imports that close none: what few programs need is loaded by those. So is `tedsl.display`, what only people look at.
LATE_FOR_SPEED = {
    ("tedsl/driver.py", "tedsl.compiler"): "what the cache has is neither lowered nor compiled",
    ("tedsl/driver.py", "tedsl.lower.inputs"): "the same",
    ("tedsl/driver.py", "tedsl.runtime.faults"): "few programs are checked",
    ("tedsl/codegen/device.py", "tedsl.codegen.c.cuda_text"): "few programs ask for CUDA C",
    ("tedsl/codegen/llvm/backend.py", "tedsl.codegen.llvm.compiled"): "what the cache has is not compiled",
    ("tedsl/codegen/llvm/linking/jit.py", "tedsl.codegen.llvm.entry.shared"): "what the cache has is not compiled",
    ("tedsl/codegen/llvm/debug/watchers.py", "tedsl.codegen.llvm.debug.gdb"): "few programs run under a debugger",
    ("tedsl/passes/selection.py", "tedsl.passes.loops.vectorize_loops"): "no pass runs for what the cache has",
    ("tedsl/shell/migrate.py", "tedsl.compat.migrate"): "what rewrites programs is an extra",
    ("tedsl/runtime/module.py", "tedsl.runtime.modules.files"): "few programs write modules to files",
}
# Files that import modules by a name that is made when they run.
BY_NAME = {
    "tedsl/__init__.py": "a table of names, loaded when first asked for",
    "tedsl/arith/__init__.py": "a table of names, loaded when first asked for",
    "tedsl/compat/migrate/names.py": "whatever a program imports, to see whether it is there",
    "tedsl/compat/v06.py": "a table of names, loaded when first asked for",
    "tedsl/contrib/__init__.py": "a table of names, loaded when first asked for",
    "tedsl/ir/__init__.py": "a table of names, loaded when first asked for",
    "tedsl/ir/functions.py": "the table of modules that register functions",
    "tedsl/runtime/__init__.py": "a table of names, loaded when first asked for",
    "tedsl/runtime/ndarray.py": "a module that stands above, when a program imports it from here",
    "tedsl/codegen/backend.py": "the table of backends",
    "tedsl/codegen/device.py": "the table of backends for devices",
    "tedsl/runtime/devices/table.py": "the table of drivers",
    "tedsl/errors.py": "names of modules of names that are loaded when first asked for",
    "tedsl/codegen/llvm/export/wheel/calls.py": "the extension module of a wheel for the processor that is there",
    "tedsl/runtime/symbols.py": "the table of symbols that kernels may call",
    "tedsl/shell/table.py": "the table of commands",
    "tedsl/ir/walk/serial.py": "what makes things that are no nodes from saved text",
    "tedsl/testing/before_after.py": "the notation of functions of loops, which stands above",
    "tedsl/fuzz/run.py": "modules of tests that worker processes load",
    "tedsl/topi/__init__.py": "the modules of topi under their second names",
}
FILES = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
         for p in sorted([*PACKAGE.rglob("*.py"), *(ROOT / "topi").rglob("*.py")])}


def modules_of(node):
    """The modules, each a file of the house, that an import statement loads."""
    if isinstance(node, ast.ImportFrom):
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        return {name if name in FILES else node.module for name in inner} & FILES.keys()
    return {alias.name for alias in node.names} & FILES.keys()


@functools.cache
def imports():
    """For each module the modules that loading it loads, and those that its functions import."""
    at_once, late = {}, {}
    for name, path in FILES.items():
        at_once[name], late[name] = set(), set()
        for node, inside, for_types in import_statements(path):
            if not for_types:
                (late if inside else at_once)[name] |= modules_of(node)
    return at_once, late


@functools.cache
def reached(name):
    """Everything that loading the module `name` loads."""
    at_once, _ = imports()
    found, stack = set(), [name]
    while stack:
        for other in at_once[stack.pop()] - found:
            found.add(other)
            stack.append(other)
    return found


def test_files_import_one_another_in_one_direction():
    at_once, _ = imports()
    circles = {tuple(sorted((name, other))) for name in FILES for other in at_once[name] if name in reached(other)}
    assert not circles


def test_imports_inside_functions_close_no_circle_but_those_that_the_design_allows():
    _, late = imports()
    edges = {(str(FILES[name].relative_to(ROOT)), other): name in reached(other) for name in FILES for other in late[name]}
    closing = {edge for edge, closes in edges.items() if closes}
    assert edges.keys() >= CIRCLES.keys() | LATE_FOR_SPEED.keys(), "what is listed is there"
    assert closing <= CIRCLES.keys(), f"move what both files need into a file below them: {closing - CIRCLES.keys()}"
    rest = {edge for edge in edges.keys() - closing - CIRCLES.keys() if not edge[1].startswith("tedsl.display")}
    assert rest <= LATE_FOR_SPEED.keys(), f"no circle is closed by {rest - LATE_FOR_SPEED.keys()}: import at the top"


def test_modules_are_imported_by_name_where_a_table_says_them():
    found = {str(path.relative_to(ROOT)) for path in FILES.values() if "import_module" in path.read_text() and any(
        isinstance(node, ast.Call) and ast.unparse(node.func) in ("import_module", "importlib.import_module")
        for node in ast.walk(ast.parse(path.read_text())))}
    assert found == BY_NAME.keys()


def test_backends_do_not_stand_on_each_other():
    """But for the code of the runtime, such as the thread pool, which LLVM's linker has put into the process."""
    imported = {line.strip() for path in (PACKAGE / "codegen" / "c").rglob("*.py") for line in path.read_text().splitlines()
                if "tedsl.codegen.llvm" in line}
    assert imported == {"from tedsl.codegen.llvm.linking import jit"}
    shared = [path for folder in ("kernels", "calls", "formulas") for path in (PACKAGE / "codegen" / folder).rglob("*.py")]
    assert not [path for path in shared if "tedsl.codegen.llvm" in path.read_text() or "tedsl.codegen.c." in path.read_text()]


def test_every_package_stands_in_the_list_of_layers():
    homes = {layer_of(p) for p in PACKAGE.rglob("*.py")}
    assert homes <= set(LAYERS), f"new rooms {homes - set(LAYERS)} need a place in LAYERS"


def test_topi_imports_only_public_names():
    public = {"te", "tir", "target", "errors", "__init__", "nd", "record"}
    others = {str(path): imports_of(path) - public for path in (ROOT / "topi").rglob("*.py")}
    assert not {path: names for path, names in others.items() if names}


def test_files_stay_readable():
    files = {str(path): path.read_text().splitlines() for path in FILES.values()}
    assert not {path: len(lines) for path, lines in files.items() if len(lines) > 600}, "split them"
    assert not {path for path, lines in files.items() if any(len(line) > 128 for line in lines)}


def test_folders_can_be_overlooked():
    files = Counter(path.parent for path in FILES.values() if path.name != "__init__.py")
    assert not {str(folder): count for folder, count in files.items() if count > 20}


def test_no_drawer_for_odds_and_ends():
    theirs = [PACKAGE / room / "utils.py" for room in ("autotvm", "contrib", "testing")]  # programs import these
    theirs.append(PACKAGE / "contrib" / "util.py")
    names = {p.stem for p in PACKAGE.rglob("*.py") if p not in theirs} | {p.name for p in PACKAGE.rglob("*") if p.is_dir()}
    assert not names & {"utils", "util", "common", "helpers", "helper", "misc"}


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_import_is_light():
    modules = run_python("import tedsl, sys; print(*sorted(m.split('.')[0] for m in sys.modules))").split()
    assert "sympy" not in modules
    assert "llvmlite" not in modules


def test_importing_tedsl_leaves_the_import_system_alone():
    code = "import sys; before = list(sys.meta_path); import tedsl; print(sys.meta_path == before)"
    assert run_python(code).strip() == "True"


def test_import_time():
    """At most 150 ms of the processor beyond numpy; the best of five, for the machine may be busy."""
    code = "import time, numpy; t = time.process_time(); import tedsl; print(time.process_time() - t)"
    assert min(float(run_python(code)) for _ in range(5)) < 0.150
