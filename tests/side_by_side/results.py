"""How a job of many parts says what each of them computed: a line each, its name, a tab, and that."""

import gc


def say_each(parts, names):
    """`parts`: name -> function. What a part raises is its result."""
    for name in names:
        try:
            said = str(parts[name]())
        except Exception as error:
            words = [line for line in str(error).splitlines() if line and not line.startswith(" ")]
            said = f"{type(error).__name__} {words}"
        print(f"{name}\t{said}", flush=True)
        # What an exception held is let go of here, and not by the collector in a worker of the next one.
        gc.collect()
