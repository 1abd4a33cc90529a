"""An actor-learner: all rollout buffers are lists of small shared tensors, made and filled before the actors start."""

import torch
import torch.multiprocessing as mp

NUM_BUFFERS = 9000
UNROLL_LENGTH = 14


def specs(num_actions):
    rows = UNROLL_LENGTH + 1
    return {
        "frame": {"size": (rows, 36), "dtype": torch.uint8},
        "reward": {"size": (rows,), "dtype": torch.float32},
        "done": {"size": (rows,), "dtype": torch.bool},
        "episode_return": {"size": (rows,), "dtype": torch.float32},
        "episode_step": {"size": (rows,), "dtype": torch.int32},
        "policy_logits": {"size": (rows, num_actions), "dtype": torch.float32},
        "baseline": {"size": (rows,), "dtype": torch.float32},
        "last_action": {"size": (rows,), "dtype": torch.int64},
        "action": {"size": (rows,), "dtype": torch.int64},
    }


class Net(torch.nn.Module):
    def __init__(self, num_actions):
        super().__init__()
        self.core = torch.nn.GRUCell(36, 64)
        self.policy, self.baseline = torch.nn.Linear(64, num_actions), torch.nn.Linear(64, 1)

    def forward(self, frame, state):
        state = self.core(frame.float()[None] / 255, state)
        return self.policy(state)[0], self.baseline(state)[0, 0], state


@torch.no_grad()
def first_rollout(model, buffers, index):
    state = torch.zeros(1, 64)
    buffers["frame"][index].random_(0, 255)
    for row in range(UNROLL_LENGTH + 1):
        logits, baseline, state = model(buffers["frame"][index][row], state)
        buffers["policy_logits"][index][row] = logits
        buffers["baseline"][index][row] = baseline
        buffers["action"][index][row] = logits.argmax()


def create_buffers(model, num_actions):
    buffers = {key: [] for key in specs(num_actions)}
    for index in range(NUM_BUFFERS):
        for key, spec in specs(num_actions).items():
            buffers[key].append(torch.zeros(**spec).share_memory_())
        first_rollout(model, buffers, index)
        if index % 500 == 0:
            print(f"buffer {index} of {NUM_BUFFERS}", flush=True)
    return buffers


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    mp.set_sharing_strategy("file_system")
    model = Net(6).share_memory()
    buffers = create_buffers(model, 6)
    print(f"{sum(map(len, buffers.values()))} tensors in {NUM_BUFFERS} buffers, starting the actors", flush=True)


if __name__ == "__main__":
    main()
