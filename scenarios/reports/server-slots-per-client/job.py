"""The server of a federation: selects clients for each round, and averages what they send"""

import multiprocessing
from multiprocessing.connection import Listener, wait

import numpy as np
import torch

from fedavg import FedAVGAggregator, LanguageModel, get_model_params, run_clients

ROUNDS, CLIENTS, PER_ROUND, PROCESSES = 6, 200, 12, 2


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    params = get_model_params(LanguageModel())
    aggregator = FedAVGAggregator(PER_ROUND)
    context = multiprocessing.get_context("spawn")
    with Listener(("127.0.0.1", 0)) as listener:
        processes = [context.Process(target=run_clients, args=(listener.address, rank)) for rank in range(PROCESSES)]
        for process in processes:
            process.start()
        connections = [listener.accept() for _ in processes]
        ranks = [connection.recv() for connection in connections]
        for number in range(ROUNDS):
            clients = np.random.default_rng(number).choice(CLIENTS, PER_ROUND, replace=False).tolist()
            for connection, rank in zip(connections, ranks):
                slots = list(range(rank, PER_ROUND, PROCESSES))
                connection.send((slots, [clients[slot] for slot in slots], params))
            losses = []
            while True:
                for connection in wait(connections):
                    slot, uploaded, sample_num, loss = connection.recv()
                    aggregator.add_local_trained_result(slot, uploaded, sample_num)
                    losses.append(loss)
                if aggregator.check_whether_all_receive():
                    break
            params = aggregator.aggregate()
            print(f"round {number}: loss {sum(losses) / len(losses):.4f}", flush=True)
        for connection in connections:
            connection.send(([], [], None))
        for process in processes:
            process.join()


if __name__ == "__main__":
    main()
