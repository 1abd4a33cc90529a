"""What is a loader made of, and when does it give a moment to look at memory? Hooks of torch's DataLoader.

Loaded with it. The surprise: as all of the agent's Python code (python/agent) it runs while the program waits.
"""

import _ullage_agent as agent
import _ullage_common as common
import _ullage_torch_counts as torch_counts
import _ullage_kinds as types
import _ullage_safe_points as safe_points
import _ullage_training as training
import _ullage_weigh as weigh

_weighed = None  # (id, length, weight) of the dataset weighed last


def on_dataloader(module):
    if not common.replaces(b"LOADERS"):
        return
    # Asked for by `_get_iterator` just before it makes the iterator.
    loader = module.DataLoader
    access = common.native.access
    loader.check_worker_number_rationality = access(loader.check_worker_number_rationality, _checks_workers, 0.0)
    single, several = module._SingleProcessDataLoaderIter, module._MultiProcessingDataLoaderIter
    single._next_data = access(single._next_data, _loads_here, safe_points.FIRST_SAMPLE_S)
    several._next_data = access(several._next_data, safe_points.sample_if_due, safe_points.IN_TIME)
    torch_counts.on_dataloader(module)


def _checks_workers(loader):
    frame = common.caller()
    if frame is not None and frame.f_code.co_name == "_get_iterator":
        _loader_begins(loader)


def _loads_here(_iterator):
    """A loader without workers is told of by nobody, but what is made of its batches may be kept as any other's."""
    if not agent.reads_loader():
        agent.loads(weigh.kept_by_iterators)
    safe_points.sample_if_due()


def _loader_begins(loader):
    training.forward_no_more(loader)
    # Its class may be one of the program's, with properties and the like.
    names = types.attributes_of(loader) or {}
    context, dataset = dict.get(names, "_DataLoader__multiprocessing_context"), dict.get(names, "dataset")
    kind, length = type(dataset), weigh.length_of(dataset)
    method = None if context is None else types.attribute(context, "_name")
    if method is None:
        default = common.names("multiprocessing.context")["_default_context"]
        method = (default._actual_context or default._default_context)._name
    where = "__main__" if types.module_of(kind) == "__mp_main__" else types.module_of(kind)
    settings = {
        "workers": _count(dict.get(names, "num_workers")),
        "start_method": common.plain(method),
        "start_method_is_default": context is None,
        "sharing_strategy": agent.sharing_strategy(),
        "batch_size": _count(dict.get(names, "batch_size")),
        "prefetch_factor": _count(dict.get(names, "prefetch_factor")),
        "pin_memory": _truth(dict.get(names, "pin_memory")),
        "persistent_workers": _truth(dict.get(names, "persistent_workers")),
        "dataset": "%s.%s" % (where, types.qualified_name(kind)),
        "dataset_len": _count(length),
        "index_list": weigh.index_list(loader),
        "weight": _weight_of(dataset, length),
    }
    agent.loads(weigh.kept_by_iterators, settings)
    message = {"kind": "loader"}
    message.update(settings)
    agent.send(message)


def _weight_of(dataset, length):
    """Weighed once, not at each epoch."""
    global _weighed
    try:
        if _weighed is None or _weighed[:2] != (id(dataset), length):
            _weighed = id(dataset), length, weigh.weigh(dataset)
        return _weighed[2]
    except Exception:
        return None


def _count(value):
    return value if type(value) is int and value >= 0 else None


def _truth(value):
    return value is True or _count(value) not in (None, 0)
