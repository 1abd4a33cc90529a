"""State, events and callbacks of a training run, after the engine of a larger library."""

import atexit
import logging

log = logging.getLogger("engine")

_did_atexit_run = False


def _set_atexit_ran():
    global _did_atexit_run
    _did_atexit_run = True


class State:
    """What callbacks and algorithms may see and change: the model, the optimizer and the clock."""

    def __init__(self, model, optimizers, max_duration):
        self.model = model
        self.optimizers = optimizers
        self.max_duration = max_duration
        self.callbacks = []
        self.batch = self.loss = None
        self.batches = 0


class Logger:
    def __init__(self, state, destinations):
        self.state = state
        self.destinations = destinations

    def log_metrics(self, metrics):
        for destination in self.destinations:
            destination.log_metrics(metrics, self.state.batches)


class Engine:
    """Runs the callbacks at each event, and closes them when the run or the interpreter ends."""

    def __init__(self, state, logger):
        self.state = state
        self.logger = logger
        self._is_closed = False
        atexit.register(self._close, state, logger)
        # Handlers run in the reverse order, so that this one runs first.
        atexit.unregister(_set_atexit_ran)
        atexit.register(_set_atexit_ran)

    def run_event(self, event):
        if self._is_closed:
            raise RuntimeError("The engine was closed; no event can run any more.")
        for callback in self.state.callbacks:
            getattr(callback, event)(self.state, self.logger)

    def close(self):
        if not self._is_closed:
            self._close(self.state, self.logger)
        self._is_closed = True

    def __del__(self):
        if _did_atexit_run or self._is_closed:
            return
        self.close()
        atexit.unregister(_set_atexit_ran)
        atexit.unregister(self._close)

    @staticmethod
    def _close(state, logger):
        for callback in state.callbacks:
            try:
                callback.close(state, logger)
            except Exception as error:
                log.error("Error running %s.close(): %s", type(callback).__name__, error)


class Callback:
    def fit_start(self, state, logger):
        pass

    def batch_end(self, state, logger):
        pass

    def fit_end(self, state, logger):
        pass

    def close(self, state, logger):
        pass
