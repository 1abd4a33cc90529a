"""Exchange of Python objects among the ranks"""

import io

import torch
import torch.distributed


def all_gather(data):
    """A list of what each rank has given; data is anything that torch.save takes"""
    world_size = torch.distributed.get_world_size()
    if world_size == 1:
        return [data]

    buffer = io.BytesIO()
    torch.save(data, buffer)
    tensor = torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8).clone()

    # obtain the size of each rank's tensor
    local_size = torch.tensor([tensor.numel()])
    size_list = [torch.tensor([0]) for _ in range(world_size)]
    torch.distributed.all_gather(size_list, local_size)
    size_list = [int(size.item()) for size in size_list]
    max_size = max(size_list)

    # tensors of different shapes cannot be gathered, so that the shorter ones are padded
    tensor_list = [torch.empty((max_size,), dtype=torch.uint8) for _ in size_list]
    if tensor.numel() != max_size:
        padding = torch.empty((max_size - tensor.numel(),), dtype=torch.uint8)
        tensor = torch.cat((tensor, padding), dim=0)
    torch.distributed.all_gather(tensor_list, tensor)

    data_list = []
    for size, tensor in zip(size_list, tensor_list):
        tensor = torch.split(tensor, [size, max_size - size], dim=0)[0]
        data_list.append(torch.load(io.BytesIO(tensor.numpy())))
    return data_list
