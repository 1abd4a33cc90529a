"""Message passing for graphs: a graph object, and a kernel that reduces what neighbours send by its maximum"""

import torch


class Graph:
    """Some molecules in one graph; each atom also sends to itself"""

    def __init__(self, source, destination, nodes, members):
        self.source, self.destination, self.nodes, self.members = source, destination, nodes, members

    @staticmethod
    def batch(molecules, atoms, bonds, generator):
        nodes = molecules * atoms
        first = torch.arange(molecules).repeat_interleave(atoms * bonds) * atoms
        loops = torch.arange(nodes)
        source = first + torch.randint(0, atoms, (len(first),), generator=generator)
        destination = first + torch.randint(0, atoms, (len(first),), generator=generator)
        return Graph(torch.cat([source, loops]), torch.cat([destination, loops]), nodes, loops // atoms)


class CopyReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph, features):
        index = graph.destination[:, None].expand(-1, features.shape[1])
        output = torch.full((graph.nodes, features.shape[1]), float("-inf"))
        output.scatter_reduce_(0, index, features[graph.source], "amax")
        ctx.backward_cache = graph, features, output
        return output

    @staticmethod
    def backward(ctx, gradient):
        graph, features, output = ctx.backward_cache
        chosen = features.detach()[graph.source] == output.detach()[graph.destination]
        sent = gradient[graph.destination] * chosen
        return None, torch.zeros_like(gradient).index_add_(0, graph.source, sent)


def copy_reduce(graph, features):
    return CopyReduce.apply(graph, features)
