"""Shares a tensor by name: torch starts torch_shm_manager, which makes a directory for its socket."""

import torch

if __name__ == "__main__":
    torch.multiprocessing.set_sharing_strategy("file_system")
    tensor = torch.zeros(1000).share_memory_()
    print("shared", tensor.is_shared())
