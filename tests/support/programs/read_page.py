"""Pages as browsers read them, without one."""

from __future__ import annotations

from html.parser import HTMLParser

NASTY = "</script><img src=x onerror=alert(1)>\x1b[31m"


class Page(HTMLParser):
    """Elements of a page, with the texts of its scripts by their ids."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.scripts, self.words = [], [], {}, []
        self._script = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self.links += [found[name] for name in ("src", "href", "action", "data") if name in found]
        if tag == "script":
            self._script = found.get("id", "code")
            self.scripts[self._script] = ""

    def handle_endtag(self, tag):
        if tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script is None:
            self.words.append(data)
        else:
            self.scripts[self._script] += data
