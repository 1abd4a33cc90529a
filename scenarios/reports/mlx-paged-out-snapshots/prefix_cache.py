"""The keys and values of prompts' chunks, in a tree by the prompts' prefixes"""

import itertools

MAX_PAGED_OUT_BYTES = 170 << 20


class Node:
    def __init__(self, tokens, parent):
        self.tokens, self.parent, self.children = tokens, parent, {}
        self.snapshot, self.last_used = None, 0

    @property
    def nbytes(self):
        return 0 if self.snapshot is None else self.snapshot.nbytes


class PrefixCache:
    def __init__(self, chunk):
        self.chunk, self.root, self.clock = chunk, Node((), None), itertools.count(1)
        self.paged_out_bytes = self.evicted = 0

    def chunks(self, tokens):
        return [tuple(tokens[i : i + self.chunk]) for i in range(0, len(tokens) - self.chunk + 1, self.chunk)]

    def match(self, tokens):
        """The nodes of the longest prefix that is here"""
        node, nodes, now = self.root, [], next(self.clock)
        for chunk in self.chunks(tokens):
            if chunk not in node.children:
                break
            node = node.children[chunk]
            node.last_used = now
            nodes.append(node)
        return nodes

    def page_out(self, nodes, chunk, snapshot):
        """Stores a chunk's snapshot behind the nodes"""
        parent = nodes[-1] if nodes else self.root
        node = parent.children[chunk] = Node(chunk, parent)
        node.snapshot, node.last_used = snapshot, next(self.clock)
        self.paged_out_bytes += node.nbytes
        nodes.append(node)

    def leaves(self):
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            if node.children:
                stack.extend(node.children.values())
            else:
                yield node

    def enforce_eviction_policy(self):
        while self.paged_out_bytes > MAX_PAGED_OUT_BYTES:
            node = min(self.leaves(), key=lambda leaf: leaf.last_used)
            del node.parent.children[node.tokens]
            self.paged_out_bytes -= node.nbytes
            self.evicted += 1
