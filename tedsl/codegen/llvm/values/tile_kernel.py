"""The function in LLVM IR that multiplies matrices on the tile registers of AMX.

It has eight tiles of up to 16 rows of 64 bytes. A block of the result is up to 32 x 32 numbers of 32 bits: four tiles, that
stay in registers over all terms, beside two of the first matrix and two of the second. A step adds up to 64 bytes of terms:

    c[r0, c0] c[r0, c1]      a[r0]
    c[r1, c0] c[r1, c1]  +=  a[r1]  times  b[c0] b[c1]

Rows are dealt out evenly to as few tiles as hold them, two to a block, columns by 16. The shapes of all tiles are one
configuration, which takes as long as some twenty products of tiles (0.12 us on Emerald Rapids), so that blocks of one shape
follow each other: those of the last rows, which may be fewer, come after all others. Terms that fill no whole steps are the
second of two passes over the result. A tile that has no rows or columns is not used.
"""

from __future__ import annotations

from collections.abc import Iterator

from tedsl.ir.calls.tile_products import PANEL

STEP = 64  # bytes of terms
_TILE = 16  # rows of a tile; columns of 32 bits
_PRODUCTS = {("uint8", "int8"): "tdpbusd", ("int8", "int8"): "tdpbssd", ("int8", "uint8"): "tdpbsud",
             ("uint8", "uint8"): "tdpbuud", ("bfloat16", "bfloat16"): "tdpbf16ps"}
# Linux lets a process use the tiles after it has asked for them: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA), once.
_ALLOWED = """@tedsl_tiles = internal global i8 0
define internal i1 @tedsl_tiles_allowed() noinline nounwind {
  %known = load atomic i8, ptr @tedsl_tiles monotonic, align 1
  %is_known = icmp ne i8 %known, 0
  br i1 %is_known, label %done, label %ask
ask:
  %failed = call i64 (i64, ...) @syscall(i64 158, i64 4131, i64 18)
  %granted = icmp eq i64 %failed, 0
  %kept = zext i1 %granted to i8
  store atomic i8 %kept, ptr @tedsl_tiles monotonic, align 1
  br label %done
done:
  %is_allowed = phi i1 [ true, %0 ], [ %granted, %ask ]
  ret i1 %is_allowed
}
"""
SYSTEM_CALL = "declare i64 @syscall(i64, ...)"
ALLOWED = "tedsl_tiles_allowed", _ALLOWED  # the function that tells whether this process may use the tiles


def tile_kernel(left: str, right: str, loops: int) -> tuple[str, dict[str, str], str]:
    """Returns the function for matrices of these dtypes: its name, the declarations that it needs by name, and its text.

        void f(ptr c, ptr a, ptr b, i64 rows, i64 columns, i64 terms, i64 c_row, i64 c_panel, i64 a_row, i64 b_group,
               i64 b_panel, i1 from_zero, {i64 extent, i64 a_step, i64 b_step} for each of `loops` loops around the terms)

    All steps and `terms` are in bytes. b_group: between groups of 4 bytes of terms, in which the second matrix lies; c_panel,
    b_panel: between panels of 32 columns.
    """
    product = _PRODUCTS[left, right]
    name = f"tedsl_tiles_{left}_{right}_{loops}"
    tiles = {f"llvm.x86.{short}": f"declare void @llvm.x86.{short}({types})" for short, types in (
        ("ldtilecfg", "ptr"), ("tilerelease", ""), ("tilezero", "i8 immarg"), ("tileloadd64", "i8 immarg, ptr, i64"),
        ("tilestored64", "i8 immarg, ptr, i64"), (product, "i8 immarg, i8 immarg, i8 immarg"))}
    around = "".join(f", i64 %n{k}, i64 %na{k}, i64 %nb{k}" for k in range(loops))
    header = (f"define internal void @{name}(ptr %c, ptr %a, ptr %b, i64 %m, i64 %n, i64 %terms, i64 %c_row, i64 %c_panel, "
              f"i64 %a_row, i64 %b_group, i64 %b_panel, i1 %from_zero{around}) noinline nounwind {{")
    return name, tiles, "\n".join([header, *_body(product, loops), "}", ""])


