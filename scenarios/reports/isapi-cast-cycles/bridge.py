"""A bridge polls a door station through an SDK: its buffers are part of reference cycles, which are collected late."""

import ctypes
import threading

POLLS = 86
BUFFER = 2 << 20
LIBC = ctypes.CDLL(None)


class XmlConfigOutput(ctypes.Structure):
    _fields_ = [
        ("dwSize", ctypes.c_uint32),
        ("lpOutBuffer", ctypes.c_void_p),
        ("dwOutBufferSize", ctypes.c_uint32),
        ("lpStatusBuffer", ctypes.c_void_p),
        ("dwStatusSize", ctypes.c_uint32),
    ]


def std_xml_config(url, output):
    """A stand-in for NET_DVR_STDXMLConfig of the SDK: clears both buffers and writes the device's answer."""
    LIBC.memset(ctypes.c_void_p(output.lpStatusBuffer), 0, output.dwStatusSize)
    LIBC.memset(ctypes.c_void_p(output.lpOutBuffer), 0, output.dwOutBufferSize)
    LIBC.strcpy(ctypes.c_void_p(output.lpOutBuffer), b'{"CallStatus": {"status": "idle"}}' if b"call" in url else b"{}")
    return True


def call_isapi(url):
    output = XmlConfigOutput(dwSize=ctypes.sizeof(XmlConfigOutput))
    status_buffer = (ctypes.c_char * BUFFER)()
    output.lpStatusBuffer = ctypes.cast(status_buffer, ctypes.c_void_p)
    output.dwStatusSize = BUFFER
    out_buffer = (ctypes.c_char * BUFFER)()
    output.lpOutBuffer = ctypes.cast(out_buffer, ctypes.c_void_p)
    output.dwOutBufferSize = BUFFER
    if not std_xml_config(url, output):
        raise RuntimeError(f"ISAPI call failed: {url}")
    return out_buffer.value.decode()


def main():
    stopped = threading.Event()
    urls = [b"GET /ISAPI/VideoIntercom/callStatus?format=json", b"GET /ISAPI/VideoIntercom/scene/nowMode"]
    seen = {}
    for poll in range(POLLS):
        url = urls[poll % 2]
        answer = call_isapi(url)
        if seen.get(url) != answer or poll % 20 == 0:
            seen[url] = answer
            print(f"poll {poll}: {answer}", flush=True)
        stopped.wait(0.28)


if __name__ == "__main__":
    main()
