"""A monitor polls its controller; the controller caches the error, and raises the same exception object each time."""

import collections
import time

import numpy as np

SECONDS = 32.0


class ProtocolError(Exception):
    pass


class OperationFailed(ProtocolError):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Controller:
    """A connection to the daemon: replies are cached, and so are the errors for what does not change."""

    CACHEABLE_ERRORS = ("address", "fingerprint")

    def __init__(self):
        self._request_cache = {}
        self._cached_errors = {}
        self.sent = 0

    def msg(self, query):
        self.sent += 1
        if query == "GETINFO traffic/read":
            return str(self.sent * 4096)
        raise OperationFailed(551, "unable to answer " + query)

    def get_info(self, param, default=None):
        if param in self._cached_errors:
            raise self._cached_errors[param]
        try:
            return self.msg("GETINFO " + param)
        except ProtocolError as exc:
            if param in self.CACHEABLE_ERRORS:
                self._cached_errors[param] = exc
            raise


class HeaderPanel:
    def __init__(self, controller, width=220):
        self.controller = controller
        self.width = width
        self.bandwidth = collections.deque(maxlen=600)
        self.drawn = 0

    def sampling(self):
        canvas = np.zeros((60, self.width * 8), np.float32)
        self.bandwidth.append(int(self.controller.get_info("traffic/read")))
        history = np.resize(np.array(self.bandwidth, np.float32), canvas.shape[1])
        canvas += history / max(1.0, history.max())
        address = self.controller.get_info("address")
        fingerprint = self.controller.get_info("fingerprint")
        return {"canvas": canvas, "address": address, "fingerprint": fingerprint}

    def redraw(self):
        try:
            self.sampling()
        except ProtocolError:
            pass  # not a relay: the header has no address to show
        self.drawn += 1


def main():
    controller = Controller()
    panel = HeaderPanel(controller)
    started = time.monotonic()
    while time.monotonic() - started < SECONDS:
        panel.redraw()
        if panel.drawn % 500 == 0:
            print("drawn", panel.drawn, "asked", controller.sent, flush=True)
        time.sleep(0.03)


if __name__ == "__main__":
    main()
