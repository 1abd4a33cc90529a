"""A small test runner that captures what a test logs, as pytest's caplog does."""

import io
import logging
import time


class LogCaptureHandler(logging.StreamHandler):
    """Stores the records of a phase of a test, and their text."""

    def __init__(self):
        super().__init__(io.StringIO())
        self.records = []

    def emit(self, record):
        self.records.append(record)
        super().emit(record)

    def reset(self):
        self.records = []
        self.stream = io.StringIO()


class catching_logs:
    def __init__(self, handler, level=logging.DEBUG):
        self.handler, self.level = handler, level

    def __enter__(self):
        root = logging.getLogger()
        self.handler.setFormatter(logging.Formatter("%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(message)s"))
        self.before = root.level
        root.addHandler(self.handler)
        root.setLevel(self.level)
        return self.handler

    def __exit__(self, *_):
        root = logging.getLogger()
        root.setLevel(self.before)
        root.removeHandler(self.handler)


class Report:
    def __init__(self, name, outcome, seconds, text):
        self.name, self.outcome, self.seconds, self.text = name, outcome, seconds, text


class Session:
    def __init__(self, tests):
        self.tests, self.reports = tests, []
        self.caplog_handler = LogCaptureHandler()

    def run_phase(self, name, function):
        self.caplog_handler.reset()
        start, outcome = time.perf_counter(), "passed"
        with catching_logs(self.caplog_handler):
            try:
                function()
            except AssertionError:
                outcome = "failed"
        text = self.caplog_handler.stream.getvalue() if outcome == "failed" else ""
        self.reports.append(Report(name, outcome, time.perf_counter() - start, text))

    def run(self):
        for test in self.tests:
            self.run_phase(test.__name__, test)
            print(f"{test.__name__} {self.reports[-1].outcome}", flush=True)
        return all(report.outcome == "passed" for report in self.reports)
