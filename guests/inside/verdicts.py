"""Looking at verdicts: the part that a person would look at first, and the checks that cases share."""

import json
import os

from guest import HAVE_ULLAGE, exported, report


def shape(verdict):
    findings = [f"{f['cause']} ({f['severity']}, {f['status']})" for f in verdict["findings"]]
    return json.dumps({"outcome": verdict["outcome"], "healthy": verdict["healthy"], "findings": findings,
                       "undetermined": [u["cause"] for u in verdict.get("undetermined", [])]})  # fmt: skip


def expect(record, cause, artifacts, statuses=("established",), outcome=None):
    """First finding, how certain, and how COMMAND ended, as `ullage report` says afterwards."""
    if not HAVE_ULLAGE:
        return
    verdict = report(record)
    artifacts[f"{os.path.basename(record)}.json"] = json.dumps(verdict, indent=1)
    artifacts["export.jsonl"] = "\n".join(map(json.dumps, exported(record)))
    first = verdict["findings"][0] if verdict["findings"] else {"cause": None, "status": None}
    yield f"first finding is {cause}", first["cause"] == cause, shape(verdict)
    yield f"it is {' or '.join(statuses)}", first["status"] in statuses, shape(verdict)
    yield "not healthy", verdict["healthy"] is False, shape(verdict)
    if outcome:
        yield f"outcome {outcome}", verdict["outcome"]["kind"] == outcome, verdict["outcome"]


def ended_like(ended, code):
    """What ullage's parent sees of a job that ended with `code` (negative: by that signal)."""
    seen = (128 - code if code < 0 else code) if HAVE_ULLAGE else code
    return f"exit status {seen}", ended.code == seen, f"{ended.code}: {ended.err[-300:]}"
