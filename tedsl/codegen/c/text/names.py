"""Identifiers of C: names of the program as C takes them, each once in a function."""

from __future__ import annotations

import re

_WORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Bool _Complex _Imaginary
alignas alignof and and_eq asm atomic bitand bitor bool catch class compl concept consteval constexpr constinit const_cast
co_await co_return co_yield decltype delete dynamic_cast explicit export false final friend mutable namespace new noexcept not
not_eq nullptr operator or or_eq override private protected public reinterpret_cast requires static_assert static_cast template
this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq near far NAN INFINITY I
errno malloc free memcpy main abs env begin end lane"""
_MATH = """acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf exp exp10 exp2 fabs floor fma fmod hypot ldexp log
log10 log1p log2 nearbyint nextafter pow rint round sin sinh sqrt tan tanh trunc j0 j1 jn y0 y1 yn gamma lgamma tgamma cbrt
drem expm1 fdim fmax fmin frexp ilogb llrint llround logb lrint lround modf nan nexttoward pow10 remainder remquo scalb scalbln
scalbn significand sincos"""
C_LIBRARY = tuple(_MATH.split())  # functions of math.h, for double
RESERVED = frozenset(_WORDS.split()) | frozenset(name + end for name in C_LIBRARY for end in ("", "f", "l"))
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Types and macros of stdint.h, stddef.h, float.h and math.h, and what gcc defines for every file.
_OF_HEADERS = re.compile(r"u?int(8|16|32|64)_t|u?int(ptr|max|_least\d+|_fast\d+)_t|[us]?size_t|ptrdiff_t|NULL|linux|unix|i386|"
                         r"U?INT\w+_(MAX|MIN|C)|(SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_(MAX|MIN)|HUGE_VAL[FL]?|"
                         r"(FLT|DBL|LDBL|DECIMAL|FP|M)_[A-Z0-9_]+")


def is_of_headers(name: str) -> bool:
    """Tells whether a header that we include may define `name` as a type or a macro."""
    return bool(_OF_HEADERS.fullmatch(name))


def is_identifier(name: str) -> bool:
    """Tells whether `name` may be the name of a function in C and C++ that does not clash with one of ours."""
    return bool(_IDENTIFIER.fullmatch(name)) and name not in RESERVED and not name.startswith(("_", "tedsl_", "TEDSL_")) \
        and not is_of_headers(name) and "__" not in name


def identifier(name: str) -> str:
    """Returns an identifier like `name`."""
    plain = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", name)).strip("_")
    if not plain or plain[0].isdigit() or not is_identifier(plain):
        plain = f"v_{plain}".rstrip("_")
    return plain


class Names:
    """The names of one function: `fresh("i.outer")` is i_outer, and i_outer_1 the second time."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """Returns an identifier like `wanted` that was not given before."""
        plain = identifier(wanted)
        name, k = plain, self._next.get(plain, 0)
        while name in self._taken:
            k += 1
            name = f"{plain}_{k}"
        self._next[plain] = k
        self._taken.add(name)
        return name
