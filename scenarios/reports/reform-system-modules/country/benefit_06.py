"""benefit 6"""

import numpy as np

ENTITY = "household"
THRESHOLDS = np.linspace(3000, 256000, 3000)
RATES = np.clip(np.linspace(0.06, 0.32999999999999996, 3000), 0, 0.9)
AMOUNTS = np.cumsum(np.diff(THRESHOLDS, prepend=0.0) * RATES)


def formula(income, people, scale):
    return np.interp(income * scale, THRESHOLDS[::30], AMOUNTS[::30]) / people
