"""Reads the text of sub-graphs. What is wrong is refused with the number of its line."""

from __future__ import annotations

import re
from typing import NoReturn

from tedsl.errors import ArgumentTypeError, GraphError, type_in_words
from tedsl.graph.byoc.examplejson.program import INPUT, OPERATORS, OUTPUTS, Program, Statement, SubGraph

_SYMBOL = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_OPERANDS = 2


def parse(text: str) -> Program:
    """The sub-graphs of a text. Raises GraphError with the number of the line for a text that is none."""
    if not isinstance(text, str):
        raise ArgumentTypeError(f"the text of sub-graphs is a str, not {type_in_words(text)}")
    parser = _Parser(text)
    graphs = parser.graphs()
    return Program(graphs, parser.indent or 0, text.endswith("\n"))


def _is_symbol(line: str) -> bool:
    return line != INPUT and line not in OPERATORS and _SYMBOL.fullmatch(line) is not None


class _Parser:
    """indent: that of the first statement, which all others have, too."""

    def __init__(self, text: str) -> None:
        self.lines = text.removesuffix("\n").split("\n")
        self.at = 0
        self.indent: int | None = None

    def refuse(self, problem: str, at: int | None = None) -> NoReturn:
        number = self.at if at is None else at
        line = self.lines[number] if number < len(self.lines) else ""
        raise GraphError(f"line {number + 1}: {problem}" + (f": {line!r}" if line else ""),
                         hint="a statement is `input ID EXTENTS` or `OPERATOR ID inputs: IDS shape: EXTENTS`")

    def graphs(self) -> tuple[SubGraph, ...]:
        found: dict[str, SubGraph] = {}
        while self.at < len(self.lines):
            symbol = self.lines[self.at]
            if not _is_symbol(symbol):
                self.refuse("a sub-graph begins with its symbol on a line")
            if symbol in found:
                self.refuse(f"there is a sub-graph {symbol} already")
            self.at += 1
            found[symbol] = self._graph(symbol)
        return tuple(found.values())

    def _graph(self, symbol: str) -> SubGraph:
        known: dict[int, Statement] = {}
        outputs: tuple[int, ...] | None = None
        first = self.at - 1
        while self.at < len(self.lines) and not _is_symbol(self.lines[self.at]):
            words = self._words()
            if outputs is not None:
                self.refuse("nothing of a sub-graph stands behind its outputs")
            if words[0] == OUTPUTS:
                outputs = self._outputs(words[1:], known)
            else:
                statement = self._statement(words, known)
                known[statement.number] = statement
            self.at += 1
        statements = tuple(known.values())
        if not statements or all(one.operator == INPUT for one in statements):
            self.refuse(f"the sub-graph {symbol} computes nothing", first)
        if outputs is None and statements[-1].operator == INPUT:
            self.refuse("the last statement is the result, and an input is none", self.at - 1)
        return SubGraph(symbol, statements, outputs or (statements[-1].number,))

    def _words(self) -> list[str]:
        line = self.lines[self.at]
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if self.indent is None and indent in (0, 2):
            self.indent = indent
        if indent != self.indent:
            self.refuse(f"a statement is indented by {self.indent or 0} blanks, as the others are" if self.indent is not None
                        else "a statement is indented by two blanks, or by none")
        words = body.split(" ")
        if "" in words or not body.isascii() or not body.isprintable():
            self.refuse("words stand apart by one blank, and no line is empty")
        return words

    def _outputs(self, words: list[str], known: dict[int, Statement]) -> tuple[int, ...]:
        numbers = tuple([self._number(word) for word in words])
        if not numbers:
            self.refuse("there are no outputs")
        self._check_known(numbers, known)
        return numbers

    def _statement(self, words: list[str], known: dict[int, Statement]) -> Statement:
        operator = words[0]
        if operator != INPUT and operator not in OPERATORS:
            self.refuse(f"there is no operator {operator!r}; there are {', '.join(OPERATORS)}")
        if len(words) < 2:
            self.refuse(f"{operator} has no number")
        number = self._number(words[1])
        if number in known:
            self.refuse(f"there is a value {number} already")
        if operator == INPUT:
            return Statement(INPUT, number, (), tuple([self._number(word) for word in words[2:]]))
        return self._computed(operator, number, words[2:], known)

    def _computed(self, operator: str, number: int, words: list[str], known: dict[int, Statement]) -> Statement:
        if not words or words[0] != "inputs:" or words.count("shape:") != 1:
            self.refuse("behind the number stand `inputs:` and `shape:`")
        middle = words.index("shape:")
        inputs = tuple([self._number(word) for word in words[1:middle]])
        shape = tuple([self._number(word) for word in words[middle + 1:]])
        if len(inputs) != _OPERANDS:
            self.refuse(f"{operator} has {_OPERANDS} inputs, not {len(inputs)}")
        self._check_known(inputs, known)
        for one in inputs:
            if known[one].shape != shape:
                self.refuse(f"the value {one} has the shape {' '.join(map(str, known[one].shape)) or '()'}, another one")
        return Statement(operator, number, inputs, shape)

    def _check_known(self, numbers: tuple[int, ...], known: dict[int, Statement]) -> None:
        for number in numbers:
            if number not in known:
                self.refuse(f"there is no value {number} before this line")

    def _number(self, word: str) -> int:
        if not _NUMBER.fullmatch(word):
            self.refuse(f"{word!r} is not a number")
        return int(word)
