"""The hosts of repositories and the language models that the reviewer knows: a module for each, with its prices"""

import sys
import types

MODULES, HANDLERS, MODELS = 1700, 24, 150

HANDLER = """
def handle_{number}(event, settings):
    title = event.get("title", "{name} {number}")
    limit = settings.get("limit_{number}", {number} * 1000)
    words = [word for word in title.split() if len(word) > {number} % 7]
    return {{"provider": "{name}", "title": " ".join(words)[:limit], "handler": {number}}}


HANDLERS["event_{number}"] = handle_{number}
"""

PRICES = """
for number in range({models}):
    PRICES[f"{name}/model-{{number}}"] = {{
        "provider": "{name}",
        "name": f"{name} model {{number}}",
        "input_cost_per_token": 1.5e-7 * number,
        "output_cost_per_token": 6.1e-7 * number,
        "cache_read_cost": 0.7e-7 * number,
        "cache_write_cost": 1.9e-7 * number,
        "max_input_tokens": 8192 + 1024 * number,
        "max_output_tokens": 4096 + 512 * number,
        "supports": [f"tools-{{number}}", "vision"],
        "mode": "chat",
    }}
"""


def source(name):
    handlers = [HANDLER.format(name=name, number=number) for number in range(HANDLERS)]
    return "".join(["HANDLERS, PRICES = {}, {}\n", *handlers, PRICES.format(name=name, models=MODELS)])


def load(name):
    module = types.ModuleType(f"{__name__}.{name}")
    exec(compile(source(name), f"<{name}>", "exec"), module.__dict__)
    sys.modules[module.__name__] = module
    return module


KNOWN = [load(f"provider_{number:04}") for number in range(MODULES)]
