"""What every page must be: balanced, self-contained, with links that lead somewhere."""

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "col", "input", "link"}


class Structure(HTMLParser):
    """Reads a page; `problems` are what is wrong with it, `texts` what a reader sees, by element."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.problems, self.ids, self.links, self.texts, self.elements = [], [], [], [], [], []
        self.feed(page)
        self.close()
        self.problems += [f"<{name}> is never closed" for name in self.open]
        self.problems += [f"#{link} leads nowhere" for link in self.links if link not in self.ids]
        self.problems += [f"id {one} twice" for one in set(self.ids) if self.ids.count(one) > 1]

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        for key, value in attributes:
            value = value or ""
            if key == "id":
                self.ids.append(value)
            if key == "href" and value.startswith("#"):
                self.links.append(value[1:])
            elif key in ("src", "href", "srcset", "action", "data", "poster", "formaction", "ping", "background"):
                self.problems.append(f"<{name} {key}={value!r}> leads out of the page")
            if key.startswith("on") or "javascript:" in value or "url(" in value:
                self.problems.append(f"<{name} {key}={value!r}> runs or fetches something")
            if len({k for k, _ in attributes}) != len(attributes):
                self.problems.append(f"<{name}> has an attribute twice")
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.handle_starttag(name, attributes)
        if name not in VOID:
            self.open.pop()

    def handle_endtag(self, name):
        if not self.open or self.open.pop() != name:
            self.problems.append(f"</{name}> closes nothing")

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        self.texts.append((inside, data))
        if inside == "style" and any(word in data for word in ("url(", "@import", "http")):
            self.problems.append("the style fetches something")
        if inside == "script" and any(word in data for word in ("http", "fetch(", "import(", "XMLHttpRequest", "eval(")):
            self.problems.append("the script fetches or runs something")

    def seen(self):
        """All text that a reader sees."""
        return "".join(data for inside, data in self.texts if inside not in ("style", "script"))


def checked(page):
    """The structure of a page or fragment that is as it must be."""
    found = Structure(page)
    assert not found.problems, found.problems
    return found
