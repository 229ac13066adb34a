"""The thread pool behind `parallel` loops: one per process, in LLVM IR, shared by every kernel.

A region of `count` iterations is cut into min(threads, count) equal chunks; chunk k always has the same iterations, so that
results do not depend on timing. The caller executes chunk 0, worker k chunk k; a chunk that its worker has not begun when the
caller is done with its own is the caller's: a worker that sleeps needs 50 to 100 us to begin, one whose processor another
program has, milliseconds. Between regions workers spin briefly and then sleep in a futex, so that an idle pool costs nothing;
at exit they stay asleep. A caller that waits for the last chunks spins, then yields its processor for a while, and sleeps
only then. A region that finds the pool busy (a nested one, or that of another Python thread) runs serially on its caller.
After a fork the child starts without workers and creates new ones.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import threading
from typing import Any

from tedsl.errors import ArgumentError, TedslError
from tedsl.processors import MAX_THREADS, default_threads
from tedsl.record import record

_CALLER, _WORKERS = 384, 512  # offsets in the memory of the pool
_STATE_BYTES = _WORKERS + (8 + 64) * (MAX_THREADS + 1)


@record
class _Machine:
    """An architecture: the number of the system call futex; how to pause in a loop that waits, and the declaration for that;
    the type of C's long, in which sizes, threads and arguments of system calls travel.
    """

    futex: int
    pause: str
    declared: str = ""
    long: str = "i64"


_MACHINES = {
    "x86_64": _Machine(202, "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": _Machine(98, "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
    "riscv64": _Machine(98, 'fence syncscope("singlethread") seq_cst'),  # `pause` needs an extension
    "arm": _Machine(240, "call void @llvm.arm.hint(i32 1)", "declare void @llvm.arm.hint(i32)", "i32"),
}
_state = 0  # address of the pool's memory; see the layout in the IR below
_wanted: int | None = None
_torn = ""  # see torn_from_region


def set_num_threads(count: int) -> None:
    """Sets the number of threads that parallel loops use from now on, the caller included; ArgumentError for counts out of
    range.
    """
    global _wanted
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_THREADS:
        raise ArgumentError(f"the number of threads is an int from 1 to {MAX_THREADS}, not {count!r}")
    _wanted = count
    if _state:
        ctypes.c_int32.from_address(_state).value = count


def get_num_threads() -> int:
    """Returns the number of threads that parallel loops use."""
    return _wanted if _wanted is not None else default_threads()


def state_address() -> int:
    """Returns the address of the pool's memory, allocated on first use and never freed: workers read it until the process ends.
    """
    global _state
    if not _state:
        allocate: Any = ctypes.pythonapi.PyMem_RawCalloc
        allocate.restype, allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
        _state = -(-allocate(1, _STATE_BYTES + 64) // 64) * 64
        ctypes.c_int32.from_address(_state).value = get_num_threads()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget_workers)
    return _state


def _forget_workers() -> None:
    """Resets the pool in the child of a fork, where the threads of the parent do not exist.

    A child forked by a callback of a parallel loop runs its kernels serially, as nested loops run, until the callback ends.
    """
    global _torn
    part = _part_in_region(threading.get_ident())
    _torn = part or _torn
    ctypes.memset(_state, 0, _STATE_BYTES)
    ctypes.c_int32.from_address(_state).value = 1 if part else get_num_threads()


def _part_in_region(thread: int) -> str:
    """Returns the role of the thread in the present parallel region: "caller", "worker", or "" for none."""
    if not ctypes.c_int32.from_address(_state + 4).value:
        return ""
    if ctypes.c_uint64.from_address(_state + _CALLER).value == thread:
        return "caller"
    started = ctypes.c_int32.from_address(_state + 8).value
    workers = (ctypes.c_uint64 * (MAX_THREADS + 1)).from_address(_state + _WORKERS)
    return "worker" if thread in workers[1:started + 1] else ""


def torn_from_region() -> str:
    """Tells whether this process was forked inside a parallel loop, so that it lacks the loop's other threads: returns "caller"
    or "worker" for the thread that forked, "" if it was not.
    """
    return _torn


def pool_source() -> str:
    """Returns the IR of the pool of this process: `i32 @tedsl_parallel_launch(ptr body, ptr env, i64 count)`."""
    return pool_code(platform.machine(), "external global %State", "define i32 @tedsl_parallel_launch")


def pool_code(machine: str, state: str, launch: str) -> str:
    """Returns the IR of a pool for `machine`, an architecture as triples name it; TedslError for one that has no pool.

    state: how its memory is declared, of the type %State; launch: the head of the function that runs a loop.
    """
    known = _MACHINES.get("arm" if re.fullmatch("(arm|thumb)v[78].*", machine) else machine)
    if known is None:
        raise TedslError(f"parallel loops run on x86-64, AArch64, ARMv7 and 64-bit RISC-V, not on {machine}",
                         hint="leave `parallel` out here")
    return known.declared + _POOL.replace("PAUSE", known.pause).replace("SYS_FUTEX", f"LONG {known.futex}") \
        .replace("MEMORY", state).replace("LAUNCH", launch).replace("LONG", known.long)


def long_type(machine: str) -> str:
    """Returns the type of C's long on `machine`, which has a pool."""
    return "i64" if "64" in machine else "i32"


