"""Quadrotors whose motion can be differentiated"""

import torch


class Dynamics:
    """State as (3, drones), which is how the integrator wants it."""

    def __init__(self, drones, dt=0.04):
        self.drones, self.dt = drones, dt
        self.reset()

    def reset(self, indices=None):
        if indices is None:
            self._position = 0.6 * torch.randn(3, self.drones).clamp(-1, 1)
            self._velocity = torch.zeros(3, self.drones)
            self._t = torch.zeros(self.drones)
        else:
            self._position[:, indices] = 0.6 * torch.randn(3, len(indices)).clamp(-1, 1)
            self._velocity[:, indices] = torch.zeros(3, len(indices))
            self._t[indices] = 0.0

    def detach(self):
        self._position, self._velocity = self._position.detach(), self._velocity.detach()

    def step(self, thrust):
        acceleration = 6.0 * thrust.T - 0.3 * self._velocity
        velocity = self._velocity + acceleration * self.dt
        self._position = self._position + velocity * self.dt
        self._velocity = velocity
        self._t = self._t + self.dt

    @property
    def position(self):
        return self._position.T

    @property
    def velocity(self):
        return self._velocity.T


class HoverEnv:
    def __init__(self, drones, stages):
        self.dynamics, self.stages, self.stage = Dynamics(drones), stages, 0
        self.targets = 2.0 * torch.randn(drones, 3)
        self.cameras = torch.zeros(drones, 1, 160, 160)

    @property
    def bound(self):
        return self.stages[min(self.stage, len(self.stages) - 1)]

    def observe(self):
        state = torch.cat([self.dynamics.position, self.dynamics.velocity, self.targets], 1)
        depth = self.dynamics.position.detach().norm(dim=1)[:, None, None, None]
        self.cameras.copy_(depth.expand_as(self.cameras))
        return state

    def step(self, thrust):
        self.dynamics.step(thrust)
        position, velocity = self.dynamics.position, self.dynamics.velocity
        reward = -(position - self.targets).norm(dim=1) - 0.05 * velocity.norm(dim=1)
        done = (position.detach().abs() > self.bound).any(1)
        if done.any():
            self.dynamics.reset(done.nonzero().flatten())
        return self.observe(), reward, done
