"""Names of older versions of TVM over what tedsl has, for programs that are not to be rewritten.

    import tedsl.compat.v06 as tvm          # programs of TVM 0.6: tvm.placeholder, tvm.expr, tvm.ir_pass, ...

`python -m tedsl migrate` rewrites such programs instead: `migrate/` does it. `root/` has modules that TVM has at its root,
`tvmscript/` reads scripts.
"""

from tedsl.compat import ir_pass, make
from tedsl.errors import entries

__all__ = ["ir_pass", "make"]

# Rewritten programs say `import tedsl as tvm`, then tvm.compat.build_module.BuildConfig.
entries(globals(), later={name: f"tedsl.compat.{name}" for name in (
    "arith", "build_module", "container", "expr", "module", "node", "v06")})
