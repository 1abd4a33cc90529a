//! Does a run show zombie-children? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::{EXIT_TAKES_NS, ZOMBIES, ZOMBIES_LEFT};
use crate::policy::growth::TAKEN_DOWN_S;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Fix, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let worst = analysis
        .timeline
        .processes()
        .filter(|process| {
            let last = last(process);
            let until = standing(process).map_or(At(0), |(at, _)| at);
            let peak = process.zombies.peak_between(At(0), until).map_or(0.0, |(_, peak)| peak);
            let first = process.zombies.first().map_or(0.0, |(_, first)| first);
            // Reaped in the end, or few: nothing piles up.
            peak >= ZOMBIES && peak > first && last >= ZOMBIES_LEFT * peak
        })
        .max_by(|a, b| last(a).total_cmp(&last(b)));
    let Some(parent) = worst else { return Judgement::Nothing };
    let Some((at, zombies)) = standing(parent) else { return Judgement::Nothing };
    let zombies = zombies as u64;
    let sentence = format!(
        "{} never waited for {} that ended; each still holds a pid, but no memory.",
        evidence::capital(&evidence::describe(parent)),
        evidence::plural(zombies, "child", "children")
    );
    let source = evidence::Source::Children(parent.id.pid, "State of /proc/PID/stat");
    let evidence = vec![evidence::number("zombies", zombies, "processes", source, at, sentence)];
    let mut finding =
        of_job(&RULE, Severity::Warning, Proof::SeenOutside, evidence, &analysis.remedy_context(None));
    finding.process = Some(evidence::process_ref(parent));
    Judgement::one(finding)
}

/// The zombies of a process as they stood before its end: while it exits they are given to the reaper, and what it ends then is
/// waited for by nobody.
fn standing(process: &ProcessHistory) -> Option<(At, f64)> {
    let end = process.ended.map_or(process.last_seen, |(end, _, _)| end);
    let exits = process.ended.map(|(end, _, _)| At(end.0.saturating_sub(EXIT_TAKES_NS)));
    // Of a child of multiprocessing it is said before its threads are awaited.
    let taken_down = process.taken_down.filter(|since| end.since(*since) <= TAKEN_DOWN_S);
    match taken_down.or(exits) {
        Some(at) => process.zombies.at_or_before(at),
        None => process.zombies.last(),
    }
}

fn last(process: &ProcessHistory) -> f64 {
    standing(process).map_or(0.0, |(_, value)| value)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Wait for each child",
            "subprocess.run([\"convert\", source, target], check=True)  # instead of Popen",
        ),
        Fix::new("In a container: start it with an init that reaps children", "docker run --init IMAGE")
            .only(Place::Container),
    ]
}
