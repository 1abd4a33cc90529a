"""A daemon for voice: each call has a port of its own for its frames, which come back without echo and with a mark"""

import asyncio
import json
import signal

import torch
from buffers import BINS, FRAME, Pool

torch.set_num_threads(1)


class Call(asyncio.DatagramProtocol):
    def __init__(self, daemon):
        self.daemon, self.buffers, self.frames = daemon, daemon.pool.take(), 0

    def connection_made(self, transport):
        self.transport = transport

    @torch.inference_mode()
    def datagram_received(self, data, address):
        buffers, at = self.buffers, self.frames
        samples = torch.frombuffer(bytearray(data), dtype=torch.int16).float() / 32768
        buffers.jitter[at % len(buffers.jitter)] = samples
        clean = samples - 0.1 * buffers.filter * buffers.echo[(at - 3) % len(buffers.echo)]
        buffers.echo[at % len(buffers.echo)] = clean
        buffers.filter.mul_(0.999).add_(0.001 * clean.abs())
        spectrum = torch.fft.rfft(clean).abs()
        buffers.spectra[at % len(buffers.spectra)] = spectrum
        speech = self.daemon.detector(spectrum).item()
        self.frames += 1
        mark = json.dumps({"frame": at, "speech": round(speech, 3)}).encode()
        self.transport.sendto((clean.clamp(-1, 1) * 32767).to(torch.int16).numpy().tobytes() + mark, address)

    def hang_up(self):
        self.transport.close()
        self.daemon.pool.give(self.buffers)
        self.buffers = None
        return self.frames


class Daemon:
    def __init__(self):
        torch.manual_seed(0)
        self.pool, self.calls, self.completed, self.most = Pool(), {}, 0, 0
        self.detector = torch.nn.Sequential(
            torch.nn.Linear(BINS, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1), torch.nn.Sigmoid()
        )

    async def invite(self, request):
        loop = asyncio.get_running_loop()
        transport, call = await loop.create_datagram_endpoint(lambda: Call(self), local_addr=("127.0.0.1", 0))
        port = transport.get_extra_info("sockname")[1]
        self.calls[port] = call
        self.most = max(self.most, len(self.calls))
        return {"port": port, "frame": FRAME}

    async def bye(self, request):
        self.completed += 1
        return {"frames": self.calls.pop(request["port"]).hang_up()}

    async def control(self, reader, writer):
        while line := await reader.readline():
            request = json.loads(line)
            answer = await (self.invite if request["method"] == "INVITE" else self.bye)(request)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()


async def main():
    daemon, stop = Daemon(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(daemon.control, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()
    print(f"{daemon.completed} calls, {daemon.most} at a time, {daemon.pool.made} buffers", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
