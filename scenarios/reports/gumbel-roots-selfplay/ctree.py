"""The search tree, whose nodes are the library's own: C structures on the C heap, one block for a node's children."""

import ctypes

import numpy as np

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]

# The layout of a node; children and parent are addresses.
NODE = np.dtype(
    [
        ("prior", "f4"), ("value", "f4"), ("visits", "i4"), ("action", "i4"),
        ("gumbel", "f4"), ("logit", "f4"), ("raw_value", "f4"), ("improved", "f4"),
        ("history", "f4", (6,)), ("children", "u8"), ("parent", "u8"),
    ]
)


def _new(count):
    """The address of a block of nodes, and the array that shows it."""
    size = count * NODE.itemsize
    address = _libc.malloc(size)
    if not address:
        raise MemoryError
    return address, _view(address, count)


def _view(address, count):
    memory = (ctypes.c_char * (count * NODE.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype=NODE)


class GumbelTree:
    """One search of a position: make_root, then traverse and back_propagate for each simulation."""

    def __init__(self, actions, c_visit=1.5):
        self.actions, self.c_visit = actions, c_visit

    def make_root(self, priors):
        self._root, node = _new(1)
        node[:] = np.zeros(1, NODE)
        node["prior"], node["action"] = 1.0, -1
        self.expand(self._root, priors)

    def expand(self, address, priors):
        block, children = _new(self.actions)
        children[:] = np.zeros(1, NODE)
        children["prior"], children["action"] = priors, np.arange(self.actions)
        children["gumbel"] = np.random.gumbel(size=self.actions)
        children["logit"] = np.log(children["prior"] + 1e-9)
        children["parent"] = address
        _view(address, 1)["children"] = block

    def traverse(self):
        """From the root to a leaf; the leaf's address and the actions that lead to it."""
        address, path = self._root, []
        while True:
            node = _view(address, 1)[0]
            if not node["children"]:
                return address, path
            children = _view(int(node["children"]), self.actions)
            mean = children["value"] / np.maximum(children["visits"], 1)
            bonus = self.c_visit * children["prior"] * np.sqrt(float(node["visits"]) + 1) / (1 + children["visits"])
            best = int(np.argmax(mean + bonus))
            path.append(best)
            address = int(node["children"]) + best * NODE.itemsize

    def back_propagate(self, address, value):
        while address:
            node = _view(address, 1)
            node["value"] += value
            node["visits"] += 1
            value = -value
            address = int(node["parent"][0])

    def visits(self):
        root = _view(self._root, 1)[0]
        return _view(int(root["children"]), self.actions)["visits"].copy()
