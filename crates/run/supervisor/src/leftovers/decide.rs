//! Is a segment an orphan? Decided from what is known of it and of who lives; acts on nothing.
//!
//! The surprise: that nobody has a file open does not make it an orphan. A worker may have ended while the name of
//! its tensor waits in a queue for the trainer. Then the helper that cleans up after their job still lives:
//! `torch_shm_manager`, or CPython's resource tracker; what is younger than a living one of these is left alone.

use std::collections::HashMap;
use ullage_kernel::process::segment_names::pid_in_name;

/// File times run behind by a tick of the kernel's clock, start times are rounded to one, seconds.
const SLACK_S: f64 = 0.05;
/// Names that tell nobody's pid and belong to no helper are left alone for so long after their last change.
const QUIET_S: f64 = 600.0;

/// A helper that cleans up after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// torch_shm_manager.
    Torch,
    /// CPython's resource tracker, or loky's.
    Python,
}

/// Who lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Living {
    /// When each process started, seconds since 1970.
    pub(crate) started: HashMap<i32, f64>,
    /// Helpers that see the same /dev/shm, with pid.
    pub(crate) helpers: Vec<(Helper, i32)>,
}

/// What is known of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) made: f64,
    pub(crate) modified: f64,
    pub(crate) now: f64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody will come back for it, if nobody has it open: because of this.
    Orphan { maker: Option<i32>, because: String },
    /// Left alone, because of this.
    Retained { because: String },
    /// Of no kind that is known to be temporary.
    NotOurs,
}

impl Living {
    /// The process of this pid, unless it is younger than what it is said to have made.
    fn maker(&self, pid: i32, made: f64) -> bool {
        self.started.get(&pid).is_some_and(|started| *started <= made + SLACK_S)
    }

    fn helper(&self, kind: Helper, made: f64) -> Option<i32> {
        let older = |pid: &i32| self.maker(*pid, made);
        self.helpers.iter().filter(|(helper, _)| *helper == kind).map(|(_, pid)| *pid).find(older)
    }
}

/// Decides on a file in /dev/shm that nobody has open.
pub(crate) fn of_file(file: &File<'_>, living: &Living) -> Standing {
    let name = file.name;
    let retained = |because: String| Standing::Retained { because };
    let maker = pid_in_name(name);
    if let Some(pid) = maker.filter(|pid| living.maker(*pid, file.made)) {
        return retained(format!("its creator, process {pid}, is alive"));
    }
    let helper = match name {
        _ if name.starts_with(b"torch_") => Some((Helper::Torch, "torch_shm_manager")),
        _ if [&b"psm_"[..], b"sem.mp-", b"sem.loky-"].iter().any(|begin| name.starts_with(begin)) => {
            Some((Helper::Python, "resource tracker"))
        }
        _ => None,
    };
    if let Some((kind, word)) = helper {
        if let Some(pid) = living.helper(kind, file.made) {
            return retained(format!("the job of {word} {pid}, which is alive, may use it"));
        }
    }
    match maker {
        Some(pid) => {
            let because = format!("its creator, process {pid}, has exited");
            Standing::Orphan { maker, because }
        }
        None if helper.is_some() => {
            let because = "no living resource tracker is old enough to own it".into();
            Standing::Orphan { maker, because }
        }
        None if name.starts_with(b"sem.") || name.starts_with(b"nccl-") => {
            let age = file.now - file.modified.max(file.made.min(file.modified));
            if age < QUIET_S {
                return retained(
                    "it is younger than 10 minutes, and its name does not identify its creator".into(),
                );
            }
            Standing::Orphan {
                maker,
                because: "no process has it open, and it is older than 10 minutes".into(),
            }
        }
        None => Standing::NotOurs,
    }
}