def _body(product: str, loops: int) -> Iterator[str]:
    yield f"""entry:
  %shapes = alloca [64 x i8], align 64
  call void @llvm.memset.p0.i64(ptr align 64 %shapes, i8 0, i64 64, i1 false)
  store i8 1, ptr %shapes, align 64
  %some_rows = icmp sgt i64 %m, 0
  %some_columns = icmp sgt i64 %n, 0
  %some = and i1 %some_rows, %some_columns
  br i1 %some, label %begin, label %nothing
nothing:
  ret void
begin:
  %words = lshr i64 %terms, 2
  %t63 = add i64 %terms, {STEP - 1}
  %steps_up = udiv i64 %t63, {STEP}
  %uneven = urem i64 %words, %steps_up
  %is_even = icmp eq i64 %uneven, 0
  %even_step = udiv i64 %terms, %steps_up
  %whole_steps = udiv i64 %terms, {STEP}
  %left_over = urem i64 %terms, {STEP}
  %m15 = add i64 %m, {_TILE - 1}
  %tiles = udiv i64 %m15, {_TILE}
  %mt = add i64 %m, %tiles
  %mt1 = sub i64 %mt, 1
  %rows_of_tile = udiv i64 %mt1, %tiles
  %two = shl i64 %rows_of_tile, 1
  %tall = call i64 @llvm.umin.i64(i64 %two, i64 %m)
  %mb = add i64 %m, %tall
  %mb1 = sub i64 %mb, 1
  %blocks = udiv i64 %mb1, %tall
  %before_last = sub i64 %blocks, 1
  %rows_before = mul i64 %before_last, %tall
  %last_rows = sub i64 %m, %rows_before
  %all_alike = icmp eq i64 %last_rows, %tall
  %n31 = add i64 %n, {PANEL - 1}
  %panels = udiv i64 %n31, {PANEL}
  br label %pass
pass:
  %which = phi i64 [ 0, %begin ], [ 1, %pass_end ]
  %shape0 = phi i64 [ 0, %begin ], [ %shape_p, %pass_end ]
  %second = icmp eq i64 %which, 1
  %even_or_whole = select i1 %is_even, i64 %even_step, i64 {STEP}
  %step = select i1 %second, i64 %left_over, i64 %even_or_whole
  %many = select i1 %is_even, i64 %steps_up, i64 %whole_steps
  %steps = select i1 %second, i64 1, i64 %many
  %skipped = mul i64 %whole_steps, {STEP}
  %skip_a = select i1 %second, i64 %skipped, i64 0
  %skipped_groups = lshr i64 %skip_a, 2
  %skip_b = mul i64 %skipped_groups, %b_group
  %a_pass = getelementptr i8, ptr %a, i64 %skip_a
  %b_pass = getelementptr i8, ptr %b, i64 %skip_b
  %groups = lshr i64 %step, 2
  %b_step = mul i64 %groups, %b_group
  %first = xor i1 %second, true
  %clears = and i1 %from_zero, %first
  %has_steps = icmp ne i64 %steps, 0
  br i1 %has_steps, label %part, label %pass_end
part:
  %is_last = phi i1 [ false, %pass ], [ true, %part_end ]
  %shape1 = phi i64 [ %shape0, %pass ], [ %shape_q, %part_end ]
  %whole_blocks = select i1 %all_alike, i64 %blocks, i64 %before_last
  %count_last = select i1 %all_alike, i64 0, i64 1
  %count = select i1 %is_last, i64 %count_last, i64 %whole_blocks
  %row_begin = select i1 %is_last, i64 %rows_before, i64 0
  %height = select i1 %is_last, i64 %last_rows, i64 %tall
  %r0 = call i64 @llvm.umin.i64(i64 %height, i64 %rows_of_tile)
  %r1 = sub i64 %height, %r0
  %has_r1 = icmp ne i64 %r1, 0
  %c_below = mul i64 %r0, %c_row
  %a_below = mul i64 %r0, %a_row
  %c_next = mul i64 %height, %c_row
  %a_next = mul i64 %height, %a_row
  %c_begin = mul i64 %row_begin, %c_row
  %a_begin = mul i64 %row_begin, %a_row
  %c_part = getelementptr i8, ptr %c, i64 %c_begin
  %a_part = getelementptr i8, ptr %a_pass, i64 %a_begin
  %has_blocks = icmp ne i64 %count, 0
  br i1 %has_blocks, label %panel, label %part_end
panel:
  %p = phi i64 [ 0, %part ], [ %p1, %panel_end ]
  %shape2 = phi i64 [ %shape1, %part ], [ %shape_n, %panel_end ]
  %column = mul i64 %p, {PANEL}
  %column_left = sub i64 %n, %column
  %wide = call i64 @llvm.umin.i64(i64 %column_left, i64 {PANEL})
  %c0 = call i64 @llvm.umin.i64(i64 %wide, i64 {_TILE})
  %c1 = sub i64 %wide, %c0
  %has_c1 = icmp ne i64 %c1, 0
  %c_column = mul i64 %p, %c_panel
  %c_at = getelementptr i8, ptr %c_part, i64 %c_column
  %b_column = mul i64 %p, %b_panel
  %b_at = getelementptr i8, ptr %b_pass, i64 %b_column
  %s0 = shl i64 %r0, 8
  %s1 = shl i64 %r1, 16
  %s2 = shl i64 %c0, 24
  %s3 = shl i64 %c1, 32
  %s01 = or i64 %s0, %s1
  %s23 = or i64 %s2, %s3
  %s0123 = or i64 %s01, %s23
  %shape_n = or i64 %s0123, %step
  %same = icmp eq i64 %shape_n, %shape2
  br i1 %same, label %shaped, label %shape
shape:"""
    yield from _shapes()
    yield "  call void @llvm.x86.ldtilecfg(ptr %shapes)\n  br label %shaped\nshaped:\n  br label %block\nblock:"
    yield "  %q = phi i64 [ 0, %shaped ], [ %q1, %block_end ]"
    yield "  %c_block = phi ptr [ %c_at, %shaped ], [ %c_block1, %block_end ]"
    yield "  %a_block = phi ptr [ %a_part, %shaped ], [ %a_block1, %block_end ]"
    yield "  br i1 %has_r1, label %two_rows, label %one_row\ntwo_rows:\n  br i1 %has_c1, label %begin_22, label %begin_21"
    yield "one_row:\n  br i1 %has_c1, label %begin_12, label %begin_11"
    for rows in (1, 2):
        for columns in (1, 2):
            yield from _block(product, rows, columns, loops)
    yield """block_end:
  %c_block1 = getelementptr i8, ptr %c_block, i64 %c_next
  %a_block1 = getelementptr i8, ptr %a_block, i64 %a_next
  %q1 = add i64 %q, 1
  %more_blocks = icmp ult i64 %q1, %count
  br i1 %more_blocks, label %block, label %panel_end
panel_end:
  %p1 = add i64 %p, 1
  %more_panels = icmp ult i64 %p1, %panels
  br i1 %more_panels, label %panel, label %part_end
part_end:
  %shape_q = phi i64 [ %shape1, %part ], [ %shape_n, %panel_end ]
  br i1 %is_last, label %pass_end, label %part
pass_end:
  %shape_p = phi i64 [ %shape0, %pass ], [ %shape_q, %part_end ]
  %again = xor i1 %is_even, true
  %more_passes = and i1 %again, %first
  br i1 %more_passes, label %pass, label %end
end:
  call void @llvm.x86.tilerelease()
  ret void"""


