"""What is a loader made of, and when does it give a moment to look at memory? Hooks of torch's DataLoader.

Loaded with it. The surprise: as all of the agent's Python code (hooks.py) it runs while the program waits.
"""

import os
import sys

import _ullage_agent as agent
import _ullage_hooks as hooks

_weighed = None  # (id, length, weight) of the dataset weighed last


def on_dataloader(module):
    # Asked for by `_get_iterator` just before it makes the iterator.
    loader = module.DataLoader
    loader.check_worker_number_rationality = hooks.native.access(
        loader.check_worker_number_rationality, _checks_workers, 0.0
    )
    single, several = module._SingleProcessDataLoaderIter, module._MultiProcessingDataLoaderIter
    single._next_data = hooks.native.access(single._next_data, _loads_here, hooks.FIRST_LOOK_S)
    several._next_data = hooks.native.access(several._next_data, hooks.look_now, hooks.IN_TIME)
    hooks.load("kept").on_dataloader(module)


def _checks_workers(loader):
    frame = hooks.caller()
    if frame is not None and frame.f_code.co_name == "_get_iterator":
        _loader_begins(loader)


def _loads_here(_iterator):
    """A loader without workers is told of by nobody, but what is made of its batches may be kept as any other's."""
    if agent.loader_of != os.getpid():
        hooks.weigher()
        agent.loader_of = os.getpid()
    hooks.look_if_due()


def _loader_begins(loader):
    hooks.load("training").forward_no_more(loader)
    context = loader.multiprocessing_context
    dataset = type(loader.dataset)
    length = hooks.weigher().length_of(loader.dataset)
    method = getattr(context, "_name", None)
    if method is None:
        default = sys.modules["multiprocessing.context"]._default_context
        method = (default._actual_context or default._default_context)._name
    where = "__main__" if dataset.__module__ == "__mp_main__" else dataset.__module__
    settings = {
        "workers": loader.num_workers,
        "start_method": agent.plain(method),
        "start_method_is_default": context is None,
        "sharing_strategy": agent.sharing_strategy(),
        "batch_size": _count(loader.batch_size),
        "prefetch_factor": _count(loader.prefetch_factor),
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "dataset": "%s.%s" % (where, dataset.__qualname__),
        "dataset_len": _count(length),
        "index_list": hooks.weigher().index_list(loader),
        "weight": _weight_of(loader.dataset, length),
    }
    agent.loader, agent.loader_of = settings, os.getpid()
    message = {"kind": "loader"}
    message.update(settings)
    agent.send(message)


def _weight_of(dataset, length):
    """Weighed once, not at each epoch."""
    global _weighed
    try:
        if _weighed is None or _weighed[:2] != (id(dataset), length):
            _weighed = id(dataset), length, hooks.weigher().weigh(dataset)
        return _weighed[2]
    except Exception:
        return None


def _count(value):
    return value if type(value) is int and value >= 0 else None
