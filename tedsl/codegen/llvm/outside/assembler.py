"""Compiles imported LLVM IR that contains assembler to an object, in a separate process.

LLVM ends the process over invalid assembler, which only a full run of its code generator detects. The object
is then linked beside the module, as that of a C compiler is, so that inlining and unrolling cannot duplicate its labels.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache

from tedsl.errors import LoweringError
from tedsl.target import Target
from tedsl.target.current import host_target

SECONDS = 120


def assembled(text: str, target: Target) -> bytes:
    """Returns the object of `text`; LoweringError with LLVM's message if its assembler is not valid."""
    if target.platform != host_target().platform:
        raise LoweringError(f"import_llvm: the code has assembler in it, which is read only for {host_target().platform}, this "
                            f"machine, and the target is {target}", hint="write it as LLVM IR, or build it on such a machine")
    return _compiled(text, target.triple, target.cpu, target.feature_string)


@lru_cache(maxsize=64)
def _compiled(text: str, triple: str, cpu: str, features: str) -> bytes:
    given = json.dumps({"text": text, "triple": triple, "cpu": cpu, "features": features}).encode()
    try:
        done = subprocess.run([sys.executable, "-c", _COMPILE], input=given, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LoweringError(f"import_llvm: the code has assembler in it, and its compiler did not run: {error}") from error
    said = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    # LLVM reports some errors and goes on: then there is an object, without the instruction.
    if done.returncode or any(" error: " in f" {line}" for line in said):
        raise LoweringError(f"import_llvm: LLVM does not compile the assembler in the code:\n    {_first(said)}",
                            hint="check its instructions and its constraints, for example with llc")
    return done.stdout


def _first(said: list[str]) -> str:
    """Extracts the first error from LLVM's output, with the line of assembler below it."""
    for at, line in enumerate(said):
        if "error: " in line or "LLVM ERROR" in line or "Assertion" in line:
            short = line.rpartition("LLVM ERROR: ")[2].rpartition("Assertion ")[2].removeprefix("error: ")
            return "\n    ".join([short, *said[at + 1:at + 2]]) if "<inline asm>" in line else short
    return said[-1] if said else "it ends the process"


_COMPILE = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from llvmlite import binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.initialize_native_asmparser()
given = json.load(sys.stdin)
module = llvm.parse_assembly(given["text"])
module.verify()
machine = llvm.Target.from_triple(given["triple"]).create_target_machine(
    cpu=given["cpu"], features=given["features"], opt=3, reloc="pic", codemodel="default")
options = llvm.create_pipeline_tuning_options(speed_level=2)
options.slp_vectorization = False
builder = llvm.create_pass_builder(machine, options)
builder.getModulePassManager().run(module, builder)
sys.stdout.buffer.write(machine.emit_object(module))
"""
