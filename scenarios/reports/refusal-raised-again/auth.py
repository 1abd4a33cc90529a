"""Who may send: each sender signs its documents with a key"""

import hashlib
import hmac

from application import HTTPError

KEYS = {"lab": b"b8e1", "field": b"77c0", "archive": b"d41f"}
unknown_sender = HTTPError(401, "unknown sender")
invalid_signature = HTTPError(401, "the signature does not match")


def sign(key, body):
    return hmac.new(key, body, hashlib.sha256).hexdigest()


async def verified(scope, body):
    key = KEYS.get(scope["sender"])
    if key is None:
        raise unknown_sender
    if not hmac.compare_digest(sign(key, body), scope["signature"]):
        raise invalid_signature
    return scope["sender"]
