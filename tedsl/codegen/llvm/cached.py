"""Modules from the cache on disk: lowered functions that were compiled before are linked, not compiled again.

The key of a module is made of its lowered functions, of the options and the target, and of what else compiled code depends on
(`runtime/versions.py`). The entry holds the image without its texts, and the functions: the texts of a module are made
when they are asked for, by the way that a fresh module goes. C functions that the code calls are bound by name when it is
linked; where one is absent, the module is compiled again, which says so.
"""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from tedsl.cache.store import CODE, current_store
from tedsl.codegen.llvm.debug.watchers import Watchers
from tedsl.codegen.llvm.linking.images import Sources, image_pieces, linked_module
from tedsl.codegen.llvm.linking.kept import laid_out_of
from tedsl.digest import digest
from tedsl.errors import TedslError
from tedsl.ir.func import PrimFunc
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.identity import identity
from tedsl.ir.walk.serial import from_data, to_data
from tedsl.passes.config import PassConfig
from tedsl.record import record
from tedsl.runtime.module import Module
from tedsl.runtime.modules.image import Image, image_of
from tedsl.runtime.modules.linkable import heads_of, linkable_of
from tedsl.runtime.versions import machine, versions
from tedsl.target.target import Target

IMPORTS = ("pragma_import_llvm", "pragma_import_c")
_FUNCTIONS = "functions"
Texts = Callable[[Sequence[PrimFunc]], Sources]


@record
class Program:
    """Lowered functions on the way to a module that may be kept. key: of its entry; functions: as data, compressed."""

    key: str
    functions: bytes


def program_of(funcs: Sequence[PrimFunc], target: Target, config: PassConfig, quick: bool) -> Program | None:
    """Returns the program that `funcs` are, or None if its code is not kept.

    That is so without a cache, for code that cannot run here, where instruments watch the passes or debuggers the code, and if
    a part of the program stands outside of it.
    """
    watched = config.selection.instruments or config.line_tables or config.gdb  # line tables name a file of this process
    if current_store() is None or not target.runs_here or watched or any(map(_has_imports, funcs)):
        return None
    environment = versions()
    options = identity((replace(config, add_lower_pass=()), quick, machine(target)))  # those passes have made the functions
    if environment is None or options is None:
        return None
    try:
        functions = json.dumps(to_data(tuple(funcs)), separators=(",", ":"), check_circular=False).encode()
    except TedslError:  # an attribute holds an object of the user's
        return None
    return Program(digest(f"{environment}{options}".encode() + functions), zlib.compress(functions, 1))


def _has_imports(func: PrimFunc) -> bool:
    """Tells whether code of other languages is imported: compilers and files, which the functions only name, make it."""
    return contains(func.body, *IMPORTS)


def recalled(key: str, target: Target, texts: Texts, watchers: Watchers) -> Module | None:
    """Returns the module of the entry `key`, linked into this process; None if there is none that can be linked here.

    texts: returns the texts of a module of its functions. watchers: who is told about the code.
    """
    store = current_store()
    pieces = None if store is None else store.load(key, CODE)
    if store is None or pieces is None:
        return None
    try:
        image = functools.cache(lambda: image_of(pieces, key))
        code, data, laid = linkable_of(pieces, image), pieces[_FUNCTIONS], laid_out_of(pieces)
    except (KeyError, TypeError, ValueError):
        store.drop(key, CODE)
        return None
    sources = functools.cache(lambda: texts(from_data(json.loads(zlib.decompress(data)))))
    later = Sources({form: functools.partial(_text, sources, form) for form in ("ll", "asm", "tir")},
                    functools.partial(_functions, sources))
    try:
        return linked_module(code, later, target, lambda: with_texts(image(), later), watchers, key, laid)
    except TedslError:  # a C function that it calls is not in this process
        return None


def _text(sources: Callable[[], Sources], form: str) -> str:
    return sources().texts[form]()


def _functions(sources: Callable[[], Sources]) -> Sequence[PrimFunc]:
    functions = sources().functions
    return () if functions is None else functions()


def with_texts(image: Image, sources: Sources) -> Image:
    """Returns `image` with its texts, as files of modules hold it."""
    return replace(image, source=sources.texts["ll"](), loops=sources.texts["tir"]())


def keep(program: Program, image: Image) -> None:
    """Writes the code of `program` to the cache, where there is one."""
    store = current_store()
    if store is not None:
        pieces = replace(image, source="", loops="").parts()
        store.save(program.key, CODE, {**pieces, **heads_of(image), **image_pieces(image), _FUNCTIONS: program.functions})
