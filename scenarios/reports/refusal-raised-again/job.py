"""Starts the webhook service and two senders, and stops the service when the senders are done"""

import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    server = subprocess.Popen([sys.executable, os.path.join(HERE, "server.py")], stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().strip()
    senders = [
        subprocess.Popen([sys.executable, os.path.join(HERE, "sender.py"), port, name]) for name in ("lab", "field")
    ]
    failed = [sender.wait() for sender in senders]
    server.send_signal(signal.SIGTERM)
    print(server.stdout.read().strip(), flush=True)
    sys.exit(max(failed) or server.wait())


if __name__ == "__main__":
    main()
