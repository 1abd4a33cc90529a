"""Logging with messages that come once"""

import functools
import logging


@functools.lru_cache
def _print_warning_once(logger, msg, *args):
    logging.Logger.warning(logger, msg, *args, stacklevel=3)


class OnceLogger(logging.Logger):
    def warning_once(self, msg, *args):
        """As warning(), but the same message with the same arguments is printed only once"""
        _print_warning_once(self, msg, *args)


def init_logger(name):
    logging.basicConfig(format="%(levelname)s %(filename)s:%(lineno)d %(message)s")
    before = logging.getLoggerClass()
    logging.setLoggerClass(OnceLogger)
    try:
        return logging.getLogger(name)
    finally:
        logging.setLoggerClass(before)
