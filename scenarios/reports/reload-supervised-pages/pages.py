"""Pages that are made of elements in the server; a client is one page in one browser"""

import itertools


class Element:
    def __init__(self, client, tag, parent=None, text=""):
        self.client, self.tag, self.parent, self.text = client, tag, parent, text
        self.id = next(client.numbers)
        self.classes, self.children = [f"nicely-{self.id % 7}"], []
        self.style = {"width": f"{self.id % 90}em"}
        self.props = {"text": text, "key": f"{client.id}-{self.id}"}
        self.events = {}
        client.elements[self.id] = self
        if parent is not None:
            parent.children.append(self)

    def to_dict(self):
        return {"id": self.id, "tag": self.tag, "props": self.props, "style": self.style, "classes": self.classes}


class Client:
    ids = itertools.count(1)
    instances = {}

    def __init__(self):
        self.id = next(Client.ids)
        self.numbers, self.elements = itertools.count(1), {}
        Client.instances[self.id] = self

    def delete(self):
        for element in self.elements.values():
            element.children.clear()
            element.client = element.parent = None
        self.elements.clear()
        Client.instances.pop(self.id, None)


def heavy_page(client, labels):
    column = Element(client, "column")
    for number in range(labels):
        Element(client, "label", column, f"Label {number} of client {client.id}")
    return [element.to_dict() for element in client.elements.values()]


def small_page(client, lines):
    column = Element(client, "column")
    for line in lines:
        Element(client, "label", column, line)
    return [element.to_dict() for element in client.elements.values()]
