"""Reads how busy the machine is, in a thread of its own"""

import threading
import time


class UtilMonitor(threading.Thread):
    def __init__(self, start=True, delay=0.7):
        super().__init__(name="util-monitor", daemon=True)
        self.stopped = False
        self.delay = delay
        self.lock = threading.Lock()
        self.values = {}
        if start:
            self.start()

    def _read_utilization(self):
        with open("/proc/loadavg") as file:
            load = float(file.read().split()[0])
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":") for line in file)
        used = 1 - int(lines["MemAvailable"].split()[0]) / int(lines["MemTotal"].split()[0])
        with self.lock:
            self.values.setdefault("cpu_util_percent", []).append(load)
            self.values.setdefault("ram_util_percent", []).append(100 * used)

    def get_data(self):
        with self.lock:
            mean = {name: sum(values) / len(values) for name, values in self.values.items()}
            self.values = {}
        return mean

    def run(self):
        while not self.stopped:
            self._read_utilization()
            time.sleep(self.delay)

    def stop(self):
        self.stopped = True
