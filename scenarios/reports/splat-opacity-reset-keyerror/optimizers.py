"""An optimizer for each kind of parameter of the splats, and what has to happen to it when splats come and go."""

import torch
from torch import nn


class Optimizers:
    def __init__(self, parameters, rates):
        self.parameters = parameters
        self.optimizers = {name: torch.optim.Adam([value], lr=rates[name], eps=1e-15) for name, value in parameters.items()}

    def zero_grad(self):
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers.values():
            optimizer.step()

    def state_dict(self):
        return {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()}

    def _exchange(self, name, value, change_state):
        optimizer, old = self.optimizers[name], self.parameters[name]
        new = nn.Parameter(value)
        state = optimizer.state.pop(old)
        for key in ("exp_avg", "exp_avg_sq"):
            state[key] = change_state(state[key])
        optimizer.state[new] = state
        optimizer.param_groups[0]["params"] = [new]
        self.parameters[name] = new

    def cull(self, keep):
        for name in list(self.parameters):
            self._exchange(name, self.parameters[name].detach()[keep].clone(), lambda moments: moments[keep].clone())

    def duplicate(self, chosen):
        def grow(moments):
            return torch.cat([moments, torch.zeros_like(moments[chosen])])

        for name in list(self.parameters):
            value = self.parameters[name].detach()
            self._exchange(name, torch.cat([value, value[chosen]]), grow)

    def reset_opacities(self, ceiling):
        """Starts the opacities, and their moments, anew."""
        optimizer = self.optimizers["opacities"]
        new = nn.Parameter(self.parameters["opacities"].detach().clamp(max=ceiling))
        optimizer.state[new] = {
            "step": torch.tensor(0.0),
            "exp_avg": torch.zeros_like(new),
            "exp_avg_sq": torch.zeros_like(new),
        }
        optimizer.param_groups[0]["params"] = [new]
        self.parameters["opacities"] = new
