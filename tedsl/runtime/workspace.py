"""Temporary memory of kernels: 64-byte aligned blocks from a pool per thread, in LLVM IR.

A thread keeps up to 16 freed blocks and 256 MiB of them for its next allocations, so that a kernel called in a loop touches the
same pages again; they go back to the C library when the thread ends. A failed allocation is a null pointer,
which kernels turn into a MemoryError.
"""

from __future__ import annotations


def workspace_source(size_type: str = "i64") -> str:
    """Returns the IR of `tedsl_workspace_alloc(bytes)` and `tedsl_workspace_free(pointer)`.

    size_type: C's size_t on the machine, i64 or i32; the functions take 64 bits everywhere.
    """
    if size_type == "i64":
        return _SOURCE
    return _NARROW + _SOURCE.replace("declare i32 @posix_memalign(ptr, i64, i64)\n", "").replace(
        "@posix_memalign(", "@memalign(").replace("@calloc(i64, i64)", "@calloc(i32, i32)").replace(
        "@calloc(i64 1, i64 136)", "@calloc(i32 1, i32 136)")


# Allocates on machines with addresses of 32 bits; 12 is ENOMEM.
_NARROW = """
declare i32 @posix_memalign(ptr, i32, i32)

define internal i32 @memalign(ptr %out, i64 %alignment, i64 %bytes) nounwind {
entry:
  %fits = icmp ule i64 %bytes, 2147483647
  br i1 %fits, label %try, label %fail
try:
  %a = trunc i64 %alignment to i32
  %b = trunc i64 %bytes to i32
  %error = call i32 @posix_memalign(ptr %out, i32 %a, i32 %b)
  ret i32 %error
fail:
  ret i32 12
}
"""


# A block is a header of 64 bytes, which holds the payload's size, and the payload: pointers to the payload go around.
# A pool, made on a thread's first use: i64 bytes kept, then 16 pointers to free blocks or null.
_SOURCE = """
%Pool = type { i64, [16 x ptr] }
@key = internal global i32 -1
declare i32 @posix_memalign(ptr, i64, i64)
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)

define internal void @drop_pool(ptr %pool) nounwind {
entry:
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %slot = getelementptr %Pool, ptr %pool, i32 0, i32 1, i64 %k
  %block = load ptr, ptr %slot
  %none = icmp eq ptr %block, null
  br i1 %none, label %next, label %release
release:
  %base = getelementptr i8, ptr %block, i64 -64
  call void @free(ptr %base)
  br label %next
next:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, 16
  br i1 %more, label %each, label %done
done:
  call void @free(ptr %pool)
  ret void
}

; The pool of this thread; null when it cannot be made. The key is made once: of two threads that race, one's is left unused.
define internal ptr @this_pool() nounwind {
entry:
  %new = alloca i32, align 4
  %known = load atomic i32, ptr @key acquire, align 4
  %missing = icmp eq i32 %known, -1
  br i1 %missing, label %make, label %have
make:
  %error = call i32 @pthread_key_create(ptr %new, ptr @drop_pool)
  %made = icmp eq i32 %error, 0
  br i1 %made, label %publish, label %fail
publish:
  %mine = load i32, ptr %new
  %pair = cmpxchg ptr @key, i32 -1, i32 %mine seq_cst seq_cst
  br label %have
fail:
  ret ptr null
have:
  %key = load atomic i32, ptr @key acquire, align 4
  %pool = call ptr @pthread_getspecific(i32 %key)
  %absent = icmp eq ptr %pool, null
  br i1 %absent, label %create, label %done
create:
  %fresh = call ptr @calloc(i64 1, i64 136)
  %got = icmp ne ptr %fresh, null
  br i1 %got, label %keep, label %fail
keep:
  %set = call i32 @pthread_setspecific(i32 %key, ptr %fresh)
  ret ptr %fresh
done:
  ret ptr %pool
}

define ptr @tedsl_workspace_alloc(i64 %bytes) nounwind {
entry:
  %out = alloca ptr, align 8
  %negative = icmp slt i64 %bytes, 0
  br i1 %negative, label %fail, label %sized
sized:
  %plus = add i64 %bytes, 63
  %floored = and i64 %plus, -64
  %size = call i64 @llvm.umax.i64(i64 %floored, i64 64)
  %twice = shl i64 %size, 1
  %pool = call ptr @this_pool()
  %lost = icmp eq ptr %pool, null
  br i1 %lost, label %fresh, label %each
each:  ; the first kept block that is large enough, and not more than twice as large
  %k = phi i64 [ 0, %sized ], [ %k1, %next ]
  %slot = getelementptr %Pool, ptr %pool, i32 0, i32 1, i64 %k
  %block = load ptr, ptr %slot
  %none = icmp eq ptr %block, null
  br i1 %none, label %next, label %look
look:
  %head = getelementptr i8, ptr %block, i64 -64
  %has = load i64, ptr %head
  %large = icmp uge i64 %has, %size
  %close = icmp ule i64 %has, %twice
  %fits = and i1 %large, %close
  br i1 %fits, label %take, label %next
take:
  store ptr null, ptr %slot
  %kept = load i64, ptr %pool
  %less = sub i64 %kept, %has
  store i64 %less, ptr %pool
  ret ptr %block
next:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, 16
  br i1 %more, label %each, label %fresh
fresh:
  %total = add i64 %size, 64
  %error = call i32 @posix_memalign(ptr %out, i64 64, i64 %total)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %made, label %fail
made:
  %base = load ptr, ptr %out
  store i64 %size, ptr %base
  %payload = getelementptr i8, ptr %base, i64 64
  ret ptr %payload
fail:
  ret ptr null
}
declare i64 @llvm.umax.i64(i64, i64)

define void @tedsl_workspace_free(ptr %block) nounwind {
entry:
  %head = getelementptr i8, ptr %block, i64 -64
  %void = icmp eq ptr %block, null
  br i1 %void, label %done, label %begin
begin:
  %has = load i64, ptr %head
  %pool = call ptr @this_pool()
  %lost = icmp eq ptr %pool, null
  br i1 %lost, label %release, label %weigh
weigh:
  %kept = load i64, ptr %pool
  %sum = add i64 %kept, %has
  %heavy = icmp ugt i64 %sum, 268435456
  br i1 %heavy, label %release, label %each
each:
  %k = phi i64 [ 0, %weigh ], [ %k1, %next ]
  %slot = getelementptr %Pool, ptr %pool, i32 0, i32 1, i64 %k
  %old = load ptr, ptr %slot
  %open = icmp eq ptr %old, null
  br i1 %open, label %keep, label %next
keep:
  store ptr %block, ptr %slot
  store i64 %sum, ptr %pool
  ret void
next:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, 16
  br i1 %more, label %each, label %full
full:  ; sixteen blocks of other sizes: the first makes room, so that the pool follows what is used now
  %first = getelementptr %Pool, ptr %pool, i32 0, i32 1, i64 0
  %victim = load ptr, ptr %first
  %victim_base = getelementptr i8, ptr %victim, i64 -64
  %victim_size = load i64, ptr %victim_base
  call void @free(ptr %victim_base)
  store ptr %block, ptr %first
  %rest = sub i64 %sum, %victim_size
  store i64 %rest, ptr %pool
  ret void
release:
  call void @free(ptr %head)
  br label %done
done:
  ret void
}
"""
