"""Items of a content platform: the specification of a content type's fields, and documents of this type"""

import argparse
import json
import random
import sys

SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
FIELDS, CHOICES, DOCUMENTS = 48, 12, 3


def word(rng, length):
    return "".join(rng.choices(SYLLABLES, k=length))


def item(number):
    rng = random.Random(number)
    fields = {}
    for position in range(FIELDS):
        name = f"{word(rng, 3)}_{position}"
        spec = {"type": rng.choice(["string", "number", "choice"]), "required": rng.random() < 0.5}
        spec["label"] = " ".join(word(rng, 3) for _ in range(3))
        spec["help"] = " ".join(word(rng, 4) for _ in range(14))
        if spec["type"] == "choice":
            spec["choices"] = [f"{word(rng, 4)}-{position}" for _ in range(CHOICES)]
        fields[name] = spec
    documents = []
    for _ in range(DOCUMENTS):
        document = {}
        for name, spec in fields.items():
            if spec["type"] == "choice":
                document[name] = rng.choice(spec["choices"])
            else:
                document[name] = word(rng, 5) if spec["type"] == "string" else rng.random()
        documents.append(document)
    return {"name": f"content_{number}", "fields": fields, "documents": documents}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, required=True)
    for number in range(parser.parse_args().items):
        sys.stdout.write(json.dumps(item(number)) + "\n")


if __name__ == "__main__":
    main()