def _shapes() -> Iterator[str]:
    """Writes the rows and the bytes of a row of each tile: of the result 0 to 3, of the first matrix 4 and 5, of the second 6
    and 7.
    """
    yield "  %g = lshr i64 %step, 2\n  %w0 = shl i64 %c0, 2\n  %w1 = shl i64 %c1, 2"
    yield "  %w10 = select i1 %has_r1, i64 %w0, i64 0\n  %w11 = select i1 %has_r1, i64 %w1, i64 0"
    yield "  %r01 = select i1 %has_c1, i64 %r0, i64 0\n  %r11 = select i1 %has_c1, i64 %r1, i64 0"
    yield "  %k1 = select i1 %has_r1, i64 %step, i64 0\n  %g1 = select i1 %has_c1, i64 %g, i64 0"
    tiles = (("r0", "w0"), ("r01", "w1"), ("r1", "w10"), ("r11", "w11"), ("r0", "step"), ("r1", "k1"), ("g", "w0"),
             ("g1", "w1"))
    for tile, (rows, size) in enumerate(tiles):
        yield f"  %rows{tile} = trunc i64 %{rows} to i8\n  %at_rows{tile} = getelementptr i8, ptr %shapes, i64 {48 + tile}"
        yield f"  store i8 %rows{tile}, ptr %at_rows{tile}, align 1"
        yield f"  %size{tile} = trunc i64 %{size} to i16\n  %at_size{tile} = getelementptr i8, ptr %shapes, i64 {16 + 2 * tile}"
        yield f"  store i16 %size{tile}, ptr %at_size{tile}, align 2"


