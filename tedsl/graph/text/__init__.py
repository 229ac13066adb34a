"""Graphs as text, in the syntax of Python, and back.

    def main(x: float32[1, 3, 8, 8]):
        w: float32[4, 3, 3, 3] = constant("w")       an array that is given to the parser by this name
        c: float32[2] = constant([1.0, 2.0])         few elements stand in the text
        t: float32[1, 4, 8, 8] = nn.conv2d(x, w, strides=1, padding=1)
        a, b = split(t, indices_or_sections=2, axis=1)
        return a, b

A graph that others call stands before them, as a function; a call of it is `call(name, x, w)`. Above a graph whose code others
make stands `@compiler("name")`.
"""
