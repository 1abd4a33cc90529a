"""Whether code looks into a dict before it adds to it, as the byte code of each Python says."""

from test_agent_weight import told

USES = {
    "self.kept[self.number] = value": (True, False),
    "kept[number] = value": (True, False),
    "kept[number] = {'loss': value, 'at': number + 1}": (True, False),
    "other = kept[number]": (False, True),
    "if number not in kept: kept[number] = value": (True, True),
    "if number in self.kept: return\n    self.kept[number] = value": (True, True),
    "if self.kept.get(number) is None: self.kept[number] = value": (True, True),
    "try: return kept[number]\n    except KeyError: kept[number] = value": (True, True),
    "kept.setdefault(number, []).append(value)": (False, True),
    "kept[number] += value": (False, True),
    "for key, one in kept.items(): print(key)": (False, False),
    "print(len(kept)); other[number] = value": (False, False),
}


def test_what_code_does_with_a_dict_is_read_from_its_byte_code(python, script):
    program = f"""
import dis
numbered = agent_parts.common.__globals__["load"]("numbered")
said = {{}}
for text in {list(USES)!r}:
    names = {{}}
    exec("def f(self, kept, number, value, other):\\n    " + text, names)
    stores, looks = numbered._uses(dis, names["f"].__code__, "kept")
    said[text] = [stores, looks]
say(said=said)
"""
    said = told(python, script, program)["said"]
    assert {text: tuple(both) for text, both in said.items()} == USES
