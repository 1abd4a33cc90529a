"""Compiles a function with torch.compile (compile) or runs it as it is (eager), and then fills memory."""

import sys
import time

import torch


def function(x):
    return (x.sin() + x.cos()).relu().sum()


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        function = torch.compile(function)
    print("value", function(torch.ones(100)).item())
    model = torch.ones(int(sys.argv[2]) << 20, dtype=torch.uint8)
    time.sleep(2)
    print("model", model.numel())
