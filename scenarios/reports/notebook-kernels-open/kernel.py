"""A kernel: runs cells from its input in one namespace, and answers each with what the cell printed last"""

import json
import sys
import traceback

namespace = {"__name__": "__main__"}
for line in sys.stdin:
    cell = json.loads(line)
    answer = {"status": "ok"}
    try:
        exec(compile(cell["source"], f"<cell {cell['number']}>", "exec"), namespace)
        answer["result"] = namespace.get("result")
    except Exception:
        answer = {"status": "error", "traceback": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
