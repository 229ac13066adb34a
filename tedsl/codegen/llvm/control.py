"""Leaving a function: failures, their status, and what is freed and fenced on the way out."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter


def expected_to_hold(out: Emitter) -> str:
    """Guards made by lowering hold nearly always."""
    cache = out.module.cache
    if "likely" not in cache:
        cache["likely"] = out.module.add_metadata('!{!"branch_weights", i32 1000, i32 1}')
    return f", !prof {cache['likely']}"


def fail_unless(out: Emitter, condition: str, status: str) -> None:
    """Leaves the function with `status` unless the i1 `condition`."""
    failed, fine = out.fresh("failed"), out.fresh("fine")
    out.line(f"br i1 {condition}, label %{fine}, label %{failed}{expected_to_hold(out)}")
    out.start_block(failed)
    leave(out, status)
    out.start_block(fine)


def leave(out: Emitter, status: str) -> None:
    """Frees what this function allocated and returns."""
    for pointer in reversed(out.workspaces):
        out.line(f"call void {free_function(out)}(ptr {pointer})")
    if out.stores_nontemporal and out.target.arch == "x86-64":
        symbol = out.module.declare("llvm.x86.sse.sfence", "declare void @llvm.x86.sse.sfence()")
        out.line(f"call void {symbol}()")
    out.line(f"ret i32 {status}")


def free_function(out: Emitter) -> str:
    """The function that gives a workspace back."""
    return out.module.declare("tedsl_workspace_free", "declare void @tedsl_workspace_free(ptr)")
