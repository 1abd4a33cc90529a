"""What goes from the host to a sandbox and back: packed inputs, files, requests for the model"""

import base64
import hashlib
import json
import pickle

CHUNK = 1 << 16


def packed_inputs(frames, step):
    """The namespace of a snippet as text that the sandbox protocol can carry"""
    return base64.b64encode(pickle.dumps({"frames": frames, "step": step}, protocol=5))


def file_content(inputs):
    """The start of the file behind the inputs, as the bridge answers the sandbox's first read"""
    content = base64.b64decode(inputs)
    return hashlib.sha256(content).digest() + content[:CHUNK]


def request_body(inputs):
    """A request with the newest frame to the model, whose answer is the next snippet"""
    frame = inputs[-len(inputs) // 3 :].decode()
    body = json.dumps({"image": frame, "ask": "what next"}).encode()
    return hashlib.blake2b(body, digest_size=4).hexdigest()


def decoded_namespace(inputs, result):
    """The namespace after the snippet: what the agent looks at is a number"""
    namespace = pickle.loads(base64.b64decode(inputs))
    frames = namespace["frames"] ^ result["mask"]
    return float(frames[::64].mean()) / 255
