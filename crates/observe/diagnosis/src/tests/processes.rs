//! Which processes pile up, of pools, executors and programs, and which only look like it.

use super::build::*;
use ullage_model::{
    AgentMessage, Bytes, ClockTicks, CountsAtFailure, Ending, EventKind, Measured, Missing, ProcessFacts,
    ProcessMemory, ProcessState, Role, Verdict,
};

/// How the processes of earlier times behave once the next ones are there.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Idle,
    Work,
    End,
    Zombie,
}

/// Three processes more at each of these times, each with 20 MiB of its own at its first reading; the run ends at 20 s.
fn started(role: Role, times: &[f64], then: Then) -> Verdict {
    started_until(role, times, then, None)
}

/// The same; with `pipes` it ends without a descriptor left, so many of 127 on pipes.
fn started_until(role: Role, times: &[f64], then: Then, pipes: Option<u64>) -> Verdict {
    let mut run = Run::new();
    let mut born: Vec<(i32, f64)> = Vec::new();
    for second in 0..20 {
        for (n, at) in times.iter().enumerate().filter(|(_, at)| **at as usize == second) {
            for pid in (0..3).map(|k| 1000 + 100 * n as i32 + k) {
                run.process(*at, pid, MAIN, role.clone(), limits(), 1000);
                born.push((pid, *at));
            }
        }
        let latest = born.last().map_or(0.0, |(_, at)| *at);
        let alive = born.iter().filter(|(_, at)| then != Then::End || *at == latest).map(|(pid, at)| {
            let mut process = reading(*pid, MAIN, "python");
            let worked = if then == Then::Work { second as f64 + 0.5 - at } else { 0.2 };
            process.cpu = ClockTicks((100.0 * worked) as u64);
            process.memory =
                Measured::Known(ProcessMemory { anonymous: Bytes(20 * MIB), ..ProcessMemory::default() });
            if then == Then::Zombie && *at < latest {
                process.state = ProcessState::Zombie;
                process.memory = Measured::Missing(Missing::Vanished);
            }
            process
        });
        let all = std::iter::once(reading(MAIN, 1, "python")).chain(alive).collect();
        run.tick(second as f64 + 0.5, all, |_| {});
    }
    match pipes {
        None => run.finish(20.5, Ending::Exited(0)),
        Some(pipes) => {
            let mut report = raised("OSError", "[Errno 24] Too many open files");
            report.counts = CountsAtFailure {
                fds: Some(127),
                fds_torch: Some(0),
                nofile: Some(128),
                fd_places: vec![("pipe".into(), pipes)],
                ..report.counts
            };
            run.exception(20.1, MAIN, report).finish(20.5, Ending::Exited(1))
        }
    };
    run.verdict()
}

const PILE: &str = "worker-processes-accumulate";

fn piles(verdict: &Verdict) -> bool {
    verdict.findings.iter().any(|finding| finding.cause == PILE)
}

#[test]
fn pools_and_programs_that_nobody_ends_pile_up() {
    let times: Vec<f64> = (0..9).map(|n| 1.0 + 2.0 * n as f64).collect();
    for (role, words) in [
        (Role::PoolWorker, "had 27 pool workers at once, from 9 rounds"),
        (Role::Other, "had 27 child processes at once"),
        (Role::Helper, "had 27 programs at once"),
    ] {
        let verdict = started(role, &times, Then::Idle);
        let finding = verdict.findings.iter().find(|finding| finding.cause == PILE).unwrap();
        let text = sentences(finding);
        assert!(text.contains(words) && text.contains("Together they held 540 MiB"), "{text}");
        assert!(!finding.title.contains("DataLoader"), "{}", finding.title);
        assert!(finding.fixes.iter().all(|fix| !fix.command.contains("DataLoader")));
    }
}

#[test]
fn pools_that_pile_up_explain_that_the_pipes_to_them_fill_the_descriptors() {
    let times: Vec<f64> = (0..9).map(|n| 1.0 + 2.0 * n as f64).collect();
    let of = |pipes| started_until(Role::PoolWorker, &times, Then::Idle, Some(pipes));
    let verdict = of(120);
    assert_eq!(causes(&verdict)[..2], [PILE, "fd-leak-files-sockets"], "{:?}", verdict.findings);
    assert!(verdict.findings[0].is_cause_of(&verdict.findings[1]));
    assert_eq!(causes(&of(20))[0], "fd-leak-files-sockets", "most lead elsewhere");
}

