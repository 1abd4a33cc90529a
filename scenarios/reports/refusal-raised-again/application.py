"""A small ASGI-like stack: an application gets a scope, receive and send; what it raises becomes a response"""

import json


class HTTPError(Exception):
    def __init__(self, status, detail):
        super().__init__(detail)
        self.status, self.detail = status, detail


class Response:
    def __init__(self, content, status=200):
        self.status, self.body = status, json.dumps(content).encode()

    async def __call__(self, send):
        await send({"type": "response.start", "status": self.status, "length": len(self.body)})
        await send({"type": "response.body", "body": self.body})


async def http_error(exc):
    return Response({"detail": exc.detail}, exc.status)


def wrap_app_handling_exceptions(app, handlers):
    async def wrapped_app(scope, receive, send):
        started = False

        async def sender(message):
            nonlocal started
            started = started or message["type"] == "response.start"
            await send(message)

        try:
            await app(scope, receive, sender)
        except Exception as exc:
            handler = next((handlers[kind] for kind in type(exc).__mro__ if kind in handlers), None)
            if handler is None or started:
                raise
            response = await handler(exc)
            await response(sender)

    return wrapped_app
