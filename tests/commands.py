#!/usr/bin/env python3
"""Every command that a page or a screen of ullage tells people to type is typed here.

    tests/commands.py --ullage PATH [--python PYTHON] [-v]

Collected are the `sh` blocks and the `ullage ...` in the text of README.md, CONTRIBUTING.md and docs/, in the pages of
all causes (`ullage explain CAUSE`), and in the strings of the sources, where remedies and hints stand. Each runs in a
folder that has what it speaks of: recordings, snapshots, a log, a `train.py`. It must end with 0; one that cannot run
here stands in ELSEWHERE with the reason. Prints how many ran.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ["README.md", "CONTRIBUTING.md", "docs"]
SOURCES = ["crates/observe", "crates/present", "crates/run", "python/ullage"]

# Beginnings of commands that are not run, and why; what can be checked of them is.
ELSEWHERE = {
    "make ": "builds or tests everything: its target must be in the Makefile",
    "pip install .": "builds for minutes: pyproject.toml must be here",
    "cargo install --path ": "builds for minutes: the crate must be there",
    "git grep ": "counts in a commit of a clone",
    "ullage serve": "serves until it is ended: tests/metrics.py",
    "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 ullage serve": "serves until it is ended: tests/metrics.py",
    "ullage check --clean --yes": "removes what other jobs of this user left",
}
# Strings of the sources that begin like a command and are none.
NO_COMMANDS = [
    "ullage attached to",
    "ullage budget",
    "ullage could not start",
    "ullage watches only",
    "ullage ended the command",
    "ullage ends the job",
    "ullage is ready",
    "ullage itself",
]
# What the sources fill in when they show it.
FILLED_IN = [
    (r"--memory-max \{\w*\}\w*", "--memory-max 1GiB"),
    (r"--fix=\{\w*\}", "--fix=nofile"),
    (r"explain \{\w*\}", "explain max-map-count-exhausted"),
    (r"report \{\w*\}", "report RUN"),
    (r"-- \{\w*\}", "-- true"),
]
# What stands for something else, longest first.
STAND_INS = [
    ("ullage COMMAND --help", "ullage run --help"),
    ("ullage help COMMAND", "ullage help run"),
    ("CAUSE|FILE|-", "max-map-count-exhausted"),
    ("[PID|RUN]", "RUN"),
    ("[RUN]", "RUN"),
    ("COMMAND...", "true"),
    ("-- python ...", "-- python train.py"),
    ("-- ...", "-- true"),
    ("COMMAND", "true"),
    ("explain LOG", "explain train.log"),
    ("fleet DIR", "fleet ."),
    ("fleet PATH", "fleet ."),
    ("--job 4711", "--job -"),
    ("explain FILE", "explain train.log"),
    ("explain CAUSE", "explain max-map-count-exhausted"),
    ("explain ID", "explain max-map-count-exhausted"),
    ("compare GOOD BAD", "compare good bad"),
    ("--python PATH", "--python .venv/bin/python"),
    ("-o DIR", "-o exported"),
    ("-o FILE", "-o written.json"),
    ("--json FILE", "--json written.json"),
    ("--metrics-file FILE", "--metrics-file written.prom"),
    ("/var/lib/prometheus/node-exporter/ullage.prom", "written.prom"),
    ("--as SNAPSHOT", "--as bad.json"),
    ("PID", "{pid}"),
    ("RUN", "{run}"),
]
# These name a command and are no line to type: its help must know it.
NEEDS_MORE = {
    *("run", "run --", "run --fix", "run --json", "run --json written.json", "run --as bad.json"),
    *("run --metrics-file written.prom", "run --fleet", "run --fleet .", "run --fleet DIR"),
    *("export", "compare", "compare --json", "runs rm", "runs push", "completions", "mark", "fleet", "fleet --json"),
}


def collected():
    """Commands, each with the first place where it stands."""
    found = {}
    for path in files(PAGES, ".md"):
        text = read(path)
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M):
            for line in block.splitlines():
                add(found, line.split(" #")[0], path)
        prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
        for command in re.findall(r"`(ullage [^`]+)`", prose):
            add(found, command.replace("\\|", "|"), path)
    for path in files(SOURCES, (".rs", ".py")):
        if "/tests" in path or path.endswith("tests.rs"):
            continue
        text = read(path).split("#[cfg(test)]")[0]
        strings = r'"(ullage [a-z][^"\\]*)'
        quoted = r"`(ullage [a-z][^`\n]*)`"
        behind_a_colon = r": (ullage (?:run|check|report|explain|compare|watch|snapshot)[^\"`;\\\n]*)"
        for way in (strings, quoted, behind_a_colon):
            for command in re.findall(way, text):
                add(found, command.split(" #")[0], path)
    return found


def files(places, ends):
    for place in places:
        place = os.path.join(ROOT, place)
        if os.path.isfile(place):
            yield place
        for folder, _, names in sorted(os.walk(place)):
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(ends))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def add(found, command, path):
    command = re.sub(r"(?<=\w)[.,]$", "", " ".join(command.split()))
    if command and not any(command.startswith(one) for one in NO_COMMANDS):
        found.setdefault(command, os.path.relpath(path, ROOT))


def elsewhere(command):
    """Why a command is not run here, or None; fails where not even what can be checked of it holds."""
    for beginning, why in ELSEWHERE.items():
        if command.startswith(beginning):
            words = command.split()
            if beginning == "make ":
                assert re.search(rf"^{re.escape(words[1])}:", read(os.path.join(ROOT, "Makefile")), re.M), command
            elif beginning.startswith("cargo"):
                assert os.path.isfile(os.path.join(ROOT, words[3], "Cargo.toml")), command
            elif beginning.startswith("pip"):
                assert os.path.isfile(os.path.join(ROOT, "pyproject.toml")), command
            return why
    return None


class Place:
    """A folder with everything that the commands speak of."""

    def __init__(self, ullage, python):
        self.folder = tempfile.mkdtemp(prefix="commands-of-ullage-")
        self.home = os.path.join(self.folder, "home")
        tools = os.path.join(self.folder, "bin")
        os.makedirs(tools)
        os.symlink(ullage, os.path.join(tools, "ullage"))
        os.symlink(python, os.path.join(tools, "python"))
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("ULLAGE_")}
        # Completions are written below the home of a user; this one has the folders of the three shells.
        user = os.path.join(self.folder, "user")
        for shell in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
            os.makedirs(os.path.join(user, shell))
        self.environment.update(HOME=user, ULLAGE_HOME=self.home, PATH=tools + os.pathsep + os.environ["PATH"])
        self.template = os.path.join(self.folder, "template")
        os.makedirs(os.path.join(self.template, ".venv", "bin"))
        os.symlink(python, os.path.join(self.template, ".venv", "bin", "python"))
        with open(os.path.join(self.template, "train.py"), "w", encoding="utf-8") as file:
            file.write("print('trained')\n")
        with open(os.path.join(self.template, "train.log"), "w", encoding="utf-8") as file:
            file.write("RuntimeError: unable to mmap 320 bytes from file </torch_1_2_3>: Cannot allocate memory (12)\n")
        for name in ("good", "bad"):
            self.must(["ullage", "run", "-q", "--record", name, "--", "true"])
            self.must(["ullage", "snapshot", "-o", name + ".json"])
        self.job = subprocess.Popen(["sleep", "600"])
        self.must(["ullage", "run", "-q", "--", "true"])
        (self.run,) = os.listdir(self.home)

    def must(self, words):
        subprocess.run(words, cwd=self.template, env=self.environment, check=True, timeout=120)

    def type(self, command):
        """What the shell says of it: status and output."""
        folder = os.path.join(self.folder, "here")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, folder, symlinks=True)
        if re.search(r"--record (good|bad)\b", command):
            shutil.rmtree(os.path.join(folder, "good"))
            shutil.rmtree(os.path.join(folder, "bad"))
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout

    def close(self):
        self.job.kill()
        self.job.wait()
        shutil.rmtree(self.folder)


def filled(command, place):
    for pattern, value in FILLED_IN:
        command = re.sub(pattern, value, command)
    for name, value in STAND_INS:
        command = command.replace(name, value)
    command = command.replace("{pid}", str(place.job.pid)).replace("{run}", place.run)
    rest = command[len("ullage ") :]
    if rest in NEEDS_MORE:
        return "ullage " + rest.split()[0] + " --help"
    if re.match(r"watch \d+$", rest):
        return command + " --for 1s"
    if "jq " in command and not shutil.which("jq"):
        # Its filter is tried where jq is; the command before it is tried here.
        return command.split("|")[0]
    return command


def synopsis(place):
    """Every flag of the synopsis in the reference is known to its command's help, and the other way round."""
    text = read(os.path.join(ROOT, "docs/reference/command-line.md"))
    lines = re.search(r"^```\n(.*?)^```", text, re.S | re.M).group(1).splitlines()
    wrong = []
    for line in lines:
        words = line.split()
        verb = " ".join(words[1:3] if words[2:3] in (["rm"], ["push"]) else words[1:2])
        _, told = place.type(f"ullage {verb} --help")
        known = [{short, flag} - {""} for short, flag in re.findall(r"^ +(?:(-\w), )?(--[a-z-]+)", told, re.M)]
        written = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line))
        missing = [sorted(names) for names in known if not names & written and "--help" not in names]
        unknown = sorted(written - set().union(*known))
        if missing or unknown:
            wrong.append(f"command-line.md, {verb}: it lacks {missing}, and {unknown} does not exist")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    found = collected()
    place = Place(os.path.abspath(arguments.ullage), os.path.abspath(arguments.python))
    ran, passed_over, wrong = set(), [], []
    try:
        causes = json.loads(place.type("ullage explain --json")[1])["causes"]
        assert len(causes) > 80, len(causes)
        for cause in causes:
            status, page = place.type(f"ullage explain {shlex.quote(cause['id'])} --json")
            assert status == 0, (cause, page)
            for command in re.findall(r"`(ullage [^`]+)`", json.loads(page)["page"]):
                add(found, command, f"ullage explain {cause['id']}")
        for command, where in found.items():
            why = elsewhere(command)
            if why:
                passed_over.append(f"{command}: {why}")
                continue
            line = filled(command, place)
            if line in ran:
                continue
            ran.add(line)
            try:
                status, output = place.type(line)
            except subprocess.TimeoutExpired as error:
                status, output = f"no end within {error.timeout} s", ""
            if status != 0:
                wrong.append(f"{where}: `{command}`, as `{line}`, ended with {status}:\n{output}")
            elif arguments.verbose:
                print(f"ok  {line}    ({where})")
        wrong += synopsis(place)
    finally:
        place.close()
    for one in passed_over:
        print(f"not run  {one}")
    for one in wrong:
        print(f"WRONG  {one}")
    print(f"{len(ran)} commands ran of {len(found)} found, {len(passed_over)} cannot here; {len(wrong)} wrong")
    return 1 if wrong or len(ran) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
