#!/usr/bin/env python3
"""Does <TAB> complete the words of `ullage` in real shells, in a real terminal?

    tests/completions.py --ullage PATH

bash, zsh and fish load what `ullage completions` prints, each in a tmux of its own; a shell that is not installed is named.
Prints how many were tried.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import watched

# What is typed before <TAB>, and what the screen then shows. bash takes a word apart at `=`, so that the list of remedies is
# completed in the others only.
CASES = [
    ("ullage expo", "ullage export"),
    ("ullage explain max-map-c", "ullage explain max-map-count-exhausted"),
    ("ullage report --ht", "ullage report --html"),
    ("ullage report 2", "ullage report {run}"),
    ("ullage run --fix=zyg", "ullage run --fix=zygote"),
    ("ullage export {run} --format par", "ullage export {run} --format parquet"),
]
SHELLS = {
    "bash": "env -u BASH_ENV PS1='ready> ' bash --norc -i",
    "zsh": "env PS1='ready> ' zsh -f -i",
    "fish": "fish --no-config -i",
}
# A shell on a busy machine; only a failure takes so long.
WAIT_S = 60
LOAD = {
    "bash": 'eval "$(ullage completions bash)"',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(ullage completions zsh)"',
    "fish": "function fish_prompt; echo 'ready> '; end; ullage completions fish | source",
}


class Terminal:
    def __init__(self, folder, shell, environment):
        self.socket = os.path.join(folder, f"tmux-{shell}")
        self.tmux("new-session", "-d", "-x", "100", "-y", "30", SHELLS[shell], env=environment)

    def tmux(self, *words, env=None):
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, env=env).stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def shows(self, text):
        return watched.wait_for(lambda: text in self.screen(), seconds=WAIT_S)


def attempt(shell, folder, environment, run):
    """The cases that went wrong, each with the screen."""
    terminal = Terminal(folder, shell, environment)
    wrong = []
    try:
        terminal.keys("-l", LOAD[shell] + "; echo loa'd'ed")
        terminal.keys("Enter")
        if not terminal.shows("\nloaded"):
            return [f"{shell} loaded nothing:\n{terminal.screen()}"]
        for typed, shown in CASES:
            if shell == "bash" and "=" in typed:
                continue
            terminal.keys("C-u")
            terminal.keys("C-l")
            terminal.keys("-l", typed.format(run=run))
            terminal.shows(typed.format(run=run))
            terminal.keys("Tab")
            if not terminal.shows(shown.format(run=run)):
                wrong.append(f"{shell}: {typed!r} and <TAB> do not show {shown.format(run=run)!r}:\n{terminal.screen()}")
    finally:
        watched.end_terminal(terminal.tmux)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ullage", required=True)
    ullage = os.path.abspath(parser.parse_args().ullage)
    if shutil.which("tmux") is None:
        print("completions: skipped, no tmux")
        return 0
    tried, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ullage, os.path.join(folder, "ullage"))
        home = os.path.join(folder, "home")
        environment = {
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "ULLAGE_HOME": home,
            "HOME": folder,
            "TERM": "xterm",
        }
        subprocess.run([ullage, "run", "-q", "--", "true"], env=environment, check=True)
        (run,) = os.listdir(home)
        for shell in SHELLS:
            if shutil.which(shell) is None:
                print(f"completions: no {shell} here")
                continue
            tried.append(shell)
            wrong += attempt(shell, folder, environment, run)
    print("\n".join(wrong))
    cases = len(CASES) * len(tried) - ("bash" in tried)
    print(f"completions: {cases} in {', '.join(tried)}, {len(wrong)} wrong")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
