"""A function in LLVM IR that compares the bounds of many arrays in loops: for 100 outputs these would be 5000 comparisons."""

from __future__ import annotations

MOST_PAIRS = 300  # of an output and another array that are compared one after the other
SYMBOL = "@tedsl.disjoint"
# bounds: first byte and first byte behind, of the outputs and then of the other arrays, `count` in all.
DEFINITION = f"""
define internal i1 {SYMBOL}(ptr %bounds, i64 %outputs, i64 %count) nounwind noinline {{
entry:
  br label %output
output:
  %k = phi i64 [ 0, %entry ], [ %next, %beside ]
  %next = add nsw i64 %k, 1
  %low_at = getelementptr [2 x ptr], ptr %bounds, i64 %k
  %high_at = getelementptr ptr, ptr %low_at, i64 1
  %low = load ptr, ptr %low_at, align 8
  %high = load ptr, ptr %high_at, align 8
  %others = icmp slt i64 %next, %count
  br i1 %others, label %compare, label %beside
compare:
  %j = phi i64 [ %next, %output ], [ %following, %apart ]
  %other_low_at = getelementptr [2 x ptr], ptr %bounds, i64 %j
  %other_high_at = getelementptr ptr, ptr %other_low_at, i64 1
  %other_low = load ptr, ptr %other_low_at, align 8
  %other_high = load ptr, ptr %other_high_at, align 8
  %below = icmp ule ptr %high, %other_low
  %above = icmp ule ptr %other_high, %low
  %disjoint = or i1 %below, %above
  br i1 %disjoint, label %apart, label %overlap
apart:
  %following = add nsw i64 %j, 1
  %more = icmp slt i64 %following, %count
  br i1 %more, label %compare, label %beside
beside:
  %again = icmp slt i64 %next, %outputs
  br i1 %again, label %output, label %done
done:
  ret i1 true
overlap:
  ret i1 false
}}
"""


def disjoint_source(entries: list[str]) -> str:
    """Returns the function if one of the entry points `entries` calls it."""
    return DEFINITION if any(SYMBOL in text for text in entries) else ""
