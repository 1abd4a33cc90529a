"""The engine of the server: one model, and the conditionals of the voices that it has prepared"""

import os


class Engine:
    def __init__(self, model):
        self.model = model
        self._conds_cache = {}

    def synthesize(self, text, voice, exaggeration=0.5):
        key = (voice, os.stat(voice).st_mtime_ns, exaggeration)
        conditionals = self._conds_cache.get(key)
        if conditionals is None:
            sound = self.model.generate(text, audio_prompt_path=voice, exaggeration=exaggeration)
            self._conds_cache[key] = self.model.conds
        else:
            self.model.conds = conditionals
            sound = self.model.generate(text)
        return sound
