"""A kernel runs the cells of a notebook; each cell ends in an array, which the output history Out[n] keeps."""

import ast
import multiprocessing

ANALYSIS = """
import numpy as np
rng = np.random.default_rng({number})
signal = rng.standard_normal(1 << 18).cumsum()
spectrum = np.abs(np.fft.rfft(np.tile(signal, 6)))
power = np.convolve(spectrum, np.ones(400) / 400, "same")
power[:330_000].copy()
"""
SUMMARY = "float(Out[len(Out)].max())"


class InteractiveShell:
    def __init__(self):
        self.execution_count = 1
        self.output_hist = {}
        self.user_ns = {"Out": self.output_hist, "_": "", "__": ""}

    def displayhook(self, result):
        if result is None:
            return ""
        self.user_ns["__"], self.user_ns["_"] = self.user_ns["_"], result
        self.output_hist[self.execution_count] = result
        return f"Out[{self.execution_count}]: {type(result).__name__}"

    def run_cell(self, source):
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"<ipython-input-{self.execution_count}>", "exec"), self.user_ns)
        shown = ""
        if last is not None:
            shown = self.displayhook(eval(compile(ast.Expression(last.value), "<expr>", "eval"), self.user_ns))
        self.execution_count = len(self.output_hist) + 1
        return shown

    def reset_variables(self):
        for name in ("signal", "spectrum", "power", "rng"):
            self.user_ns.pop(name, None)


def kernel(cells):
    shell = InteractiveShell()
    while (source := cells.recv()) is not None:
        cells.send(shell.run_cell(source))
        shell.reset_variables()


def main():
    front, back = multiprocessing.Pipe()
    process = multiprocessing.Process(target=kernel, args=(back,), name="kernel")
    process.start()
    for number in range(130):
        for source in (ANALYSIS.format(number=number), SUMMARY):
            front.send(source)
            shown = front.recv()
        if number % 10 == 0:
            print(f"In [{number}]: {shown}", flush=True)
    front.send(None)
    process.join()


if __name__ == "__main__":
    main()
