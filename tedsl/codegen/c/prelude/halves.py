"""float16 and bfloat16 in integer arithmetic: rounding to nearest even, denormals, NaN that stays NaN.

A value in an expression is a float that the narrow type represents: `round` makes it so; `store` and `load` go to memory
and back. `of_f64` rounds a double once.
"""

from __future__ import annotations

# 0.5 has the unit 2**-24 in its last place, which is float16's smallest step: adding it rounds denormals as float16 does.
_ROUND_F16 = """
float tedsl_round_f16(float x)
{
    const uint32_t bits = tedsl_bits_u32_from_f32(x);
    const uint32_t size = bits & 0x7FFFFFFFu;
    uint32_t value;
    if (size > 0x7F800000u) {
        value = (size | 0x400000u) & 0x7FFFE000u;
    } else if (size < 0x38800000u) {
        value = tedsl_bits_u32_from_f32((tedsl_bits_f32_from_u32(size) + 0.5f) - 0.5f);
    } else {
        value = (size + 0xFFFu + ((size >> 13) & 1u)) & 0x7FFFE000u;
        if (value > 0x477FFFFFu) {
            value = 0x7F800000u;
        }
    }
    return tedsl_bits_f32_from_u32(value | (bits ^ size));
}
"""
_STORE_F16 = """
uint16_t tedsl_store_f16(float x)
{
    const uint32_t bits = tedsl_bits_u32_from_f32(x);
    const uint32_t size = bits & 0x7FFFFFFFu;
    uint32_t value;
    if (size > 0x7F7FFFFFu) {
        value = ((size >> 13) & 0x3FFu) | 0x7C00u;
    } else if (size < 0x38800000u) {
        value = tedsl_bits_u32_from_f32(tedsl_bits_f32_from_u32(size) + 0.5f) - 0x3F000000u;
    } else {
        value = (size >> 13) - 0x1C000u;
    }
    return (uint16_t)(value | ((bits >> 16) & 0x8000u));
}
"""
_LOAD_F16 = """
float tedsl_load_f16(uint16_t x)
{
    const uint32_t size = x & 0x7FFFu;
    const uint32_t moved = size << 13;
    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16;
    const float scaled = tedsl_bits_f32_from_u32(moved) * 5192296858534827628530496329220096.0f;
    const uint32_t value = size > 0x7BFFu ? (moved | 0x7F800000u) : tedsl_bits_u32_from_f32(scaled);
    return tedsl_bits_f32_from_u32(value | sign);
}
"""
_ROUND_BF16 = """
float tedsl_round_bf16(float x)
{
    const uint32_t bits = tedsl_bits_u32_from_f32(x);
    const uint32_t value = x != x ? (bits | 0x400000u) : bits + 0x7FFFu + ((bits >> 16) & 1u);
    return tedsl_bits_f32_from_u32(value & 0xFFFF0000u);
}
"""
_STORE_BF16 = """
uint16_t tedsl_store_bf16(float x)
{
    return (uint16_t)(tedsl_bits_u32_from_f32(x) >> 16);
}
"""
_LOAD_BF16 = """
float tedsl_load_bf16(uint16_t x)
{
    return tedsl_bits_f32_from_u32((uint32_t)x << 16);
}
"""
# First to odd, to a float whose last bit says whether it is inexact: the second rounding is then the only one that counts.
_ODD = """
float tedsl_odd(double x)
{
    const float near = (float)x;
    const double size = x < 0 ? -x : x;
    const double rounded = (double)(near < 0 ? -near : near);
    uint32_t bits = tedsl_bits_u32_from_f32(near);
    if ((bits & 1u) == 0) {
        bits = rounded < size ? bits + 1u : rounded > size ? bits - 1u : bits;
    }
    return tedsl_bits_f32_from_u32(bits);
}
"""
_OF_F64 = """
float tedsl_{name}_of_f64(double x)
{{
    return tedsl_round_{name}(tedsl_odd(x));
}}
"""
_NEXTAFTER = """
float tedsl_nextafter_{name}(float x, float y)
{{
    uint16_t bits = tedsl_store_{name}(x);
    if (x != x || y != y) {{
        return x + y;
    }}
    if (x == y) {{
        return y;
    }}
    if (x == 0.0f) {{
        bits = (uint16_t)(y > x ? 1 : 0x8001);
    }} else {{
        bits = (uint16_t)(((y > x) == (bits < 0x8000u)) ? bits + 1 : bits - 1);
    }}
    return tedsl_load_{name}(bits);
}}
"""

TEXTS = {"round_f16": _ROUND_F16, "store_f16": _STORE_F16, "load_f16": _LOAD_F16, "round_bf16": _ROUND_BF16,
         "store_bf16": _STORE_BF16, "load_bf16": _LOAD_BF16, "odd": _ODD,
         **{f"{name}_of_f64": _OF_F64.format(name=name) for name in ("f16", "bf16")},
         **{f"nextafter_{name}": _NEXTAFTER.format(name=name) for name in ("f16", "bf16")}}