def _block(product: str, rows: int, columns: int, loops: int) -> Iterator[str]:
    """Writes the sums of a block of so many tiles below and beside each other."""
    me = f"{rows}{columns}"
    held = [(2 * i + j, i, j) for i in range(rows) for j in range(columns)]
    yield f"begin_{me}:"
    for tile, i, j in held:
        base = "%c_block"
        if i:
            yield f"  %c_{me}_{tile}b = getelementptr i8, ptr {base}, i64 %c_below"
            base = f"%c_{me}_{tile}b"
        yield f"  %c_{me}_{tile} = getelementptr i8, ptr {base}, i64 {4 * _TILE * j}"
    yield f"  br i1 %clears, label %zero_{me}, label %load_{me}\nzero_{me}:"
    for tile, _, _ in held:
        yield f"  call void @llvm.x86.tilezero(i8 {tile})"
    yield f"  br label %sum_{me}\nload_{me}:"
    for tile, _, _ in held:
        yield f"  call void @llvm.x86.tileloadd64(i8 {tile}, ptr %c_{me}_{tile}, i64 %c_row)"
    yield f"  br label %sum_{me}\nsum_{me}:"
    yield from _around(product, rows, columns, 0, loops, f"sum_{me}", "%a_block", "%b_at")
    for tile, _, _ in held:
        yield f"  call void @llvm.x86.tilestored64(i8 {tile}, ptr %c_{me}_{tile}, i64 %c_row)"
    yield "  br label %block_end"


def _around(product: str, rows: int, columns: int, level: int, loops: int, before: str, a: str, b: str) -> Iterator[str]:
    """Writes the loop number `level` of those around the terms, the loop over these at last, after the block `before`; leaves
    the block that follows it open.
    """
    me = f"{rows}{columns}_{level}"
    innermost = level == loops
    extent, a_step, b_step = ("%steps", "%step", "%b_step") if innermost else (f"%n{level}", f"%na{level}", f"%nb{level}")
    yield f"  br label %loop_{me}\nloop_{me}:"
    last = f"loop_{me}" if innermost else f"done_{rows}{columns}_{level + 1}"
    yield f"  %i_{me} = phi i64 [ 0, %{before} ], [ %j_{me}, %{last} ]"
    yield f"  %a_{me} = phi ptr [ {a}, %{before} ], [ %an_{me}, %{last} ]"
    yield f"  %b_{me} = phi ptr [ {b}, %{before} ], [ %bn_{me}, %{last} ]"
    if innermost:
        yield from _step(product, rows, columns, me)
    else:
        yield from _around(product, rows, columns, level + 1, loops, f"loop_{me}", f"%a_{me}", f"%b_{me}")
    yield f"  %an_{me} = getelementptr i8, ptr %a_{me}, i64 {a_step}\n  %bn_{me} = getelementptr i8, ptr %b_{me}, i64 {b_step}"
    yield f"  %j_{me} = add i64 %i_{me}, 1\n  %m_{me} = icmp ult i64 %j_{me}, {extent}"
    yield f"  br i1 %m_{me}, label %loop_{me}, label %done_{me}\ndone_{me}:"


def _step(product: str, rows: int, columns: int, me: str) -> Iterator[str]:
    """Writes the products of one step."""
    if rows == 2:
        yield f"  %al_{me} = getelementptr i8, ptr %a_{me}, i64 %a_below"
    if columns == 2:
        yield f"  %br_{me} = getelementptr i8, ptr %b_{me}, i64 {4 * _TILE}"
    for j in range(columns):
        yield f"  call void @llvm.x86.tileloadd64(i8 {6 + j}, ptr %b{'r' if j else ''}_{me}, i64 %b_group)"
    for i in range(rows):
        yield f"  call void @llvm.x86.tileloadd64(i8 {4 + i}, ptr %a{'l' if i else ''}_{me}, i64 %a_row)"
        for j in range(columns):
            yield f"  call void @llvm.x86.{product}(i8 {2 * i + j}, i8 {4 + i}, i8 {6 + j})"
