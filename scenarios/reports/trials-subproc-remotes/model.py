"""An actor and a critic that learn from rollouts, and the callbacks that look on"""

import torch
from torch import nn


class CallbackList:
    def __init__(self, callbacks):
        self.callbacks = callbacks
        for callback in callbacks:
            callback.parent = self

    def init_callback(self, model):
        for callback in self.callbacks:
            callback.model = model

    def on_rollout_end(self, infos):
        for callback in self.callbacks:
            callback.on_rollout_end(infos)


class LengthCallback:
    """How long the episodes get"""

    def __init__(self):
        self.lengths = []

    def on_rollout_end(self, infos):
        lengths = [info["steps"] for step in infos for info in step if "terminal_observation" in info]
        self.lengths = (self.lengths + lengths)[-100:]


class EvaluationCallback:
    """Plays with the model's best actions now and then"""

    def __init__(self, env, frequency=12):
        self.env, self.frequency, self.rollouts, self.best = env, frequency, 0, 0.0

    def on_rollout_end(self, infos):
        self.rollouts += 1
        if self.rollouts % self.frequency == 1:
            observations, total, alive = self.env.reset(), 0.0, True
            while alive and total < 200:
                observations, rewards, dones, _ = self.env.step(self.model.act(observations, greedy=True)[0])
                total, alive = total + rewards[0], not dones[0]
            self.best = max(self.best, float(total))


class A2C:
    def __init__(self, env, learning_rate, gamma, width, steps=48):
        self.env, self.gamma, self.steps = env, gamma, steps
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = nn.Linear(width, 2), nn.Linear(width, 1)
        self.parameters = [p for part in (self.body, self.actor, self.critic) for p in part.parameters()]
        self.optimizer = torch.optim.RMSprop(self.parameters, lr=learning_rate)

    @torch.no_grad()
    def act(self, observations, greedy=False):
        logits = self.actor(self.body(torch.from_numpy(observations)))
        actions = logits.argmax(1) if greedy else torch.distributions.Categorical(logits=logits).sample()
        return actions.tolist(), logits

    def agreement(self, shown):
        """How often it does what has been shown to it"""
        actions, _ = self.act(torch.tensor([step["observation"] for step in shown]).numpy(), greedy=True)
        return sum(action == step["action"] for action, step in zip(actions, shown)) / len(shown)

    def start(self, callback):
        self.callback = callback
        callback.init_callback(self)
        self.observations = self.env.reset()

    def learn(self):
        """One rollout, and one update from it"""
        transitions, infos = [], []
        for _ in range(self.steps):
            actions, _ = self.act(self.observations)
            observations, rewards, dones, info = self.env.step(actions)
            transitions.append((self.observations, actions, rewards, dones))
            infos.append(info)
            self.observations = observations
        self.callback.on_rollout_end(infos)
        with torch.no_grad():
            value = self.critic(self.body(torch.from_numpy(self.observations)))[:, 0]
        returns = []
        for _, _, rewards, dones in reversed(transitions):
            value = torch.from_numpy(rewards) + self.gamma * value * torch.from_numpy(~dones)
            returns.insert(0, value)
        hidden = self.body(torch.cat([torch.from_numpy(seen) for seen, _, _, _ in transitions]))
        advantage = torch.cat(returns) - self.critic(hidden)[:, 0]
        chosen = torch.tensor([action for _, actions, _, _ in transitions for action in actions])
        policy = torch.distributions.Categorical(logits=self.actor(hidden))
        loss = advantage.square().mean() / 2 - (policy.log_prob(chosen) * advantage.detach()).mean()
        self.optimizer.zero_grad()
        (loss - 0.01 * policy.entropy().mean()).backward()
        nn.utils.clip_grad_norm_(self.parameters, 0.5)
        self.optimizer.step()
