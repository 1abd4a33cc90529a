"""What the script uses of labelled arrays: packed values with a scale and an offset, decoded when they are asked for"""

import numpy as np


class DataArray:
    def __init__(self, name, dims, packed, scale, offset, weights=None):
        self.name, self.dims, self.packed = name, dims, packed
        self.scale, self.offset, self.weights = np.float32(scale), np.float32(offset), weights

    @property
    def values(self):
        decoded = self.packed * self.scale + self.offset
        if self.weights is not None:
            decoded = (decoded.reshape(len(decoded), -1) @ self.weights).reshape(decoded.shape)
        return decoded.astype(np.float64)

    def isel(self, lat, lon):
        return DataArray(self.name, self.dims[:1], self.packed[:, lat, lon], self.scale, self.offset)

    def interp(self, weights):
        """The same array on another grid, lazily"""
        return DataArray(self.name, self.dims, self.packed, self.scale, self.offset, weights)

    def to_dict(self):
        attributes = {"scale_factor": float(self.scale), "add_offset": float(self.offset)}
        return {"dims": self.dims, "attrs": attributes, "data": self.values.tolist()}


class Dataset:
    def __init__(self, arrays):
        self.data_vars = {array.name: array for array in arrays}

    def isel(self, lat, lon):
        return Dataset([array.isel(lat, lon) for array in self.data_vars.values()])

    def interp(self, weights):
        return Dataset([array.interp(weights) for array in self.data_vars.values()])

    def to_dict(self):
        return {"attrs": {}, "data_vars": {name: array.to_dict() for name, array in self.data_vars.items()}}
