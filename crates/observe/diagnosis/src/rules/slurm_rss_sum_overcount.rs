//! # slurm-rss-sum-overcount
//!
//! ## What it does
//! Finds a job that a scheduler ended because the sum of resident sizes went beyond what was asked for, while the job
//! itself held less.
//!
//! ## Why it happens
//! Slurm's accounting (`jobacct_gather/linux`) adds the resident sizes of all processes every 30 s. A page that eight
//! workers map, of a dataset or of /dev/shm, is added eight times. The kernel counts it once.
//!
//! ## How it is told apart
//! The job runs under Slurm with a memory request in its environment, a process was ended by SIGKILL or SIGTERM, no OOM
//! kill was counted, the sum of resident sizes was beyond the request and the memory of the job, each page once, within it.
//! With a kill that the kernel counted it is memcg-oom-kill.
//!
//! ## Known problems
//! Who sent the signal is not seen, so that this is a hypothesis: a job that met its time limit looks the same. slurmd's
//! log settles it. The sum is taken at ullage's readings, not at Slurm's.
//!
//! ## Example
//! `slurmstepd: error: Job 123 exceeded memory limit (70000000 > 65536000), being killed`
//!
//! ## Remedy
//! Let Slurm count shared pages once, or the kernel hold the limit; until then ask for the sum.
//!
//! ## References
//! - <https://slurm.schedmd.com/slurm.conf.html#OPT_JobAcctGatherParams>

use crate::failure::{Failure, SIGKILL};
use crate::found::{by_failure, finding};
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::say;
use ullage_model::{At, Ending, Finding, Fix, OutcomeKind, Status};

pub(super) const RULE: Rule = Rule {
    id: "slurm-rss-sum-overcount",
    title: "Scheduler kills on its own accounting (RSS sum counts shared pages many times)",
    source: include_str!("slurm_rss_sum_overcount.rs"),
    judge,
    fixes,
};

const SIGTERM: i32 = 15;
/// Slurm's accounting looks this often.
const LOOKS_EVERY_S: f64 = 45.0;

fn judge(case: &Case) -> Judgement {
    let Some(asked) = asked(case) else { return Judgement::Nothing };
    let killed = !case.oom_victims().is_empty() || case.plain_outcome().kind == OutcomeKind::Budget;
    if killed {
        return Judgement::Nothing;
    }
    by_failure(case, |failure| Ok(ended(case, failure, asked)))
}

/// Bytes that the job may have on this node. Slurm's figures are MiB.
fn asked(case: &Case) -> Option<u64> {
    let number = |name: &str| case.run.environment.get(name)?.parse::<u64>().ok();
    let mib = match number("SLURM_MEM_PER_NODE") {
        Some(mib) => mib,
        None => number("SLURM_MEM_PER_CPU")?.saturating_mul(number("SLURM_CPUS_ON_NODE")?),
    };
    // 0 is the whole node.
    (mib > 0).then(|| mib.saturating_mul(1 << 20))
}

fn ended(case: &Case, failure: &Failure, asked: u64) -> Option<Finding> {
    if failure.follows || !matches!(failure.ending, Some(Ending::Signaled(SIGKILL | SIGTERM))) {
        return None;
    }
    let from = At::from_seconds(failure.at.seconds() - LOOKS_EVERY_S);
    let (at, sum) = case.timeline.together().resident.peak_between(from, failure.at)?;
    let (_, held) = case.timeline.tree.peak_between(from, failure.at)?;
    if sum <= asked as f64 || held > asked as f64 * 0.9 {
        return None;
    }
    let sentence = format!(
        "The resident sizes of all processes added up to {}, more than the {} asked of Slurm; each page counted once, the job held {}.",
        say::bytes(sum as u64),
        say::bytes(asked),
        say::bytes(held as u64)
    );
    let met = say::number("sum of resident sizes", sum as u64, "bytes", "/proc/PID/status", at, sentence);
    let sentence = format!(
        "{} was ended by a signal, and the kernel counted no OOM kill: it was not the kernel's limit.",
        failure.process.map_or_else(|| "A process".into(), |process| say::capital(&say::who(process)))
    );
    let signal =
        say::text("signal", "SIGKILL or SIGTERM", "how the process ended", Some(failure.at), sentence);
    let setting = Setting { bytes: Some(sum as u64), ..case.setting(Some(failure)) };
    let evidence = vec![say::of(met, asked), signal];
    Some(finding(case, &RULE, failure, (Status::Hypothesis, 0.55), evidence, &setting))
}

fn fixes(setting: &Setting) -> Vec<Fix> {
    let gib = (setting.bytes.unwrap_or(0) >> 30) + 1;
    vec![
        Fix {
            title: "Settle it: what slurmd counted".into(),
            command: "sacct -j \"$SLURM_JOB_ID\" -o JobID,State,MaxRSS,ReqMem".into(),
            automatic: None,
        },
        Fix {
            title: "Until it counts otherwise: ask for the sum".into(),
            command: format!("sbatch --mem={gib}G train.sh"),
            automatic: None,
        },
        Fix {
            title: "For who runs the cluster, in slurm.conf: count shared pages once, and let the kernel hold the limit"
                .into(),
            command: "JobAcctGatherParams=UsePss\n# cgroup.conf: ConstrainRAMSpace=yes".into(),
            automatic: None,
        },
    ]
}
