"""An ensemble of gauge configurations, and the correlators that are measured on each"""

import numpy as np

CONFIGURATIONS, SOURCES, MOMENTA, TIMES = 220, 16, 40, 128


class Ensemble:
    def __init__(self, seed):
        self.seed = seed

    def propagators(self, configuration):
        source = np.random.default_rng((self.seed, configuration))
        shape = SOURCES, 2, TIMES
        decay = np.exp(-0.08 * np.minimum(np.arange(TIMES), TIMES - np.arange(TIMES)))
        return (source.normal(size=shape) + 1j * source.normal(size=shape)) * decay


def contract(propagators, smearing):
    """The correlators of all momenta: a product in the space of frequencies"""
    spectra = np.fft.fft(propagators, axis=2)
    product = spectra[:, 0] * spectra[:, 1].conj()
    phases = np.exp(-smearing * np.arange(MOMENTA)[:, None] * np.abs(np.fft.fftfreq(TIMES))[None])
    return np.fft.ifft(product[:, None] * phases[None], axis=2)
