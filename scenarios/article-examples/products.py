"""Large temporary tensors in a loop, none of them kept."""

import sys

import torch


def process_data(data_size, num_iterations):
    for _ in range(num_iterations):
        tensor_a = torch.randn(data_size)
        tensor_b = torch.randn(data_size)
        tensor_c = tensor_a @ tensor_b
    return tensor_c.shape


if __name__ == "__main__":
    size = int(sys.argv[1])
    print(process_data((size, size), int(sys.argv[2])))
