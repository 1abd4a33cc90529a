"""An interactive shell: runs cells, and keeps what they show"""

import ast
import traceback


class DisplayHook:
    def __init__(self, shell, cache_size, cull_fraction=0.2):
        self.shell, self.cache_size, self.cull_fraction = shell, cache_size, cull_fraction

    def __call__(self, result):
        if result is not None:
            self.update_user_ns(result)

    def update_user_ns(self, result):
        """The last three results as _, __ and ___, and each by the number of its cell"""
        names = self.shell.user_ns
        if len(names["_oh"]) >= self.cache_size:
            self.cull_cache()
        names["___"], names["__"], names["_"] = names.get("__"), names.get("_"), result
        names[f"_{self.shell.execution_count}"] = result
        names["_oh"][self.shell.execution_count] = result

    def cull_cache(self):
        """Drops the oldest entries"""
        entries = self.shell.user_ns["_oh"]
        cull_count = max(int(len(entries) * self.cull_fraction), 2)
        for number in sorted(entries)[:cull_count]:
            self.shell.user_ns.pop(f"_{number}", None)
            del entries[number]


class InteractiveShell:
    def __init__(self, cache_size=1000):
        entries = {}
        self.user_ns = {"__name__": "__main__", "_oh": entries, "Out": entries, "In": [""]}
        self.execution_count, self.displayhook = 1, DisplayHook(self, cache_size)

    def run_cell(self, raw_cell):
        """The text of the cell's result or error"""
        self.user_ns["In"].append(raw_cell)
        module, last = ast.parse(raw_cell), None
        if module.body and isinstance(module.body[-1], ast.Expr):
            last = ast.Expression(module.body.pop().value)
        shown = ""
        try:
            exec(compile(module, f"<cell {self.execution_count}>", "exec"), self.user_ns)
            if last is not None:
                result = eval(compile(last, f"<cell {self.execution_count}>", "eval"), self.user_ns)
                self.displayhook(result)
                shown = f"Out[{self.execution_count}]: {result!r}"
        except Exception:
            shown = traceback.format_exc()
        self.execution_count += 1
        return shown
