"""The text of a program with the names of tedsl in place of TVM's.

    import tvm                                        import tedsl as tvm
    from tvm.expr import Var                          from tedsl.tir import Var
    A = tvm.placeholder((n,), name="A")               A = tvm.te.placeholder((n,), name="A")
    a = tvm.nd.array(x, ctx=tvm.context("cpu"))       a = tvm.nd.array(x, device=tvm.device("cpu"))

A name is one of TVM's if an import of the program makes it one; strings and names of one's own stay as they are.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import libcst as cst
from libcst import metadata

from tedsl.compat.migrate.names import Note, is_of_tvm, name_here, why_not_there
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words

# Keywords of calls that have other names, by what is called: a dotted name here, or ".name" for a method.
_KEYWORDS = {"tedsl.nd.array": ("ctx", "device"), "tedsl.nd.empty": ("ctx", "device"), ".time_evaluator": ("ctx", "dev")}

_OF_LOWERED = ("args", "body", "func_type", "is_restricted", "thread_axis")  # fields of a LoweredFunc of TVM 0.6


def migrate(text: str) -> tuple[str, tuple[Note, ...]]:
    """Returns the text of a program of TVM as one of tedsl, and notes about what is to be changed by hand, by its lines.

    Raises ArgumentError for a text that is no Python.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"migrate: it takes the text of a program, not {type_in_words(text)}")
    try:
        wrapper = metadata.MetadataWrapper(cst.parse_module(text))
    except cst.ParserSyntaxError as error:
        raise ArgumentError(f"migrate: the text is no Python: line {error.raw_line}: {error.message}",
                            hint="programs of Python 2 are first rewritten for Python 3") from None
    rewriter = _Rewriter()
    changed = wrapper.visit(rewriter).code
    lines = _lines_after(text, changed)
    notes = {Note(lines[note.line - 1], note.name, note.reason) for note in rewriter.notes}
    return changed, tuple(sorted(notes, key=lambda note: (note.line, note.name)))


def _lines_after(before: str, after: str) -> list[int]:
    """For each line of a text its number, from 1, in the changed one; that of the line above for one that is gone."""
    found: list[int] = []
    changes = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
    for _, begin, end, first, last in changes:
        found += [max(1, min(first + line - begin, last - 1) + 1) for line in range(begin, end)]
    return found