/// Decides on a System V segment that nobody has attached.
pub(crate) fn of_sysv(creator: i32, last: i32, changed: f64, living: &Living) -> Standing {
    // The kernel tells whole seconds.
    let made = changed + 1.0;
    if creator <= 0 {
        let because = "its creator is, or was, in another pid namespace".into();
        return Standing::Retained { because };
    }
    for (pid, what) in [(creator, "made it"), (last, "had it last")] {
        let lives = if pid == last { living.started.contains_key(&pid) } else { living.maker(pid, made) };
        if lives {
            return Standing::Retained { because: format!("process {pid}, which {what}, still lives") };
        }
    }
    Standing::Orphan { maker: Some(creator), because: format!("its creator, process {creator}, has exited") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn living(processes: &[(i32, f64)], helpers: &[(Helper, i32)]) -> Living {
        Living { started: processes.iter().copied().collect(), helpers: helpers.to_vec() }
    }

    fn file(name: &str) -> File<'_> {
        File { name: name.as_bytes(), made: 1000.0, modified: 1000.0, now: 1100.0 }
    }

    fn orphan(standing: &Standing) -> bool {
        matches!(standing, Standing::Orphan { .. })
    }

    #[test]
    fn a_tensor_of_a_dead_maker_is_an_orphan_and_a_reused_pid_is_no_maker() {
        let torch = file("torch_7_1_0");
        assert!(orphan(&of_file(&torch, &living(&[], &[]))));
        assert!(!orphan(&of_file(&torch, &living(&[(7, 900.0)], &[]))), "it lives");
        assert!(orphan(&of_file(&torch, &living(&[(7, 1050.0)], &[]))), "another process has that pid now");
    }

    #[test]
    fn what_a_living_helper_watches_over_is_retained() {
        let manager = living(&[(50, 900.0)], &[(Helper::Torch, 50)]);
        let tracker = living(&[(50, 900.0)], &[(Helper::Python, 50)]);
        assert!(!orphan(&of_file(&file("torch_7_1_0"), &manager)));
        assert!(orphan(&of_file(&file("torch_7_1_0"), &tracker)));
        for name in ["psm_1a2b", "sem.mp-abc", "sem.loky-7-abc"] {
            assert!(!orphan(&of_file(&file(name), &tracker)), "{name}");
            assert!(orphan(&of_file(&file(name), &manager)), "{name}");
        }
        let younger = living(&[(50, 1050.0)], &[(Helper::Python, 50)]);
        assert!(orphan(&of_file(&file("psm_1a2b"), &younger)), "the tracker of a later job");
    }

    #[test]
    fn names_that_say_nothing_wait_ten_minutes_and_unknown_ones_for_ever() {
        let nobody = living(&[], &[]);
        let at = |name, now| of_file(&File { now, ..file(name) }, &nobody);
        assert!(!orphan(&at("nccl-AbCd", 1599.0)) && orphan(&at("nccl-AbCd", 1601.0)));
        assert!(!orphan(&at("sem.other", 1599.0)) && orphan(&at("sem.other", 1601.0)));
        assert_eq!(at("my-dataset.bin", 9e9), Standing::NotOurs);
        assert_eq!(at("mytorch_1_2_3", 9e9), Standing::NotOurs);
    }

    #[test]
    fn a_system_v_segment_is_an_orphan_when_both_its_maker_and_its_last_user_are_gone() {
        assert!(orphan(&of_sysv(7, 8, 1000.0, &living(&[], &[]))));
        assert!(!orphan(&of_sysv(7, 8, 1000.0, &living(&[(7, 900.0)], &[]))));
        assert!(!orphan(&of_sysv(7, 8, 1000.0, &living(&[(8, 2000.0)], &[]))), "its last user may come back");
        assert!(orphan(&of_sysv(7, 0, 1000.0, &living(&[(7, 1002.0)], &[]))), "a reused pid");
        assert!(!orphan(&of_sysv(0, 0, 1000.0, &living(&[], &[]))), "of another pid namespace");
    }
}
