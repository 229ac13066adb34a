"""The file of kernels: what the language wants said first, the functions that it lacks, the kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tedsl.codegen.c.device.kernel import emit_device_kernel
from tedsl.codegen.c.device.language import Language
from tedsl.codegen.c.dialect import Dialect
from tedsl.codegen.c.text.module_text import ModuleText
from tedsl.ir.func import PrimFunc
from tedsl.runtime.devices.code import DeviceFunction
from tedsl.version import VERSION

_COPY_BYTES = """static void tedsl_copy_bytes(void *to, const void *from, size_t count)
{
    size_t k;
    for (k = 0; k < count; ++k) {
        ((uint8_t *)to)[k] = ((const uint8_t *)from)[k];
    }
}
"""


def emit_device_module(kernels: Sequence[PrimFunc], dialect: Dialect,
                       language: Language) -> tuple[str, tuple[DeviceFunction, ...]]:
    """Returns the file with the kernels (flat form, lowered for the device) and how they are launched."""
    module = ModuleText(dialect)
    functions = tuple(emit_device_kernel(kernel, module, language) for kernel in kernels)
    helpers = [f"{dialect.helper} {text}" for text in module.helpers.values()]
    if dialect.spelling.words.get("memcpy") and "memcpy" in module.uses:
        helpers.insert(0, _COPY_BYTES)
    code = "\n".join([*helpers, *module.functions.values()])
    opening = "".join(line for word, line in language.opening if re.search(rf"\b({word})\b", code))
    parts = [f"/* Written by tedsl {VERSION}. */\n", *([opening] if opening else []), code]
    return dialect.spelling("\n".join(parts)), functions
