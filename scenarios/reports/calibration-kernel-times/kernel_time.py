"""How long each operator of a model takes, in sum"""

import torch


class KernelTimeProfiler:
    def __init__(self, enabled=True):
        self.session = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) if enabled else None
        self.rows = []

    def start(self):
        if self.session is not None:
            self.session.start()

    def stop(self):
        if self.session is not None:
            self.session.stop()
            averages = self.session.key_averages()
            self.rows = sorted(((one.self_cpu_time_total, one.count, one.key) for one in averages), reverse=True)

    def report(self, top=8):
        return [f"{key}: {count} calls, {time_us / 1e3:.1f} ms" for time_us, count, key in self.rows[:top]]
