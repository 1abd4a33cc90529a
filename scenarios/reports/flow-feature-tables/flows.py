"""Flows and tasks: a decorated function is run by the engine, which follows its state"""

import concurrent.futures
import contextvars
import dataclasses
import functools
import itertools
import time

RUN = contextvars.ContextVar("flow_run")


@dataclasses.dataclass
class Result:
    value: object
    persisted: bool = False


@dataclasses.dataclass
class State:
    type: str
    run: str
    data: Result | None = None
    timestamp: float = dataclasses.field(default_factory=time.time)

    def result(self):
        return self.data.value


class FlowRunContext:
    def __init__(self, flow):
        self.flow = flow
        self.numbers = itertools.count()
        self.runner = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="task-runner")
        self.task_run_results = {}  # the id of a return value: the state of the task run that made it

    def upstream(self, arguments):
        states = (self.task_run_results.get(id(value)) for value in arguments)
        return [state.run for state in states if state is not None]


def task(function):
    @functools.wraps(function)
    def call(*arguments):
        context = RUN.get()
        run = f"{function.__name__}-{next(context.numbers)}"
        call.inputs = context.upstream(arguments)
        value = context.runner.submit(function, *arguments).result()
        state = State("COMPLETED", run, Result(value))
        if value is not None and not isinstance(value, (bool, int, str)):
            context.task_run_results[id(value)] = state
        return state.result()

    return call


def flow(function):
    @functools.wraps(function)
    def call(*arguments):
        context = FlowRunContext(function.__name__)
        token = RUN.set(context)
        try:
            return function(*arguments)
        finally:
            context.runner.shutdown()
            RUN.reset(token)

    return call