# Layout of the state, one cache line for what changes together:
#   0 i32 threads wanted   4 i32 busy   8 i32 workers started
#  64 i32 generation: a counter << 8 | number of chunks, written as one word so that a worker that takes no part in a region
#     never reads the job, which may be the next one's   68 i32 sleeping workers
# 128 i32 pending chunks   132 i32 the caller sleeps   136 i32 status, the largest of all chunks
# 192 ptr body   200 ptr env (8 bytes also where pointers have 4)   208 i64 count   216 i32 processor of the caller
#     220 i32 regions in a row of which the caller took a worker's chunk
# 256 the processors that the caller may use, 128 bytes: a worker that finds itself on the caller's processor leaves it. Linux
#     may wake a worker beside its caller and leave both there for many regions, each as slow as a serial loop.
# 384 pthread_t of the caller   512 pthread_t of each worker, by its number: for a process that one of them forks. Before a
#     worker runs, its place has the generation from which it starts
# 2560 for each chunk a line with an i32: the generation in which it is free; whoever swaps it for 0 executes the chunk. A
#     worker that comes late finds 0, or a later generation than its own, and waits on
# A sleeper first announces itself, then futex_wait compares the word again; the other side first changes the word, then looks
# for sleepers: with sequentially consistent order one of them sees the other, and no wake-up is lost.
_POOL = """
%State = type { i32, i32, i32, [13 x i32], i32, i32, [14 x i32], i32, i32, i32, [13 x i32], i64, i64, i64, i32, i32, [8 x i32],
                [16 x i64], i64, [15 x i64], [256 x i64], [256 x [16 x i32]] }
@tedsl_pool_state = MEMORY
declare LONG @syscall(LONG, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(LONG)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare LONG @pthread_self()
declare i32 @sched_getcpu()
declare i32 @sched_yield()
declare i32 @sched_getaffinity(i32, LONG, ptr)
declare i32 @sched_setaffinity(i32, LONG, ptr)

define internal void @wait(ptr %word, i32 %seen) nounwind {
  %r = call LONG (LONG, ...) @syscall(SYS_FUTEX, ptr %word, LONG 128, i32 %seen, ptr null, ptr null, LONG 0)
  ret void
}

define internal void @wake(ptr %word, i32 %how_many) nounwind {
  %r = call LONG (LONG, ...) @syscall(SYS_FUTEX, ptr %word, LONG 129, i32 %how_many, ptr null, ptr null, LONG 0)
  ret void
}

; Returns when *word differs from %seen: spins, then gives its processor to others up to %yields times, then sleeps with
; *sleepers raised. A caller that sleeps while a worker wakes or moves (50 to 100 us) is woken beside that worker where Linux
; takes the idle processors of a virtual machine for preempted ones; then the worker moves again, in every region.
define internal void @await_change(ptr %word, i32 %seen, ptr %sleepers, i32 %yields) nounwind {
entry:
  %most = add i32 %yields, 1000
  br label %spin
spin:
  %k = phi i32 [ 0, %entry ], [ %k1, %again ], [ %k1, %yield ]
  %now = load atomic i32, ptr %word acquire, align 4
  %same = icmp eq i32 %now, %seen
  br i1 %same, label %count, label %done
count:
  %k1 = add i32 %k, 1
  %early = icmp ult i32 %k, 1000
  br i1 %early, label %again, label %late
again:
  PAUSE
  br label %spin
late:
  %more = icmp ult i32 %k, %most
  br i1 %more, label %yield, label %sleep
yield:
  %y = call i32 @sched_yield()
  br label %spin
sleep:
  %before = atomicrmw add ptr %sleepers, i32 1 seq_cst
  call void @wait(ptr %word, i32 %seen)
  %after = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  %then = load atomic i32, ptr %word seq_cst, align 4
  %still = icmp eq i32 %then, %seen
  br i1 %still, label %sleep, label %done
done:
  ret void
}

; Moves this worker off the processor of the caller, if it stands there and may run elsewhere.
define internal void @make_room() nounwind {
entry:
  %mask = alloca [16 x i64], align 8
  %there_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 14
  %allowed_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 17
  %here = call i32 @sched_getcpu()
  %there = load atomic i32, ptr %there_at monotonic, align 4
  %same = icmp eq i32 %here, %there
  %known = icmp ult i32 %here, 1024
  %crowded = and i1 %same, %known
  br i1 %crowded, label %leave, label %done
leave:
  call void @llvm.memcpy.p0.p0.LONG(ptr %mask, ptr %allowed_at, LONG 128, i1 false)
  %index = lshr i32 %here, 6
  %word_at = getelementptr [16 x i64], ptr %mask, i32 0, i32 %index
  %word = load i64, ptr %word_at, align 8
  %bit32 = and i32 %here, 63
  %bit = zext i32 %bit32 to i64
  %one = shl i64 1, %bit
  %others = xor i64 %one, -1
  %rest = and i64 %word, %others
  store i64 %rest, ptr %word_at, align 8
  ; without another processor the mask is empty: the call fails and nothing changes
  %r = call i32 @sched_setaffinity(i32 0, LONG 128, ptr %mask)
  br label %done
done:
  ret void
}
declare void @llvm.memcpy.p0.p0.LONG(ptr, ptr, LONG, i1)

define internal i32 @run_chunk(i64 %index, i64 %chunks) nounwind {
  %body_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 11
  %env_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 12
  %count_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 13
  %body = load ptr, ptr %body_at
  %env = load ptr, ptr %env_at
  %count = load i64, ptr %count_at
  ; the first `rest` chunks have one iteration more: no product can overflow
  %size = udiv i64 %count, %chunks
  %rest = urem i64 %count, %chunks
  %low = call i64 @llvm.umin.i64(i64 %index, i64 %rest)
  %base = mul i64 %index, %size
  %begin = add i64 %base, %low
  %longer = icmp ult i64 %index, %rest
  %one = zext i1 %longer to i64
  %length = add i64 %size, %one
  %end = add i64 %begin, %length
  %status = call i32 %body(ptr %env, i64 %begin, i64 %end)
  %status_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 9
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %note, label %out
note:
  %old = atomicrmw umax ptr %status_at, i32 %status seq_cst
  br label %out
out:
  ret i32 %status
}
declare i64 @llvm.umin.i64(i64, i64)

; Takes a chunk of the region %generation, if nobody has; says whether it did.
define internal i1 @claim(i64 %index, i32 %generation) nounwind {
  %free_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 21, i64 %index, i32 0
  %pair = cmpxchg ptr %free_at, i32 %generation, i32 0 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %pair, 1
  ret i1 %mine
}

; %start is the worker's chunk number.
define internal ptr @worker(ptr %start) nounwind {
entry:
  %index = ptrtoint ptr %start to i64
  %generation_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 4
  %sleepers_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 5
  %pending_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 7
  %caller_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 8
  %self_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 20, i64 %index
  %first64 = load i64, ptr %self_at, align 8
  %first = trunc i64 %first64 to i32
  %self = call LONG @pthread_self()
  store i64 0, ptr %self_at, align 8
  store LONG %self, ptr %self_at, align 8
  br label %next
next:
  %seen = phi i32 [ %first, %entry ], [ %now, %joined ], [ %now, %work ], [ %now, %run ], [ %now, %poke ]
  call void @await_change(ptr %generation_at, i32 %seen, ptr %sleepers_at, i32 0)
  %now = load atomic i32, ptr %generation_at acquire, align 4
  %chunks32 = and i32 %now, 255
  %chunks = zext i32 %chunks32 to i64
  %mine = icmp ult i64 %index, %chunks
  br i1 %mine, label %work, label %joined
joined:
  br label %next
work:
  call void @make_room()
  %got = call i1 @claim(i64 %index, i32 %now)
  br i1 %got, label %run, label %next
run:
  %status = call i32 @run_chunk(i64 %index, i64 %chunks)
  %before = atomicrmw sub ptr %pending_at, i32 1 seq_cst
  %last = icmp eq i32 %before, 1
  %asleep = load atomic i32, ptr %caller_at seq_cst, align 4
  %waits = icmp ne i32 %asleep, 0
  %wake = and i1 %last, %waits
  br i1 %wake, label %poke, label %next
poke:
  call void @wake(ptr %pending_at, i32 1)
  br label %next
}

; Makes workers until there are %wanted; returns how many there are. All signals stay with the threads of the interpreter.
define internal i32 @start_workers(i32 %wanted) nounwind {
entry:
  %all = alloca [128 x i8], align 8
  %old = alloca [128 x i8], align 8
  %thread = alloca i64, align 8
  %started_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 2
  %generation_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 4
  %have = load i32, ptr %started_at
  %enough = icmp uge i32 %have, %wanted
  br i1 %enough, label %done, label %begin
begin:
  %allowed_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 17
  %a = call i32 @sched_getaffinity(i32 0, LONG 128, ptr %allowed_at)
  call void @llvm.memset.p0.LONG(ptr %all, i8 -1, LONG 128, i1 false)
  %m1 = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %make
make:
  %n = phi i32 [ %have, %begin ], [ %index, %made ]
  %index = add i32 %n, 1
  %generation = load atomic i32, ptr %generation_at seq_cst, align 4
  %g64 = zext i32 %generation to i64
  %i64 = zext i32 %index to i64
  %from_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 20, i64 %i64
  store i64 %g64, ptr %from_at, align 8
  %start = inttoptr i64 %i64 to ptr
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %start)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %made, label %finish
made:
  %id = load LONG, ptr %thread
  %d = call i32 @pthread_detach(LONG %id)
  store i32 %index, ptr %started_at
  %more = icmp ult i32 %index, %wanted
  br i1 %more, label %make, label %finish
finish:
  %m2 = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  br label %done
done:
  %total = load i32, ptr %started_at
  ret i32 %total
}
declare void @llvm.memset.p0.LONG(ptr, i8, LONG, i1)

LAUNCH(ptr %body, ptr %env, i64 %count) nounwind {
entry:
  %busy_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 1
  %empty = icmp sle i64 %count, 0
  br i1 %empty, label %nothing, label %some
nothing:
  ret i32 0
some:
  %threads = load atomic i32, ptr @tedsl_pool_state monotonic, align 4
  %threads64 = zext i32 %threads to i64
  %want64 = call i64 @llvm.umin.i64(i64 %threads64, i64 %count)
  %single = icmp ule i64 %want64, 1
  br i1 %single, label %serial, label %claim
claim:
  %pair = cmpxchg ptr %busy_at, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %prepare, label %serial
serial:
  %alone = call i32 %body(ptr %env, i64 0, i64 %count)
  ret i32 %alone
prepare:
  %want = trunc i64 %want64 to i32
  %helpers = sub i32 %want, 1
  %have = call i32 @start_workers(i32 %helpers)
  %fewer = icmp ult i32 %have, %helpers
  %use = select i1 %fewer, i32 %have, i32 %helpers
  %chunks = add i32 %use, 1
  %generation_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 4
  %sleepers_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 5
  %pending_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 7
  %caller_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 8
  %status_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 9
  %body_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 11
  %env_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 12
  %count_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 13
  store ptr %body, ptr %body_at
  store ptr %env, ptr %env_at
  store i64 %count, ptr %count_at
  %self = call LONG @pthread_self()
  %self_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 18
  store LONG %self, ptr %self_at, align 8
  %cpu_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 14
  %cpu = call i32 @sched_getcpu()
  store atomic i32 %cpu, ptr %cpu_at monotonic, align 4
  store atomic i32 0, ptr %status_at monotonic, align 4
  store atomic i32 %use, ptr %pending_at monotonic, align 4
  %old = load atomic i32, ptr %generation_at monotonic, align 4
  %kept = and i32 %old, -256
  %counter = add i32 %kept, 256
  %new = or i32 %counter, %chunks
  %use64 = zext i32 %use to i64
  br label %free
free:
  %k = phi i64 [ 1, %prepare ], [ %k1, %freed ]
  %k1 = add i64 %k, 1
  %free_done = icmp ugt i64 %k, %use64
  br i1 %free_done, label %publish, label %freed
freed:
  %free_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 21, i64 %k, i32 0
  store atomic i32 %new, ptr %free_at release, align 4
  br label %free
publish:
  %swapped = atomicrmw xchg ptr %generation_at, i32 %new seq_cst
  %sleeping = load atomic i32, ptr %sleepers_at seq_cst, align 4
  %any = icmp ne i32 %sleeping, 0
  br i1 %any, label %rouse, label %work
rouse:
  call void @wake(ptr %generation_at, i32 2147483647)
  br label %work
work:
  %chunks64 = zext i32 %chunks to i64
  %mine_status = call i32 @run_chunk(i64 0, i64 %chunks64)
  br label %look
look:
  %c = phi i64 [ 1, %work ], [ %c1, %taken ], [ %c1, %take ]
  %took = phi i1 [ false, %work ], [ %took, %taken ], [ true, %take ]
  %c1 = add i64 %c, 1
  %looked = icmp ugt i64 %c, %use64
  br i1 %looked, label %tell, label %taken
taken:
  %unclaimed = call i1 @claim(i64 %c, i32 %new)
  br i1 %unclaimed, label %take, label %look
take:
  %other_status = call i32 @run_chunk(i64 %c, i64 %chunks64)
  %still = atomicrmw sub ptr %pending_at, i32 1 seq_cst
  br label %look
tell:
  %row_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 15
  %row = load i32, ptr %row_at
  %row1 = add i32 %row, 1
  %longer_row = select i1 %took, i32 %row1, i32 0
  %often = icmp uge i32 %longer_row, 8
  %row2 = select i1 %often, i32 0, i32 %longer_row
  store i32 %row2, ptr %row_at
  ; a worker that never begins may stand behind its caller, on the same processor: there it makes room once it runs
  br i1 %often, label %give_way, label %join
give_way:
  %y = call i32 @sched_yield()
  br label %join
join:
  %left = load atomic i32, ptr %pending_at acquire, align 4
  %over = icmp eq i32 %left, 0
  br i1 %over, label %joined, label %await
await:
  call void @await_change(ptr %pending_at, i32 %left, ptr %caller_at, i32 1000)
  br label %join
joined:
  %status = load atomic i32, ptr %status_at seq_cst, align 4
  store atomic i32 0, ptr %busy_at seq_cst, align 4
  ret i32 %status
}
"""
