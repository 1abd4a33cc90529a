"""The settings of the server; the environment may override the number of workers"""

import multiprocessing
import os

workers = int(os.environ.get("WEB_CONCURRENCY", multiprocessing.cpu_count() * 2 + 1))
preload_app = False
backlog = 128
