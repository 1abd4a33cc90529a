"""Graphs: nodes with features, and edges with adjacency lists for walks"""

import numpy as np
import torch


class EdgeData:
    def __init__(self, sources, targets, nodes):
        self.sources, self.targets, self.nodes = sources, targets, nodes
        self.edges_in, self.edges_out, self.edges = self._adjacency_lists()

    def _by_node(self, ends):
        order = np.argsort(ends, kind="stable")
        starts = np.searchsorted(ends[order], np.arange(self.nodes + 1))
        return {node: order[starts[node] : starts[node + 1]].copy() for node in range(self.nodes)}

    def _adjacency_lists(self):
        into, out = self._by_node(self.targets), self._by_node(self.sources)
        both = {node: np.unique(np.concatenate((into[node], out[node]))) for node in range(self.nodes)}
        return into, out, both


class Graph:
    def __init__(self, features, sources, targets):
        self.features = features
        self.edge_data = EdgeData(sources, targets, len(features))

    def adjacency(self):
        """The normalised adjacency matrix, from the list of edges"""
        data, count = self.edge_data, len(self.features)
        rows = np.concatenate((data.sources, data.targets, np.arange(count)))
        columns = np.concatenate((data.targets, data.sources, np.arange(count)))
        degrees = np.bincount(rows, minlength=count)
        weights = 1 / np.sqrt(degrees[rows] * degrees[columns])
        indices = torch.from_numpy(np.stack((rows, columns)))
        return torch.sparse_coo_tensor(indices, torch.from_numpy(weights).float(), (count, count)).coalesce()

    def random_walk(self, start, length, generator):
        walk = [start]
        for _ in range(length):
            edges = self.edge_data.edges_out[walk[-1]]
            if not len(edges):
                break
            walk.append(int(self.edge_data.targets[edges[generator.integers(len(edges))]]))
        return walk
