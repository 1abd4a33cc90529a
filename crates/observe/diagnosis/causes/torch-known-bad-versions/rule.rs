//! Does a run show torch-known-bad-versions? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::sizes::NOTE_BYTES;
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use crate::trend::{trend_of, LineFit, Trend};
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// A fault of some versions.
struct Fault {
    /// torch, from the first to the one that mends it.
    torch: ((u32, u32, u32), (u32, u32, u32)),
    /// Python, from this one on.
    python: (u32, u32, u32),
    /// What the agent counts where it is used, and how a person calls that.
    used: (&'static str, &'static str),
    what: &'static str,
}

const FAULTS: [Fault; 1] = [Fault {
    torch: ((2, 1, 0), (2, 3, 1)),
    python: (3, 11, 0),
    used: ("compiled-graphs", "graphs compiled by torch.compile"),
    what: "each call of a compiled function leaks references",
}];

fn judge(analysis: &Analysis) -> Judgement {
    let inside = analysis.timeline.inside();
    let version = |name: &str| inside.get(name)?.text().map(|text| (text.to_owned(), numbers(text)));
    let (Some((name, torch)), Some((_, python))) = (version("torch.version"), version("python.version"))
    else {
        return Judgement::Nothing;
    };
    let of_version =
        FAULTS.iter().find(|fault| (fault.torch.0..fault.torch.1).contains(&torch) && python >= fault.python);
    let Some(fault) = of_version else { return Judgement::Nothing };
    let most = analysis
        .timeline
        .processes()
        .filter_map(|process| Some((process, process.torch_counters.count(fault.used.0)?, grows(process)?)))
        .max_by(|a, b| a.2.per_second.total_cmp(&b.2.per_second));
    let Some((process, count, growth)) = most else { return Judgement::Nothing };
    let sentence = format!(
        "{} runs torch {name}, where {} ({} {} here); it grew by {} in the last {}.",
        evidence::capital(&evidence::describe(process)),
        fault.what,
        evidence::count(count),
        fault.used.1,
        evidence::bytes((growth.per_second * growth.lasted_s) as u64),
        evidence::seconds(growth.lasted_s)
    );
    let source = evidence::Source::Agent(process.id.pid);
    let evidence = evidence::text("torch", &name, source, Some(process.first_seen), sentence);
    Judgement::one(of_process(analysis, &RULE, Severity::Note, Proof::Consistent, vec![evidence], process))
}

fn grows(process: &ProcessHistory) -> Option<LineFit> {
    let Trend::Growing(growth) = trend_of(&process.private(), process.last_seen) else { return None };
    (growth.ongoing && growth.per_second * growth.lasted_s >= NOTE_BYTES as f64).then_some(growth)
}

/// `2.3.0+cu121` as numbers.
fn numbers(version: &str) -> (u32, u32, u32) {
    let mut parts = version.split(['.', '+']).map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    });
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Install the release that fixes it", "pip install 'torch>=2.3.1'"),
        Fix::new(
            "Confirm it: run without torch.compile",
            format!("TORCHDYNAMO_DISABLE=1 {}", context.typed()),
        ),
    ]
}
