"""A data set whose sequences are loaded by several processes, and ordered by one more"""

import multiprocessing

from corpus import OggZipDataset


def _init_dataset(options):
    return OggZipDataset(**options)


def _seq_order_proc(options, parent, workers, partition):
    dataset = _init_dataset(options)
    parent.send("ready")
    while (epoch := parent.recv()) is not None:
        order = dataset.get_seq_order_for_epoch(epoch, partition)
        for number, worker in enumerate(workers):
            worker.send(order[number :: len(workers)])
        parent.send(len(order))
    for worker in workers:
        worker.send(None)


def _worker_proc(options, parent, orders, buffer_size):
    dataset = _init_dataset(options)
    parent.send("ready")
    while (order := orders.recv()) is not None:
        dataset.init_seq_order(order)
        for start in range(0, len(dataset), buffer_size):
            parent.send([dataset.get_seq(number) for number in range(start, min(start + buffer_size, len(dataset)))])
            if parent.recv() == "stop":
                break
        parent.send(None)


class MultiProcDataset:
    def __init__(self, name, options, num_workers, buffer_size, partition):
        context = multiprocessing.get_context("spawn")
        self.name, self.workers, self.processes = name, [], []
        ends = []
        for number in range(num_workers):
            here, there = context.Pipe()
            receiver, sender = context.Pipe(duplex=False)
            ends.append(sender)
            self._start(context, f"MPD worker {number}", _worker_proc, options, there, receiver, buffer_size)
            self.workers.append(here)
        self.seq_order, there = context.Pipe()
        self._start(context, "MPD seq order", _seq_order_proc, options, there, ends, partition)
        for connection in [self.seq_order, *self.workers]:
            connection.recv()

    def _start(self, context, name, target, *args):
        process = context.Process(target=target, args=args, name=name, daemon=True)
        process.start()
        self.processes.append(process)

    def sequences(self, epoch, limit):
        """The first sequences of the epoch, a buffer from each worker in turn"""
        self.seq_order.send(epoch)
        count = min(self.seq_order.recv(), limit)
        active, seen = list(self.workers), 0
        while active:
            for worker in list(active):
                buffer = worker.recv()
                if buffer is None:
                    active.remove(worker)
                    continue
                worker.send("stop" if seen + len(buffer) >= count else "next")
                for sequence in buffer[: count - seen]:
                    yield sequence
                seen += min(len(buffer), count - seen)

    def close(self):
        self.seq_order.send(None)
        for process in self.processes:
            process.join()
