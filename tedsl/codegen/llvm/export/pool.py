"""The thread pool of a library, in LLVM IR: that of `runtime/parallel.py`, its memory in the library, with an interface for C.

    int32_t PREFIX_set_num_threads(int32_t)      0, or BAD_VALUE for a number out of range
    int32_t PREFIX_get_num_threads(void)
    void PREFIX_set_launcher(launcher, void *context)    runs parallel loops instead of the pool; NULL: the pool again

Without a call of the first, TEDSL_NUM_THREADS says how many threads there are, else one for each processor that the process may
use. The child of a fork makes threads of its own when it needs them.
"""

from __future__ import annotations

from tedsl.codegen.llvm.types import global_name
from tedsl.processors import MAX_THREADS
from tedsl.runtime.parallel import long_type, pool_code

FUNCTIONS = ("set_num_threads", "get_num_threads", "set_launcher")


def library_pool(machine: str, prefix: str, bad_value: int) -> str:
    """Returns the IR of the pool of a library whose symbols begin with `prefix`; TedslError where `machine` has no pool."""
    pool = pool_code(machine, "internal global %State zeroinitializer, align 64", "define internal i32 @launch")
    names = {name.upper(): global_name(f"{prefix}_{name}") for name in FUNCTIONS}
    code = _INTERFACE.replace("MAX_THREADS", str(MAX_THREADS)).replace("BAD_VALUE", str(bad_value))
    for name, symbol in names.items():
        code = code.replace(f"@{name}", symbol)
    return pool + code.replace("LONG", long_type(machine))


