//! Does a run show swap-thrash? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Series;
use crate::policy::given::US_PER_S;
use crate::policy::growth::OWN_SWAP_BYTES;
use crate::policy::machine::{SWAP_FAULTS, SWAP_GROWS, SWAP_LASTS_S, SWAP_PAGES, SWAP_STEP_S, SWAP_WAITED};
use crate::rule::finding::of_job;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Evidence, Fix, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let (host, job) = (analysis.timeline.host(), analysis.timeline.job_totals());
    let Some((from, to)) = busiest(&host.swap_in, &host.swap_out) else { return Judgement::Nothing };
    let length = to.since(from);
    let of = |series: &Series| grown(series, from, to).map(|grown| grown / length);
    let (Some(faults), Some((at, swapped))) = (of(&job.major_faults), job.swapped.peak_between(from, to))
    else {
        return Judgement::Nothing;
    };
    if faults < SWAP_FAULTS || swapped < OWN_SWAP_BYTES {
        return Judgement::Nothing;
    }
    let stalled = of(&host.waited).map(|us| us / US_PER_S);
    if stalled.is_some_and(|share| share < SWAP_WAITED) {
        return Judgement::Nothing;
    }
    let (came, went) = (of(&host.swap_in).unwrap_or(0.0), of(&host.swap_out).unwrap_or(0.0));
    let mut evidence = vec![pages_sentence(from, to, came, went), faults_sentence(faults, swapped, at, to)];
    evidence.extend(stalled.map(|share| stall_sentence(share, to)));
    evidence.extend(trend_sentence(&job.held, from, to));
    let known = if stalled.is_some() { Proof::KernelSaid } else { Proof::Estimated };
    let mut finding = of_job(&RULE, Severity::Warning, known, evidence, &analysis.remedy_context(None));
    finding.at = Some(from);
    Judgement::one(finding)
}

/// The longest stretch of readings in which pages went in and out fast enough, without a pause.
fn busiest(came: &Series, went: &Series) -> Option<(At, At)> {
    let both: Vec<(At, f64, f64)> = came
        .points()
        .filter_map(|(at, came)| Some((at, came, went.at_or_before(at).filter(|(when, _)| *when == at)?.1)))
        .collect();
    let mut best: Option<(At, At)> = None;
    let mut start: Option<At> = None;
    // Over two steps, because one tick may fall between two bursts of the kernel's.
    for three in both.windows(3) {
        let (first, last) = (three[0], three[2]);
        let seconds = last.0.since(first.0).max(SWAP_STEP_S);
        let fast = (last.1 - first.1) / seconds >= SWAP_PAGES && (last.2 - first.2) / seconds >= SWAP_PAGES;
        start = fast.then(|| start.unwrap_or(first.0));
        if let Some(from) = start {
            if best.is_none_or(|(a, b)| last.0.since(from) > b.since(a)) {
                best = Some((from, last.0));
            }
        }
    }
    best.filter(|(from, to)| to.since(*from) >= SWAP_LASTS_S)
}

fn grown(series: &Series, from: At, to: At) -> Option<f64> {
    Some((series.at_or_before(to)?.1 - series.at_or_before(from)?.1).max(0.0))
}

fn pages_sentence(from: At, to: At, came: f64, went: f64) -> Evidence {
    let sentence = format!(
        "For {}, from {} after the start, the machine swapped {} pages a second in and {} out.",
        evidence::seconds(to.since(from)),
        evidence::seconds(from.seconds()),
        evidence::count(came as u64),
        evidence::count(went as u64)
    );
    evidence::number(
        "pages swapped in",
        came as u64,
        "pages a second",
        "pswpin, pswpout of /proc/vmstat",
        from,
        sentence,
    )
}

fn faults_sentence(faults: f64, swapped: f64, at: At, to: At) -> Evidence {
    let sentence = format!(
        "Up to {} of the job was in swap ({} after the start). It waited for the disk {} times a second.",
        evidence::bytes(swapped as u64),
        evidence::seconds(at.seconds()),
        evidence::count(faults as u64)
    );
    evidence::number(
        "major faults",
        faults as u64,
        "faults a second",
        "/proc/PID/stat and /proc/PID/status",
        to,
        sentence,
    )
}

fn stall_sentence(share: f64, to: At) -> Evidence {
    let percent = (share * 100.0).round() as u64;
    let sentence = format!("Processes waited for memory {percent} % of that time.");
    evidence::number("time waited", percent, "percent", "/proc/pressure/memory", to, sentence)
}

fn trend_sentence(held: &Series, from: At, to: At) -> Option<Evidence> {
    // The last look may be one at a job that is gone.
    let mut read = held.points().filter(|(at, bytes)| (from..=to).contains(at) && *bytes > 0.0);
    let (_, before) = read.next()?;
    let (to, after) = read.last()?;
    let sentence = if after > before * SWAP_GROWS {
        format!(
            "The job's memory and swap together grew from {} to {}: it grows as well.",
            evidence::bytes(before as u64),
            evidence::bytes(after as u64)
        )
    } else {
        format!(
            "The job's memory and swap together stayed at {}: no leak, too large a working set.",
            evidence::bytes(after as u64)
        )
    };
    Some(evidence::number("memory and swap", after as u64, "bytes", "/proc/PID/status", to, sentence))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![
        sharing::fewer_batches(context),
        sharing::hold_less(),
        Fix::new(
            "In a container: allow no swap, so that the job fails instead of crawling",
            "docker run --memory=SIZE --memory-swap=SIZE IMAGE",
        )
        .only(Place::Container),
    ];
    if context.is_root() {
        fixes.push(Fix::new("The same for the whole machine", "swapoff -a"));
    }
    fixes
}
