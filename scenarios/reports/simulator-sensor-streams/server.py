"""The simulator: a world with a track, vehicles and sensors, whose data goes out over streams"""

import json
import socket
import struct
import sys

import numpy as np

SIZE, RAYS = 64, 256


class Session:
    def __init__(self, connection):
        self.connection = connection

    def write(self, sensor, data):
        self.connection.sendall(struct.pack("!ii", sensor, len(data)) + data)


class Stream:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sessions = []

    def port(self):
        return self.listener.getsockname()[1]

    def accept(self):
        connection, _ = self.listener.accept()
        self.sessions.append(Session(connection))

    def write(self, sensor, data):
        for session in self.sessions:
            session.write(sensor, data)


class Dispatcher:
    def __init__(self):
        self.streams = {}

    def make_stream(self, sensor):
        self.streams[sensor] = Stream()
        return self.streams[sensor]


class World:
    def __init__(self):
        self.dispatcher, self.actors, self.next_id = Dispatcher(), {}, 1
        self.generator = np.random.default_rng(3)
        self.across, self.along = np.meshgrid(np.linspace(-1, 1, SIZE), np.linspace(0, 1, SIZE))

    def add(self, kind, **state):
        actor, self.next_id = self.next_id, self.next_id + 1
        self.actors[actor] = {"kind": kind, **state}
        return actor

    def spawn_vehicle(self):
        return {"id": self.add("vehicle", offset=float(self.generator.uniform(-0.4, 0.4)), heading=0.0, bend=0.0)}

    def spawn_sensor(self, kind, parent):
        sensor = self.add(kind, parent=parent)
        return {"id": sensor, "port": self.dispatcher.make_stream(sensor).port()}

    def listen(self, sensor):
        self.dispatcher.streams[sensor].accept()
        return {}

    def destroy(self, actor):
        del self.actors[actor]
        return {}

    def tick(self, vehicle, steer):
        state = self.actors[vehicle]
        state["bend"] = 0.95 * state["bend"] + 0.05 * float(self.generator.normal())
        state["heading"] = 0.97 * state["heading"] + 0.15 * steer - 0.3 * state["bend"]
        state["offset"] = min(1.5, max(-1.5, state["offset"] + 0.1 * state["heading"]))
        frames = 0
        for sensor, actor in self.actors.items():
            if actor["kind"] == "vehicle" or actor["parent"] != vehicle:
                continue
            self.dispatcher.streams[sensor].write(sensor, self.measure(actor["kind"], state))
            frames += 1
        return {"heading": state["heading"], "frames": frames}

    def measure(self, kind, state):
        if kind == "camera":
            middle = state["bend"] * self.along**2 - state["offset"] - state["heading"] * self.along
            road = 1.0 / (1.0 + np.exp(24.0 * (np.abs(self.across - middle) - 0.3)))
            noise = self.generator.random((3, SIZE, SIZE))
            return ((0.8 * road + 0.2 * noise) * 255).astype(np.uint8).tobytes()
        if kind == "lidar":
            angles = np.linspace(-1.2, 1.2, RAYS)
            ranges = np.minimum(20.0, np.abs((0.5 - state["offset"] * np.sign(angles)) / np.sin(angles + 1e-3)))
            return ranges.astype(np.float32).tobytes()
        return struct.pack("!d", abs(state["offset"]))


def main():
    world = World()
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    with connection.makefile("rw") as stream:
        for line in stream:
            request = json.loads(line)
            answer = getattr(world, request.pop("call"))(**request)
            stream.write(json.dumps(answer) + "\n")
            stream.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
