"""A vehicle on terrain, as environments around a native simulator are: step and reset in Python, bodies in C."""

import ctypes
import math

import numpy as np

native = ctypes.CDLL(None)
native.malloc.argtypes, native.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
native.free.argtypes, native.free.restype = [ctypes.c_void_p], None
native.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
native.memset.restype = ctypes.c_void_p

TIRES = 4
TIRE_BYTES = 60_000
TERRAIN_BYTES = 900_000


def body(size):
    address = native.malloc(size)
    native.memset(address, 1, size)
    return address


class System:
    """The simulator's system: it owns the terrain, and only borrows what a vehicle adds to it."""

    def __init__(self):
        self.terrain = body(TERRAIN_BYTES)

    def destroy(self):
        native.free(self.terrain)


class Gator:
    """Chassis and tires are made in the library, and no destructor is bound for them."""

    def __init__(self, system):
        self.system = system
        self.tires = [body(TIRE_BYTES) for _ in range(TIRES)]
        self.state = np.zeros(12)

    def advance(self, action):
        throttle, steering = float(action[0]), float(action[1])
        x, y, heading, speed = self.state[:4]
        for _ in range(120):
            speed += 0.002 * (throttle - 0.1 * speed)
            heading += 0.002 * steering * speed
            x += 0.002 * speed * math.cos(heading)
            y += 0.002 * speed * math.sin(heading)
        self.state[:4] = x, y, heading, speed
        self.state[4:8] = math.sin(x), math.cos(y), throttle, steering
        return self.state


class OffroadGator:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.system = None

    def reset(self):
        if self.system is not None:
            self.system.destroy()
        self.system = System()
        self.vehicle = Gator(self.system)
        self.goal = self.random.uniform(-50, 50, 2)
        self.steps = 0
        return self.vehicle.state.copy()

    def step(self, action):
        state = self.vehicle.advance(action)
        self.steps += 1
        reward = -float(np.hypot(*(state[:2] - self.goal)))
        return state.copy(), reward, self.steps >= 40


def serve(remote, seed):
    """A worker of the vector environment."""
    env = OffroadGator(seed)
    while True:
        command, action = remote.recv()
        if command == "close":
            remote.close()
            return
        if command == "reset":
            remote.send(env.reset())
            continue
        state, reward, done = env.step(action)
        if done:
            state = env.reset()
        remote.send((state, reward, done))
