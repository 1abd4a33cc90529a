"""What the scripts use of FITS: files of one image behind a header in blocks of 2880 bytes"""

import numpy as np

BLOCK = 2880


def write(path, image):
    cards = [
        "SIMPLE  =                    T",
        "BITPIX  =                  -32",
        "NAXIS   =                    2",
        f"NAXIS1  = {image.shape[1]:20d}",
        f"NAXIS2  = {image.shape[0]:20d}",
        "END",
    ]
    header = "".join(f"{card:80}" for card in cards)
    data = image.astype(">f4").tobytes()
    with open(path, "wb") as file:
        file.write(f"{header:{BLOCK}}".encode("ascii"))
        file.write(data + bytes(-len(data) % BLOCK))


class HDUList:
    """An open file; its data is mapped when it is first asked for"""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "rb")
        header = self.file.read(BLOCK).decode("ascii")
        cards = [header[i : i + 80] for i in range(0, BLOCK, 80)]
        self.header = {card[:8].strip(): card[10:].strip() for card in cards if card[8:10] == "= "}
        self._data = None

    @property
    def data(self):
        if self._data is None:
            shape = (int(self.header["NAXIS2"]), int(self.header["NAXIS1"]))
            self._data = np.memmap(self.file, dtype=">f4", mode="r", offset=BLOCK, shape=shape)
        return self._data

    def close(self):
        self.file.close()


def open_file(path):
    return HDUList(path)
