"""Measures the correlators of an ensemble for a few smearings, and shows how large the process is"""

import resource
import time

import numpy as np
from ensemble import CONFIGURATIONS, MOMENTA, SOURCES, TIMES, Ensemble, contract

SMEARINGS, STEP_S = (0.5, 1.0, 2.0), 0.045


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() >> 20


def effective_mass(correlators):
    mean = correlators.mean((0, 1)).real
    return float(np.log(np.abs(mean[0, 4] / mean[0, 5])))


def main():
    ensemble = Ensemble(5)
    correlators = np.zeros((CONFIGURATIONS, SOURCES, MOMENTA, TIMES), dtype=np.complex128)
    for smearing in SMEARINGS:
        begin = time.monotonic()
        for configuration in range(CONFIGURATIONS):
            propagators = ensemble.propagators(configuration)
            correlators[configuration] = contract(propagators, smearing)
            # The noise of the first source, from as many resampled vectors as there is time for
            while time.monotonic() < begin + (configuration + 1) * STEP_S:
                contract(propagators[:1], smearing)
            if (configuration + 1) % 55 == 0:
                print(f"smearing {smearing}: {configuration + 1} done, {resident()} MiB", flush=True)
        print(f"smearing {smearing}: effective mass {effective_mass(correlators):.4f}", flush=True)


if __name__ == "__main__":
    main()
