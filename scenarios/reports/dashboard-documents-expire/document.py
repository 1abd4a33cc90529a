"""Documents of models that refer to each other, as a browser session sees them"""

import numpy as np

POINTS = 450_000


class Model:
    def __init__(self, document, **properties):
        self.document, self.references, self.callbacks = document, [], []
        self.__dict__.update(properties)
        document.models.append(self)

    def on_change(self, callback):
        self.callbacks.append(callback)


class Document:
    def __init__(self, session_id):
        self.session_id, self.models, self.patches = session_id, [], 0

    def destroy(self):
        for model in self.models:
            model.document = None
            model.references.clear()
            model.callbacks.clear()
        self.models.clear()


def modify_document(document):
    """The application: a source of walks, a figure of them, and a slider"""
    generator = np.random.default_rng(hash(document.session_id) % 2**32)
    columns = {name: generator.standard_normal(POINTS).cumsum() for name in ("load", "price", "wind", "solar")}
    source = Model(document, columns=columns)
    figure = Model(document, title=document.session_id)
    slider = Model(document, value=1)
    figure.references += [source, slider]

    def changed(value):
        step = max(1, POINTS // 400)
        window = np.hanning(2 * value + 1)
        smooth = np.convolve(source.columns["load"][: 40 * step], window / window.sum(), mode="same")
        document.patches += 1
        return smooth[::step].tolist()

    slider.on_change(changed)
    return slider
