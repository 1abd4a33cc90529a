"""A web application scanner: its plugins ask for the parsed tree of each response, and for those of some before."""

import collections
import html.parser
import random

PAGES = 700
LRU_SIZE = 280


class Node:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children = []
        self.text = ""


class DocumentParser(html.parser.HTMLParser):
    def __init__(self, body):
        super().__init__()
        self.root = self.node = Node("document", [], None)
        self.feed(body)

    def handle_starttag(self, tag, attributes):
        child = Node(tag, attributes, self.node)
        self.node.children.append(child)
        self.node = child

    def handle_endtag(self, tag):
        self.node = self.node.parent or self.root

    def handle_data(self, text):
        self.node.text += text

    def references(self):
        stack = [self.root]
        while stack:
            node = stack.pop()
            stack += node.children
            yield from (value for name, value in node.attributes if name == "href")


class ParserCache:
    def __init__(self):
        self._cache = collections.OrderedDict()

    def get_document_parser_for(self, uri, body):
        if uri in self._cache:
            self._cache.move_to_end(uri)
        else:
            self._cache[uri] = DocumentParser(body)
            if len(self._cache) > LRU_SIZE:
                self._cache.popitem(last=False)
        return self._cache[uri]


class Site:
    """Pages of quite different length, with links to each other."""

    def response(self, number):
        rng = random.Random(number)
        rows = []
        for row in range(rng.randrange(300, 1300)):
            link = f'<a href="/page/{rng.randrange(PAGES)}?q={rng.randrange(10**6)}">item {row}</a>'
            rows.append(f'<tr class="r{row % 2}"><td>{link}</td><td><b>{rng.random():.6f}</b></td></tr>')
        return f"<html><body><table>{''.join(rows)}</table></body></html>"


def main():
    site, cache, rng = Site(), ParserCache(), random.Random(0)
    found = collections.Counter()
    for number in range(PAGES):
        for page in (number, max(0, number - rng.randrange(1, 60))):
            parser = cache.get_document_parser_for(f"/page/{page}", site.response(page))
            found.update(reference.split("?")[0] for reference in parser.references())
        if number % 70 == 0:
            print(f"page {number}: {len(found)} known, {found.most_common(1)}", flush=True)


if __name__ == "__main__":
    main()
