"""Layers that can grow: what a pass over the data tells about where new neurons would help"""

import torch
from torch import nn


class TensorStatistic:
    """The mean of a tensor over all samples that it was updated with"""

    def __init__(self, shape, update_function, name):
        self.shape, self.update_function, self.name = shape, update_function, name
        self._tensor, self.samples, self.updated = None, 0, True

    def init(self):
        self._tensor, self.samples = torch.zeros(self.shape), 0

    def update(self):
        if not self.updated:
            tensor, samples = self.update_function()
            self._tensor += tensor
            self.samples += samples
            self.updated = True

    def reset(self):
        self._tensor, self.samples = None, 0

    def __call__(self):
        if not self.samples:
            raise ValueError(f"the tensor statistic {self.name} has not been computed")
        return self._tensor / self.samples


class GrowingModule(nn.Module):
    def __init__(self, layer, width_in, width_out, activation):
        super().__init__()
        self.layer, self.activation = layer, activation
        self.store_input = self.store_pre_activity = False
        self.input = self.pre_activity = None
        self.tensor_s = TensorStatistic((width_in, width_in), self.compute_s_update, "S")
        self.tensor_m = TensorStatistic((width_in, width_out), self.compute_m_update, "M")

    def forward(self, inputs):
        if self.store_input:
            self.input = inputs
            self.tensor_s.updated = self.tensor_m.updated = False
        outputs = self.layer(inputs)
        if self.store_pre_activity:
            self.pre_activity = outputs
            self.pre_activity.retain_grad()
        return self.activation(outputs)

    def init_computation(self):
        self.store_input = self.store_pre_activity = True
        self.tensor_s.init()
        self.tensor_m.init()

    def update_computation(self):
        self.tensor_s.update()
        self.tensor_m.update()

    def reset_computation(self):
        self.store_input = self.store_pre_activity = False
        self.input = self.pre_activity = None
        self.tensor_s.reset()
        self.tensor_m.reset()

    def unfolded(self):
        return self.input

    def flat_gradient(self):
        return self.pre_activity.grad

    def compute_s_update(self):
        inputs = self.unfolded()
        return inputs.t() @ inputs, self.input.shape[0]

    def compute_m_update(self):
        return self.unfolded().t() @ self.flat_gradient(), self.input.shape[0]

    @torch.no_grad()
    def compute_optimal_delta(self):
        """The update of the weights that lowers the loss most, and by how much"""
        s, m = self.tensor_s(), self.tensor_m()
        delta = torch.linalg.lstsq(s + 1e-3 * torch.eye(len(s)), m).solution
        return delta, (delta * m).sum().item()


class LinearGrowingModule(GrowingModule):
    def __init__(self, width_in, width_out, activation):
        super().__init__(nn.Linear(width_in, width_out), width_in, width_out, activation)


class Conv2dGrowingModule(GrowingModule):
    def __init__(self, channels_in, channels_out, kernel, activation):
        layer = nn.Conv2d(channels_in, channels_out, kernel, stride=2, padding=kernel // 2)
        super().__init__(layer, channels_in * kernel**2, channels_out, activation)
        self.kernel = kernel

    def unfolded(self):
        columns = nn.functional.unfold(self.input, self.kernel, padding=self.kernel // 2, stride=2)
        return columns.transpose(1, 2).flatten(0, 1)

    def flat_gradient(self):
        return self.pre_activity.grad.flatten(2).transpose(1, 2).flatten(0, 1)
