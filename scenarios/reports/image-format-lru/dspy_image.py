"""The image type of a signature, and the adapter that turns inputs into messages"""

import base64
from functools import lru_cache


class Image:
    def __init__(self, url):
        self.url = url

    @classmethod
    def from_bytes(cls, data, kind="x-portable-pixmap"):
        return cls(f"data:image/{kind};base64,{base64.b64encode(data).decode()}")

    @lru_cache(maxsize=32)
    def format(self):
        return [{"type": "image_url", "image_url": {"url": self.url}}]


class Settings:
    def __init__(self):
        self.trace = []


settings = Settings()


class Predict:
    def __init__(self, signature, language_model):
        self.signature, self.language_model = signature, language_model

    def __call__(self, **inputs):
        content = [{"type": "text", "text": self.signature}]
        for name, value in inputs.items():
            content += value.format() if isinstance(value, Image) else [{"type": "text", "text": f"{name}: {value}"}]
        prediction = self.language_model([{"role": "user", "content": content}])
        settings.trace.append((self, inputs, prediction))
        return prediction