#[test]
fn one_pool_that_fills_and_processes_that_end_do_not() {
    let times: Vec<f64> = (0..9).map(|n| 1.0 + 2.0 * n as f64).collect();
    assert!(!piles(&started(Role::PoolWorker, &times, Then::Work)), "the older ones work on");
    assert!(!piles(&started(Role::PoolWorker, &times, Then::End)));
    assert!(!piles(&started(Role::Helper, &times, Then::Zombie)), "they have ended");
    assert!(!piles(&started(Role::PoolWorker, &times[..4], Then::Idle)), "four pools");
    let early: Vec<f64> = (0..7).map(|n| 1.0 + n as f64).collect();
    assert!(!piles(&started(Role::PoolWorker, &early, Then::Idle)), "none in the second half");
}

#[test]
fn the_end_of_a_job_that_piles_up_is_no_part_of_its_growth() {
    let mut run = Run::new();
    let of = |number: i32| {
        let children = (1000..1000 + number).map(|pid| reading(pid, MAIN, "python"));
        std::iter::once(reading(MAIN, 1, "python")).chain(children).collect::<Vec<_>>()
    };
    for second in 0..60 {
        run.tick(f64::from(second) + 0.5, of(second), |_| {});
    }
    // As slowly as on a busy machine.
    for step in 1..=30 {
        run.tick(60.0 + 0.2 * f64::from(step), of(60 - 2 * step), |_| {});
    }
    run.finish(66.5, Ending::Exited(0));
    let growth = run.verdict().growth.unwrap();
    assert_eq!(growth.class, ullage_model::GrowthClass::ProcessAccumulation, "{growth:?}");
}

#[test]
fn workers_that_go_on_after_their_parent_was_killed_are_orphans() {
    let started = |ending: Ending, alone: f64, method: Option<&str>| {
        let mut run = Run::new();
        run.process(1.0, 200, MAIN, Role::Other, limits(), 1000);
        run.process(2.0, 300, 200, Role::PoolWorker, limits(), 1000);
        if let Some(method) = method {
            let message = AgentMessage::Process {
                name: "SpawnProcess-1".into(),
                target: "concurrent.futures.process._process_worker".into(),
                worker: None,
                start_method: Some(method.into()),
                anonymous: None,
                dataset: None,
                arguments: None,
            };
            run.event(2.1, EventKind::Agent { id: Some(id(300)), pid: 300, message });
        }
        for at in (1..).map(f64::from).take_while(|at| *at <= 5.0 + alone) {
            let parent = (at < 5.0).then(|| reading(200, MAIN, "python"));
            let job = [reading(MAIN, 1, "bash"), reading(300, 200, "python")];
            run.tick(at + 0.5, job.into_iter().chain(parent).collect(), |_| {});
        }
        run.ended(5.0, 200, ending).ended(5.6 + alone, 300, Ending::Signaled(9));
        run.finish(5.8 + alone, Ending::Exited(0)).verdict()
    };
    let with = |ending: Ending, alone: f64, method: Option<&str>| {
        causes(&started(ending, alone, method)).contains(&"orphan-workers")
    };
    assert!(with(Ending::Signaled(9), 20.0, None));
    assert!(!with(Ending::Signaled(9), 6.0, None), "torch's workers ask every 5 s");
    assert!(!with(Ending::Exited(0), 20.0, None), "it left them there on purpose");
    assert!(with(Ending::Exited(0), 20.0, Some("spawn")), "multiprocessing ends them, unless by os._exit");
    assert!(!with(Ending::Exited(0), 6.0, Some("spawn")));
    let finding = started(Ending::Exited(0), 20.0, Some("spawn")).findings.remove(0);
    assert!(sentences(&finding).contains("a parent that exited and did not end them"), "{finding:?}");
    assert!(finding.fixes[0].command.contains("executor.shutdown"), "{finding:?}");
}

