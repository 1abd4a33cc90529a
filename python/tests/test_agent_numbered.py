"""Whether code looks into a dict before it adds to it, as the byte code of each Python says."""

from test_agent_weight import told

# stores by a key, asks whether one is there, reads by one
USES = {
    "self.kept[self.number] = value": (True, False, False),
    "kept[number] = value": (True, False, False),
    "kept[number] = {'loss': value, 'at': number + 1}": (True, False, False),
    "kept[number + 1] = value": (True, False, False),
    "other = kept[number]": (False, False, True),
    "if number not in kept: kept[number] = value": (True, True, False),
    "if number in self.kept: return\n    self.kept[number] = value": (True, True, False),
    "if number not in kept.keys(): kept[number] = value": (True, True, False),
    "if self.kept.get(number) is None: self.kept[number] = value": (True, True, False),
    "try: return kept[number]\n    except KeyError: kept[number] = value": (True, False, True),
    "kept.setdefault(number, []).append(value)": (False, True, False),
    "kept[number] += value": (False, False, True),
    "for key, one in kept.items(): print(key)": (False, False, False),
    "print(len(kept)); other[number] = value": (False, False, False),
    "other['kept'] = kept": (False, False, False),
    "kept[int(number)] = value": (True, False, False),
    "self.kept[len(self.kept)] = value": (True, False, False),
    "kept[number.item()] = value": (True, False, False),
    "print(kept, value); other[number] = value": (False, False, False),
    "if 'loss' in kept: print(1)\n    kept[number] = value": (True, False, False),
    "kept.get('loss'); kept[number] = value": (True, False, False),
    "kept[number] = value\n    print(kept[number])": (True, False, False),
    "other['kept'] = self.kept": (False, False, False),
}


def test_what_code_does_with_a_dict_is_read_from_its_byte_code(python, script):
    program = f"""
numbered = agent_parts.common.__globals__["load"]("numbered")
said = {{}}
for text in {list(USES)!r}:
    names = {{}}
    exec("def f(self, kept, number, value, other):\\n    " + text, names)
    said[text] = numbered._uses(names["f"].__code__, "kept")
say(said=said)
"""
    said = told(python, script, program)["said"]
    assert {text: tuple(uses) for text, uses in said.items()} == USES
