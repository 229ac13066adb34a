"""Programs in colour: in terminals and as markup."""

from tedsl.display.code import code_block, painted_code, tokens
from tests.display.structure import checked

LINE = 'for i.outer in parallel(62): A[i.outer, 1.5e-3] = "a # b"  # note for'


def test_words_of_the_notation_have_kinds():
    assert [part for part in tokens(LINE) if part[0]] == [
        ("keyword", "for"), ("keyword", "in"), ("kind", "parallel"), ("number", "62"), ("number", "1.5e-3"),
        ("string", '"a # b"'), ("comment", "# note for")]
    assert "".join(part for _, part in tokens(LINE)) == LINE


def test_a_name_is_no_keyword_for_containing_one():
    assert [part for part in tokens("form.in_for = where1") if part[0]] == []


def test_the_terminal_gets_colour_where_it_is_wanted_and_no_control_characters():
    assert painted_code("for x\x1b[2J", False) == "for x\N{REPLACEMENT CHARACTER}[2J"
    assert painted_code("for x\n12", True) == "\033[1;35mfor\033[0m x\n\033[36m12\033[0m"


def test_markup_is_escaped():
    block = code_block('if a < b: "<script>"')
    assert "<script>" not in block and '<span class="string">&quot;&lt;script&gt;&quot;</span>' in block
    checked(f"<!DOCTYPE html><html><body>{block}</body></html>")
