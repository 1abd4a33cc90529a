"""The registry of what tasks can be made of: providers with their operators, hooks and the fields of their forms"""

import random

PROVIDERS, OPERATORS, FIELDS = 40, 24, 220


class Field:
    def __init__(self, name, description, default):
        self.name, self.description, self.default = name, description, default
        self.validators = []


class Operator:
    def __init__(self, name, fields):
        self.name, self.fields = name, {field.name: field for field in fields}
        for field in fields:
            field.validators.append((self, len(field.description)))

    def defaults(self, wanted=5):
        return [field.default for _, field in zip(range(wanted), self.fields.values())]


def load_registry():
    source, registry = random.Random(1), {}
    for provider in range(PROVIDERS):
        for operator in range(OPERATORS):
            fields = [
                Field(f"field_{number}", f"{source.random():.17f} of provider {provider} " * 5, source.random())
                for number in range(FIELDS)
            ]
            name = f"provider_{provider}.operator_{operator}"
            registry[name] = Operator(name, fields)
    return registry