class _Rewriter(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (metadata.QualifiedNameProvider, metadata.PositionProvider, metadata.ParentNodeProvider)

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[Note] = []
        self.roots: set[str] = set()  # names that hold all of tedsl

    # --- imports ---

    def visit_Module(self, node: cst.Module) -> None:
        """Finds the names that `import tvm` gives, wherever it stands."""
        for statement in _imports(node):
            for alias in statement.names:
                if _dotted(alias.name) == "tvm":
                    self.roots.add(alias.evaluated_alias or "tvm")

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import | cst.RemovalSentinel:
        names: list[cst.ImportAlias] = []
        for alias in updated_node.names:
            old = _dotted(alias.name)
            if not is_of_tvm(old) or old.startswith("topi"):
                names.append(alias)
                continue
            new = name_here(old)
            self._look_at(original_node, old, new)
            if alias.asname is not None or old == "tvm":
                names.append(alias.with_changes(name=_chain(new), asname=_as(alias.evaluated_alias or "tvm")))
            elif "tvm" not in self.roots:  # `import tvm.te` gives the name tvm
                self.roots.add("tvm")
                names.append(alias.with_changes(name=_chain("tedsl"), asname=_as("tvm")))
        if not names:
            return cst.RemoveFromParent()
        return updated_node.with_changes(names=_without_last_comma(names))

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        if updated_node.module is None or updated_node.relative:
            return updated_node
        home = _dotted(updated_node.module)
        if not is_of_tvm(home):
            return updated_node
        if isinstance(updated_node.names, cst.ImportStar):
            self._look_at(original_node, home, name_here(home))
            return updated_node.with_changes(module=_chain(name_here(home)))
        moved: dict[str, list[cst.ImportAlias]] = {}
        for alias in updated_node.names:
            old = f"{home}.{alias.evaluated_name}"
            new = name_here(old)
            self._look_at(original_node, old, new)
            module, _, name = new.rpartition(".")
            asname = alias.asname
            if asname is None and name != alias.evaluated_name:
                asname = _as(alias.evaluated_name)
            moved.setdefault(module, []).append(alias.with_changes(name=cst.Name(name), asname=asname))
        (module, aliases), *others = moved.items()
        for place, elsewhere in others:
            names = ", ".join(alias.evaluated_name for alias in elsewhere)
            self._note(original_node, f"from {home} import {names}", f"write: from {place} import {names}")
            aliases += elsewhere
        return updated_node.with_changes(module=_chain(module), names=_without_last_comma(aliases))

    # --- uses ---

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        parent = self.get_metadata(metadata.ParentNodeProvider, original_node)
        inside = isinstance(parent, cst.Attribute) and parent.value is original_node  # of a longer chain
        if inside or not _is_chain(original_node):
            return self._of_lowered(original_node, updated_node)
        old, first = self._imported_name(original_node), self._imported_name(_first(original_node))
        if old is None or first is None:
            return updated_node
        new, bound = name_here(old), name_here(first)
        self._look_at(original_node, old, new, bound)
        if new == f"{bound}{old[len(first):]}":
            return updated_node
        if not new.startswith(f"{bound}."):
            self._note(original_node, old, f"write {new}")
            return updated_node
        return _chain(f"{_first(original_node).value}{new[len(bound):]}")

    def _of_lowered(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        """`tvm.lower(...).body` with the `lower` of TVM 0.6, which gives a function; other attributes as they are."""
        call, changed = original_node.value, updated_node.value
        if not (isinstance(call, cst.Call) and isinstance(changed, cst.Call) and original_node.attr.value in _OF_LOWERED
                and self._imported_name(call.func) in ("tvm.lower", "tvm.build_module.lower") and _is_chain(call.func)):
            return updated_node
        if isinstance(call.func, cst.Name):
            self._note(original_node, f"{call.func.value}(...).{original_node.attr.value}",
                       "write: from tedsl.compat.build_module import lower")
            return updated_node
        lower = _chain(f"{_first(call.func).value}.compat.build_module.lower")
        return updated_node.with_changes(value=changed.with_changes(func=lower))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        name = self._imported_name(original_node.func)
        called = name_here(name) if name is not None else \
            f".{original_node.func.attr.value}" if isinstance(original_node.func, cst.Attribute) else ""
        old, new = _KEYWORDS.get(called, ("", ""))
        return updated_node.with_changes(args=[
            arg.with_changes(keyword=cst.Name(new)) if arg.keyword is not None and arg.keyword.value == old else arg
            for arg in updated_node.args])

    def _imported_name(self, node: cst.CSTNode) -> str | None:
        """The dotted name in TVM of an expression, if imports make it one."""
        found = [name.name for name in self.get_metadata(metadata.QualifiedNameProvider, node, set())
                 if name.source is metadata.QualifiedNameSource.IMPORT and is_of_tvm(name.name)]
        return found[0] if len(found) == 1 else None

    def _look_at(self, node: cst.CSTNode, old: str, new: str, imported: str | None = None) -> None:
        """Notes a name that is not there, of one that is imported where it is not `new` itself."""
        reason = why_not_there(new, imported)
        if reason is not None:
            self._note(node, old, reason)

    def _note(self, node: cst.CSTNode, name: str, reason: str) -> None:
        self.notes.append(Note(self.get_metadata(metadata.PositionProvider, node).start.line, name, reason))


def _imports(module: cst.Module) -> list[cst.Import]:
    found: list[cst.Import] = []

    class Finder(cst.CSTVisitor):
        def visit_Import(self, node: cst.Import) -> None:
            found.append(node)

    module.visit(Finder())
    return found


def _dotted(node: cst.BaseExpression) -> str:
    """The text of a chain of names."""
    return f"{_dotted(node.value)}.{node.attr.value}" if isinstance(node, cst.Attribute) else node.value \
        if isinstance(node, cst.Name) else ""


def _chain(name: str) -> cst.Name | cst.Attribute:
    """The expression for a dotted name."""
    head, _, last = name.rpartition(".")
    return cst.Attribute(_chain(head), cst.Name(last)) if head else cst.Name(last)


def _is_chain(node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


def _first(node: cst.BaseExpression) -> cst.Name:
    """The first name of a chain."""
    while isinstance(node, cst.Attribute):
        node = node.value
    assert isinstance(node, cst.Name)
    return node


def _as(name: str) -> cst.AsName:
    return cst.AsName(cst.Name(name))


def _without_last_comma(names: Sequence[cst.ImportAlias]) -> list[cst.ImportAlias]:
    return [*names[:-1], names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
