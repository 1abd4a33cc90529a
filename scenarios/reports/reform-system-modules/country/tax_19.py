"""tax 19"""

import numpy as np

ENTITY = "household"
THRESHOLDS = np.linspace(9500, 269000, 3000)
RATES = np.clip(np.linspace(0.19, 0.395, 3000), 0, 0.9)
AMOUNTS = np.cumsum(np.diff(THRESHOLDS, prepend=0.0) * RATES)


def formula(income, people, scale):
    return np.interp(income * scale, THRESHOLDS[::30], AMOUNTS[::30]) / people
