"""An environment for a gym around the simulator's server"""

import json
import os
import socket
import struct
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SENSORS = ("camera", "lidar", "lane_invasion")


class Client:
    def __init__(self):
        command = [sys.executable, "-u", os.path.join(HERE, "server.py")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        port = int(self.process.stdout.readline())
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.stream = self.connection.makefile("rw")

    def call(self, name, **arguments):
        try:
            self.stream.write(json.dumps({"call": name, **arguments}) + "\n")
            self.stream.flush()
            line = self.stream.readline()
        except (BrokenPipeError, ConnectionResetError):
            line = ""
        if not line:
            raise RuntimeError("rpc::rpc_error during call: lost the connection to the simulator")
        return json.loads(line)

    def close(self):
        self.stream.close()
        self.connection.close()
        self.process.wait()


class Sensor:
    def __init__(self, client, kind, parent):
        self.client, self.kind = client, kind
        answer = client.call("spawn_sensor", kind=kind, parent=parent)
        self.id = answer["id"]
        self.connection = socket.create_connection(("127.0.0.1", answer["port"]))
        client.call("listen", sensor=self.id)

    def receive(self, size):
        data = b""
        while len(data) < size:
            part = self.connection.recv(size - len(data))
            if not part:
                raise RuntimeError(f"the stream of sensor {self.id} has ended")
            data += part
        return data

    def read(self):
        _, size = struct.unpack("!ii", self.receive(8))
        return self.receive(size)

    def destroy(self):
        self.connection.close()
        self.client.call("destroy", actor=self.id)


class LaneEnv:
    def __init__(self):
        self.client, self.vehicle, self.sensors = Client(), None, []

    def reset(self):
        for sensor in self.sensors:
            sensor.destroy()
        self.sensors.clear()
        if self.vehicle is not None:
            self.client.call("destroy", actor=self.vehicle)
        self.vehicle = self.client.call("spawn_vehicle")["id"]
        self.sensors = [Sensor(self.client, kind, self.vehicle) for kind in SENSORS]
        return self.step(0.0)[0]

    def step(self, steer):
        answer = self.client.call("tick", vehicle=self.vehicle, steer=steer)
        camera, lidar, lane = [sensor.read() for sensor in self.sensors]
        image = np.frombuffer(camera, np.uint8).reshape(3, 64, 64).astype(np.float32) / 255
        ranges = np.frombuffer(lidar, np.float32) / 20
        (distance,) = struct.unpack("!d", lane)
        return (image, ranges), 1.0 - distance - 0.1 * abs(answer["heading"])

    def close(self):
        self.client.close()
