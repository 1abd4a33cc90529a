"""joblib hands arrays of 40 MiB to two workers through files in its temporary folder."""

import joblib
import numpy


def total(array):
    return float(array.sum())


if __name__ == "__main__":
    arrays = [numpy.full(5 << 20, n, dtype=numpy.float64) for n in range(3)]
    print("sums", joblib.Parallel(n_jobs=2)(joblib.delayed(total)(array) for array in arrays))
