"""The models of the recipe: number of layers, of experts and so on, and the names and shapes of their tensors"""

VOCABULARY, WIDTH = 8000, 512
MODELS = {
    "small": {"layers": 4, "experts": 4, "hidden": 192},
    "large": {"layers": 1, "experts": 192, "hidden": 768},
}


def tensors(model):
    config = MODELS[model]
    shapes = {"embed_tokens": (VOCABULARY, WIDTH)}
    for layer in range(config["layers"]):
        shapes[f"layers.{layer}.mlp.router"] = (config["experts"], WIDTH)
        shapes[f"layers.{layer}.mlp.experts.gate_up_proj"] = (config["experts"], 2 * config["hidden"], WIDTH)
        shapes[f"layers.{layer}.mlp.experts.down_proj"] = (config["experts"], WIDTH, config["hidden"])
    return shapes


def is_expert(name):
    return ".experts." in name