#[test]
fn a_server_that_each_of_many_programs_leaves_behind_is_an_orphan_and_one_that_is_left_once_is_not() {
    let verdict = |words: &[&str], left: i32, each_by_its_own: bool, ending: Ending, stay_s: f64| {
        let mut run = Run::new();
        let seen = |pid: i32, parent: i32, words: Vec<String>| EventKind::ProcessSeen {
            facts: Box::new(ProcessFacts {
                id: id(pid),
                parent,
                uid: Measured::Known(1000),
                command_line: words,
                comm: "python".into(),
                limits: Measured::Known(limits()),
                cgroups: vec!["0::/job".into()],
                role: Role::Helper,
                seccomp: Measured::default(),
                cores_allowed: Measured::default(),
                forked_from: None,
            }),
        };
        for turn in 0..left {
            let agent = 200 + if each_by_its_own { turn } else { 0 };
            let at = 1.0 + 4.0 * f64::from(turn);
            if turn == 0 || each_by_its_own {
                run.event(at, seen(agent, MAIN, vec!["python".into(), "agent.py".into(), turn.to_string()]));
            }
            let words = words.iter().map(|word| (*word).to_owned()).chain([turn.to_string()]).collect();
            run.event(at + 0.5, seen(300 + 100 * turn, agent, words));
        }
        let life = 4.0 * f64::from(left);
        for at in (1..).map(f64::from).take_while(|at| *at <= life + 20.0) {
            let turn = ((at - 1.0) / 4.0) as i32;
            let agent = if each_by_its_own { 200 + turn } else { 200 };
            let agent = (at < life).then(|| reading(agent, MAIN, "python"));
            let stays = |turn: &i32| at < 4.0 * f64::from(*turn + 1) + stay_s;
            let servers =
                (0..left.min(turn + 1)).filter(stays).map(|turn| reading(300 + 100 * turn, 1, "python"));
            let job = std::iter::once(reading(MAIN, 1, "bash")).chain(servers).chain(agent).collect();
            run.tick(at + 0.6, job, |_| {});
        }
        for turn in 0..if each_by_its_own { left } else { 1 } {
            let of = if each_by_its_own { turn + 1 } else { left };
            run.ended(0.9 + 4.0 * f64::from(of), 200 + turn, ending);
        }
        run.finish(life + 21.0, Ending::Exited(0)).verdict()
    };
    let with = |words: &[&str], left: i32, each_by_its_own: bool, ending: Ending, stay_s: f64| {
        causes(&verdict(words, left, each_by_its_own, ending, stay_s)).contains(&"orphan-workers")
    };
    // Each that was left by a command that went well, one after the other to the end, and none of which does anything any more.
    let exits =
        |left: i32, stay_s: f64| verdict(&["python", "engine.py"], left, true, Ending::Exited(0), stay_s);
    let pile = exits(12, 100.0);
    let found = pile.findings.iter().find(|finding| finding.cause == PILE).map(sentences);
    assert!(found.is_some_and(|text| text.contains("had 12 programs at once, from 12 rounds")), "{pile:?}");
    assert!(!piles(&exits(4, 100.0)), "four");
    assert!(!piles(&exits(12, 12.0)), "each leaves a while later");
    let finding = |words: &[&str], left: i32, each_by_its_own: bool| {
        with(words, left, each_by_its_own, Ending::Exited(3), 100.0)
    };
    assert!(finding(&["python", "engine.py"], 4, true));
    assert!(finding(&["python", "-u", "-X", "dev", "-m", "engine"], 4, true));
    assert!(!finding(&["python", "-c", "import engine"], 4, true), "of that nobody knows the program");
    assert!(!with(&["python", "engine.py"], 4, true, Ending::Exited(0), 100.0), "each was meant to stay");
    let not_seen = Ending::NotSeen(ullage_model::Missing::KernelTooOld);
    assert!(!with(&["python", "engine.py"], 4, true, not_seen, 100.0), "as on older kernels");
    assert!(
        !with(&["python", "engine.py"], 4, true, Ending::Exited(3), 12.5),
        "each is gone before the third is alone"
    );
    assert!(!finding(&["python", "engine.py"], 2, true), "one, and its successor");
    assert!(!finding(&["python", "engine.py"], 4, false), "four servers of one program");
}

#[test]
fn ranks_under_a_launcher_that_outlived_the_killed_program_are_orphans_and_those_of_a_killed_shell_are_not() {
    let with = |program: &str, agent: Ending| {
        let mut run = Run::new();
        let facts = |pid: i32, parent: i32, name: &str, role: Role| EventKind::ProcessSeen {
            facts: Box::new(ProcessFacts {
                id: id(pid),
                parent,
                uid: Measured::Known(1000),
                command_line: vec![name.into()],
                comm: name.into(),
                limits: Measured::Known(limits()),
                cgroups: vec!["0::/job".into()],
                role,
                seccomp: Measured::default(),
                cores_allowed: Measured::default(),
                forked_from: None,
            }),
        };
        run.event(1.0, facts(200, MAIN, program, Role::Other));
        run.event(1.5, facts(250, 200, "python", Role::Helper));
        run.event(2.0, facts(300, 250, "python", Role::Rank(0)));
        for at in (1..30).map(f64::from) {
            let above = (at < 5.0).then(|| reading(200, MAIN, program));
            let job = [reading(MAIN, 1, "bash"), reading(250, 200, "python"), reading(300, 250, "python")];
            run.tick(at + 0.5, job.into_iter().chain(above).collect(), |_| {});
        }
        run.ended(5.0, 200, agent).ended(29.7, 250, Ending::Signaled(9)).ended(
            29.8,
            300,
            Ending::Signaled(9),
        );
        causes(&run.finish(30.0, Ending::Exited(0)).verdict()).contains(&"orphan-workers")
    };
    assert!(with("python", Ending::Signaled(15)));
    assert!(!with("bash", Ending::Signaled(1)), "nohup and setsid are meant so");
    assert!(!with("python", Ending::Exited(1)));
}
