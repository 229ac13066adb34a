"""The text of a module in C: what its functions share, in the order in which C wants to read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tedsl.codegen.c.dialect import Dialect
from tedsl.codegen.c.prelude.table import helper_name, helper_text
from tedsl.codegen.calls.callees import Callee
from tedsl.errors import LoweringError
from tedsl.ir.dtype import DType
from tedsl.record import record

_CALLED = re.compile(r"\btedsl_\w+")


@record
class OwnFunction:
    """A function of the module that others of it call: its name in C, and what a call of it needs."""

    symbol: str
    callee: Callee


@dataclass
class ModuleText:
    """Helper functions, declarations and types that the functions of a module share; each is written once.

    imported: C code of pragmas, as it is. callees: the functions of the module that others of it call, by name.
    """

    dialect: Dialect
    helpers: dict[str, str] = field(default_factory=dict)  # name → definition, those that are called first
    prototypes: dict[str, str] = field(default_factory=dict)  # of C functions of others
    callees: Mapping[str, OwnFunction] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)  # vector types
    functions: dict[str, str] = field(default_factory=dict)  # bodies of loops and kernels, those that are called first
    imported: dict[str, None] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)  # "math", "workspace", "launcher", "memcpy"
    count: int = 0

    def helper(self, operation: str, *dtypes: DType) -> str:
        """Returns the name of the helper function for an operation on those dtypes; the module defines it."""
        return self.define(helper_name(operation, *dtypes))

    def define(self, name: str) -> str:
        """Has the module define the helper function `name`, and those that it calls; returns the name."""
        if name not in self.helpers and name not in self.dialect.spelling.words:
            text = helper_text(name)
            self.add(name, text)
        return name

    def add(self, name: str, text: str) -> None:
        """Adds a function of our own with its text, after the helpers that it calls."""
        for called in _CALLED.findall(text):
            if called != name and called not in self.helpers:
                self.define(called)
        if "memcpy(" in text:
            self.uses.add("memcpy")
        self.helpers[name] = text

    def math(self) -> None:
        """Includes math.h."""
        self.uses.add("math")

    def declare(self, name: str, prototype: str) -> None:
        """Declares a C function of others; LoweringError if it is called with other types elsewhere."""
        if any(re.search(rf"\b{re.escape(name)}\s*\(", text) for text in self.imported):
            return  # imported code defines it
        known = self.prototypes.setdefault(name, prototype)
        if known != prototype:
            raise LoweringError(f"the C function {name} is called in two ways: `{known}` and `{prototype}`",
                                hint="give its arguments, and what it returns, the same dtypes in every call")

    def next_number(self) -> int:
        """Returns 0, 1, 2, ... in turn, to make names of functions unique."""
        self.count += 1
        return self.count - 1


_RESTRICT = """#if defined(__GNUC__) || defined(__clang__) || defined(_MSC_VER)
#define TEDSL_RESTRICT __restrict
#elif defined(__cplusplus)
#define TEDSL_RESTRICT
#else
#define TEDSL_RESTRICT restrict
#endif
"""
_ALIGNED = """#if defined(__GNUC__) || defined(__clang__)
#define TEDSL_ALIGNED __attribute__((aligned(64)))
#else
#define TEDSL_ALIGNED
#endif
"""
# Products and sums are rounded each on its own, in the precision of their type.
_ROUNDING = """#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize ("fp-contract=off")  /* gcc does not know the pragma of the standard */
#else
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD > 0
#error "floats are computed in more precision than their type has: compile with -msse2 -mfpmath=sse"
#endif
"""
_WORKSPACE_DECLARED = """/* Memory of `bytes` bytes, aligned to 64, or NULL; and its way back.
   Define TEDSL_OWN_WORKSPACE to give your own. */
#ifdef TEDSL_OWN_WORKSPACE
void *tedsl_workspace_alloc(int64_t bytes);
void tedsl_workspace_free(void *memory);
#else
#include <stdlib.h>
static void *tedsl_workspace_alloc(int64_t bytes)
{
    char *whole = (uint64_t)bytes < (uint64_t)PTRDIFF_MAX - 128 ? (char *)malloc((size_t)bytes + 128) : NULL;
    char *memory = whole == NULL ? NULL : whole + (128 - (uintptr_t)whole % 64);
    if (memory != NULL) {
        memcpy(memory - sizeof whole, &whole, sizeof whole);
    }
    return memory;
}
static void tedsl_workspace_free(void *memory)
{
    char *whole;
    memcpy(&whole, (char *)memory - sizeof whole, sizeof whole);
    free(whole);
}
#endif
"""
LAUNCHER = """/* Runs body(env, begin, end) for pieces that cover 0 to count, at the same time if it can.
   Returns 0, or what a body returned that was not 0. You define it: `return body(env, 0, count);` is enough. */
int32_t tedsl_parallel_launch(int32_t (*body)(void *env, int64_t begin, int64_t end), void *env, int64_t count);
"""


def assembled(module: ModuleText, title: str) -> str:
    """Returns the whole file."""
    body = "\n".join(module.functions.values())
    helpers = "\n".join(f"{module.dialect.helper} {text}" for text in module.helpers.values())
    everything = body + helpers
    if "workspace" in module.uses:
        module.uses.add("memcpy")
    headers = ["stddef.h", "stdint.h", "stdbool.h"] + (["float.h"] if "float" in everything or "double" in everything else [])
    headers += ["string.h"] if "memcpy" in module.uses else []
    headers += ["math.h"] if "math" in module.uses else []
    parts = [f"/* {title} */", "".join(f"#include <{name}>\n" for name in headers)]
    parts += [_ROUNDING] if "float.h" in headers else []
    parts += [_RESTRICT] if "TEDSL_RESTRICT" in everything else []
    parts += [_ALIGNED] if "TEDSL_ALIGNED" in everything else []
    parts += ["".join(module.types.values())] if module.types else []
    parts += ["#ifdef __cplusplus\nextern \"C\" {\n#endif\n"]
    parts += ["".join(f"{text}\n" for text in module.prototypes.values())] if module.prototypes else []
    parts += [LAUNCHER] if "launcher" in module.uses else []
    parts += [_WORKSPACE_DECLARED] if "workspace" in module.uses else []
    parts += list(module.imported)
    parts += [helpers] if helpers else []
    parts += [body, "#ifdef __cplusplus\n}\n#endif\n"]
    return "\n".join(parts)