# The first word of the state is the number of threads: 0 until the first loop or the first call of the interface finds it out.
# glibc exports the function that registers handlers of forks under one name, musl under the other.
_INTERFACE = """
@launcher = internal global ptr null
@launcher_context = internal global ptr null
@registered = internal global i32 0
@variable = private unnamed_addr constant [18 x i8] c"TEDSL_NUM_THREADS\\00"
declare ptr @getenv(ptr)
declare i64 @strtoll(ptr, ptr, i32)
declare extern_weak i32 @__register_atfork(ptr, ptr, ptr, ptr)
declare extern_weak i32 @pthread_atfork(ptr, ptr, ptr)
declare i64 @llvm.ctpop.i64(i64)

define i32 @tedsl_parallel_launch(ptr %body, ptr %env, i64 %count) nounwind {
entry:
  %other = load atomic ptr, ptr @launcher acquire, align 8
  %own = icmp eq ptr %other, null
  br i1 %own, label %pool, label %given
given:
  %context = load ptr, ptr @launcher_context
  %empty = icmp sle i64 %count, 0
  br i1 %empty, label %nothing, label %some
nothing:
  ret i32 0
some:
  %answer = call i32 %other(ptr %context, ptr %body, ptr %env, i64 %count)
  ret i32 %answer
pool:
  %threads = call i32 @GET_NUM_THREADS()
  %status = call i32 @launch(ptr %body, ptr %env, i64 %count)
  ret i32 %status
}

define i32 @GET_NUM_THREADS() nounwind {
entry:
  %known = load atomic i32, ptr @tedsl_pool_state monotonic, align 4
  %unset = icmp eq i32 %known, 0
  br i1 %unset, label %begin, label %done
begin:
  %wanted = call i32 @default_threads()
  %pair = cmpxchg ptr @tedsl_pool_state, i32 0, i32 %wanted seq_cst seq_cst
  call void @watch_forks()
  %now = load atomic i32, ptr @tedsl_pool_state monotonic, align 4
  ret i32 %now
done:
  ret i32 %known
}

define i32 @SET_NUM_THREADS(i32 %count) nounwind {
entry:
  %large = icmp sgt i32 %count, MAX_THREADS
  %small = icmp slt i32 %count, 1
  %bad = or i1 %large, %small
  br i1 %bad, label %refuse, label %set
refuse:
  ret i32 BAD_VALUE
set:
  store atomic i32 %count, ptr @tedsl_pool_state seq_cst, align 4
  call void @watch_forks()
  ret i32 0
}

define void @SET_LAUNCHER(ptr %given, ptr %context) nounwind {
  store ptr %context, ptr @launcher_context
  store atomic ptr %given, ptr @launcher release, align 8
  ret void
}

define internal i32 @default_threads() nounwind {
entry:
  %end = alloca ptr, align 8
  %mask = alloca [16 x i64], align 8
  %text = call ptr @getenv(ptr @variable)
  %absent = icmp eq ptr %text, null
  br i1 %absent, label %count, label %read
read:
  %number = call i64 @strtoll(ptr %text, ptr %end, i32 10)
  %behind = load ptr, ptr %end
  %last = load i8, ptr %behind
  %whole = icmp eq i8 %last, 0
  %small = icmp sge i64 %number, 1
  %large = icmp sle i64 %number, MAX_THREADS
  %within = and i1 %small, %large
  %good = and i1 %whole, %within
  br i1 %good, label %take, label %count
take:
  %given = trunc i64 %number to i32
  ret i32 %given
count:
  call void @llvm.memset.p0.LONG(ptr %mask, i8 0, LONG 128, i1 false)
  %a = call i32 @sched_getaffinity(i32 0, LONG 128, ptr %mask)
  br label %each
each:
  %k = phi i64 [ 0, %count ], [ %k1, %each ]
  %sum = phi i64 [ 0, %count ], [ %more, %each ]
  %word_at = getelementptr [16 x i64], ptr %mask, i64 0, i64 %k
  %word = load i64, ptr %word_at, align 8
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %more = add i64 %sum, %bits
  %k1 = add i64 %k, 1
  %left = icmp ult i64 %k1, 16
  br i1 %left, label %each, label %counted
counted:
  %one = icmp eq i64 %more, 0
  %least = select i1 %one, i64 1, i64 %more
  %most = call i64 @llvm.umin.i64(i64 %least, i64 MAX_THREADS)
  %result = trunc i64 %most to i32
  ret i32 %result
}

define internal void @watch_forks() nounwind {
entry:
  %first = cmpxchg ptr @registered, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %first, 1
  br i1 %mine, label %find, label %done
find:
  %glibc = icmp ne ptr @__register_atfork, null
  br i1 %glibc, label %by_glibc, label %else
by_glibc:
  %g = call i32 @__register_atfork(ptr null, ptr null, ptr @after_fork, ptr null)
  br label %done
else:
  %musl = icmp ne ptr @pthread_atfork, null
  br i1 %musl, label %by_musl, label %done
by_musl:
  %m = call i32 @pthread_atfork(ptr null, ptr null, ptr @after_fork)
  br label %done
done:
  ret void
}

; In the child there are no workers. A loop that another thread ran is gone with that thread; one that the forking thread itself
; is in, which a function that the kernel calls may do, keeps the pool busy: loops run serially then, as nested ones do.
define internal void @after_fork() nounwind {
  %busy_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 1
  %caller_at = getelementptr %State, ptr @tedsl_pool_state, i32 0, i32 17
  %threads = load atomic i32, ptr @tedsl_pool_state monotonic, align 4
  %busy = load atomic i32, ptr %busy_at monotonic, align 4
  %caller = load LONG, ptr %caller_at, align 8
  %self = call LONG @pthread_self()
  %mine = icmp eq LONG %caller, %self
  %held = select i1 %mine, i32 %busy, i32 0
  %end = getelementptr %State, ptr @tedsl_pool_state, i32 1
  %begin_number = ptrtoint ptr @tedsl_pool_state to LONG
  %end_number = ptrtoint ptr %end to LONG
  %bytes = sub LONG %end_number, %begin_number
  call void @llvm.memset.p0.LONG(ptr @tedsl_pool_state, i8 0, LONG %bytes, i1 false)
  store atomic i32 %threads, ptr @tedsl_pool_state monotonic, align 4
  store atomic i32 %held, ptr %busy_at monotonic, align 4
  ret void
}
"""
