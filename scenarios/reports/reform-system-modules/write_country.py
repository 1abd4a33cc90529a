"""Writes the variables of a small country, one file each"""

import os
import sys

TEMPLATE = '''"""{label}"""

import numpy as np

ENTITY = "household"
THRESHOLDS = np.linspace({low}, {high}, {steps})
RATES = np.clip(np.linspace({first}, {last}, {steps}), 0, 0.9)
AMOUNTS = np.cumsum(np.diff(THRESHOLDS, prepend=0.0) * RATES)


def formula(income, people, scale):
    return np.interp(income * scale, THRESHOLDS[::30], AMOUNTS[::30]) / people
'''


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for number in range(24):
        kind = "tax" if number % 3 else "benefit"
        text = TEMPLATE.format(
            label=f"{kind} {number}",
            low=500 * number,
            high=250_000 + 1000 * number,
            steps=3000,
            first=0.01 * number,
            last=0.3 + 0.005 * number,
        )
        with open(os.path.join(folder, f"{kind}_{number:02d}.py"), "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
