"""What the reconstructions draw on: a canvas with callbacks for events, and panels that show one image each."""


class CallbackRegistry:
    def __init__(self):
        self.callbacks, self.next_id = {}, 0

    def connect(self, signal, function):
        self.next_id += 1
        self.callbacks.setdefault(signal, {})[self.next_id] = function
        return self.next_id

    def process(self, signal, event):
        for function in list(self.callbacks.get(signal, {}).values()):
            function(event)


class Axes:
    def __init__(self):
        self.image = self.title = None

    def clear(self):
        self.image = self.title = None

    def imshow(self, image):
        self.image = (image * (255 / (image.max() + 1e-9))).astype("uint8")


class Canvas:
    """One window; a panel plot has several axes in it."""

    def __init__(self, rows):
        self.registry = CallbackRegistry()
        self.axes = [Axes() for _ in range(rows)]

    def mpl_connect(self, signal, function):
        return self.registry.connect(signal, function)


def plot_with_slider(canvas, axes, images, show, title):
    """Shows one of a stack of images; a scroll over the axes shows another one."""
    axes.clear()
    position = 0

    def on_scroll(event):
        nonlocal position
        if event.axes is axes:
            position = (position + event.step) % len(images)
            axes.imshow(show(images[position]).numpy())

    axes.imshow(show(images[0]).numpy())
    axes.title = title
    canvas.mpl_connect("scroll_event", on_scroll)
