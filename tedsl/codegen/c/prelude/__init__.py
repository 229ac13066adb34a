"""Functions that C lacks, as text: integers whose every result is defined, conversions, 16-bit floats.

`table.helper_text(name)` gives the text of one; the names say the type: `tedsl_add_i32`.
"""
