//! Every way a job makes processes, with real ones: all that are alive at a tick are found, and nobody else.
//!
//! One test, because this process is the subreaper of all of them: whatever is re-parented to it is of the job.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a panic is how a test fails; the table is to be read"
)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use ullage_kernel::KernelRoot;
use ullage_model::{At, EventKind, ProcessId, Role};
use ullage_sampler::{Sampler, SamplerSettings, Tick};

/// Each prints the pids that are alive beside main, then `ready`, and waits for the end of stdin, or ends.
const CASES: &[(&str, &str)] = &[
    ("fork", "pid = os.fork()\nif pid == 0: signal.pause()\nprint(pid)\n"),
    (
        "spawn",
        "import multiprocessing as m\nif __name__ == '__main__':\n    p = m.get_context('spawn').Process(target=time.sleep, args=(600,)); p.start(); print(p.pid)\n",
    ),
    (
        "forkserver",
        "import multiprocessing as m\nif __name__ == '__main__':\n    p = m.get_context('forkserver').Process(target=time.sleep, args=(600,)); p.start(); print(p.pid)\n    from multiprocessing.forkserver import _forkserver as f; print(f._forkserver_pid)\n",
    ),
    (
        "fork from a second thread",
        "import threading\ndef go():\n    pid = os.fork()\n    if pid == 0: signal.pause()\n    print(pid)\nt = threading.Thread(target=go); t.start(); t.join()\n",
    ),
    (
        "double fork and setsid",
        "r, w = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.write(w, b'%d\\n' % os.getpid()); signal.pause()\n    os._exit(0)\nos.wait(); print(os.read(r, 20).decode().strip())\n",
    ),
    (
        "a chain of parents that end",
        "r, w = os.pipe()\nif os.fork() == 0:\n    for _ in range(5):\n        if os.fork() != 0: os._exit(0)\n    os.write(w, b'%d\\n' % os.getpid()); signal.pause()\nos.wait(); print(os.read(r, 20).decode().strip())\n",
    ),
    (
        "children that outlive main",
        "pid = os.fork()\nif pid == 0: signal.pause()\nprint(pid); print('ready', flush=True); os._exit(0)\n",
    ),
    (
        "an executed program below a shell",
        "import subprocess\np = subprocess.Popen('sleep 600 & echo $!; wait', shell=True, stdout=subprocess.PIPE)\nprint(p.pid); print(p.stdout.readline().decode().strip())\n",
    ),
];

const PIPELINE: &str =
    "exec 3>&1; sh -c 'echo $$ >&3; exec sleep 600' | sh -c 'echo $$ >&3; exec sleep 600'; echo";

struct Run {
    child: Child,
    sampler: Sampler,
    expected: BTreeSet<i32>,
    tick: Tick,
}

fn start(mut command: Command, lines: Option<usize>) -> Run {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    let root = KernelRoot::live();
    let start = root.process(pid).unwrap().stat(&mut Vec::new()).unwrap().id.start;
    let reaper = Some(std::process::id() as i32);
    let settings = SamplerSettings { reaper, kernel_log: false, ..SamplerSettings::default() };
    let mut sampler = Sampler::new(root, settings, ProcessId { pid, start });
    let mut expected = BTreeSet::new();
    let output = BufReader::new(child.stdout.take().unwrap());
    for line in output.lines().take(lines.unwrap_or(usize::MAX)) {
        match line.unwrap().as_str() {
            "ready" => break,
            line => expected.insert(line.parse().unwrap()),
        };
    }
    let tick = sampler.tick(At(0));
    Run { child, sampler, expected, tick }
}

fn finish(mut run: Run, name: &str) {
    let found: BTreeSet<i32> = run.tick.sample.processes.iter().map(|process| process.id.pid).collect();
    let missed: Vec<_> = run.expected.difference(&found).collect();
    println!("{name}: {} alive, {} missed", run.expected.len(), missed.len());
    assert!(missed.is_empty(), "{name}: {missed:?} not among {found:?}");
    assert!(!found.contains(&(std::process::id() as i32)));
    for pid in found {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    run.child.wait().unwrap();
    while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::empty()) {}
    let after = run.sampler.tick(At(1));
    assert!(after.sample.processes.is_empty(), "{name}: {:?}", after.sample.processes);
    assert!(!after.ended.is_empty());
}

fn python(code: &str) -> (Command, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.py");
    let mut file = std::fs::File::create(&path).unwrap();
    let end = "if __name__ == '__main__':\n    print('ready', flush=True)\n    sys.stdin.read()\n    signal.pause()\n";
    write!(file, "import os, sys, time, signal\n{code}{end}").unwrap();
    let mut command = Command::new("python3");
    command.arg(path);
    (command, folder)
}

fn role_of(tick: &Tick, pid: i32) -> Option<Role> {
    tick.events.iter().rev().find_map(|event| match &event.what {
        EventKind::RoleKnown { id, role } if id.pid == pid => Some(role.clone()),
        EventKind::ProcessSeen { facts } if facts.id.pid == pid => Some(facts.role.clone()),
        _ => None,
    })
}

#[test]
fn all_that_are_alive_at_a_tick_are_found() {
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(std::process::id() as i32)).unwrap();
    for (name, code) in CASES {
        let (command, _folder) = python(code);
        let mut run = start(command, None);
        if *name == "children that outlive main" {
            run.child.wait().unwrap();
            run.tick = run.sampler.tick(At(1));
        } else {
            assert_eq!(role_of(&run.tick, run.child.id() as i32), Some(Role::Main), "{name}");
        }
        let roles: Vec<_> = run.expected.iter().map(|&pid| role_of(&run.tick, pid)).collect();
        match *name {
            "fork" | "spawn" => assert_eq!(roles, [Some(Role::Trainer)], "{name}"),
            "forkserver" => {
                assert!(roles.contains(&Some(Role::Forkserver)), "{roles:?}");
                assert!(roles.contains(&Some(Role::Trainer)), "{roles:?}");
            }
            "an executed program below a shell" => {
                assert!(roles.iter().all(|role| *role == Some(Role::Helper)))
            }
            _ => {}
        }
        finish(run, name);
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", PIPELINE]);
    finish(start(shell, Some(2)), "a shell pipeline");
}
