//! A fleet's answer on a screen: who was first and of what, what followed, what differs there, what is met next, what is missing.
//! At most about twelve lines.

use super::layout::Screen;
use super::style::{Ink, Style};
use super::verdict::known;
use crate::fleet::{candidate, counted, difference, error, headline, outlier, place, ranges, wall_clock};
use crate::format;
use ullage_model::{
    FirstBy, FirstOfFleet, FleetAnswer, FleetCandidate, OddBecause, OddNode, OutcomeKind, Strength,
};

/// Lines of its longest part.
const LINES: usize = 2;
/// Parts named of each kind.
const CANDIDATES: usize = 3;
const STEPS: usize = 4;
const DIFFERENCES: usize = 3;
const OUTLIERS: usize = 2;
const LOST: usize = 3;
const RANGES: usize = 8;

/// The widest heading.
const WIDEST: &str = "Missing";

/// The answer; ends with a newline.
pub fn fleet(answer: &FleetAnswer, style: &Style) -> String {
    let mut screen = Screen::block(*style, WIDEST);
    let ink = match &answer.first {
        Some(_) => Ink::Bad,
        None if answer.states.lost + answer.states.unreadable + answer.states.warned > 0 => Ink::Warn,
        None => Ink::Good,
    };
    screen.section("Fleet", ink);
    screen.prose_in(LINES, 0, 0, &format!("{}.", headline(answer)));
    if let Some(first) = &answer.first {
        of_first(&mut screen, first, style);
        then(&mut screen, answer);
    }
    for node in &answer.differs {
        differs(&mut screen, node, style);
    }
    screen.section("Outlier", Ink::Warn);
    for one in answer.outliers.iter().take(OUTLIERS) {
        screen.prose_in(1, 0, 2, &format!("{}.", outlier(one)));
    }
    next(&mut screen, answer);
    missing(&mut screen, answer);
    more(&mut screen, answer);
    screen.finish()
}

fn of_first(screen: &mut Screen, first: &FirstOfFleet, style: &Style) {
    screen.section("First", Ink::Bad);
    for one in first.candidates.iter().take(if first.determined { 1 } else { CANDIDATES }) {
        let time = format!("{} {}", wall_clock(one.at_unix), error(one.error_s));
        screen.prose_in(LINES, 0, 2, &format!("{} {}.", style.paint(Ink::Strong, &time), candidate(one)));
    }
    match first.determined {
        true => screen.prose(0, 2, &format!("{}.", standing(first))),
        false => {
            let more = (first.candidates.len() + first.more).saturating_sub(CANDIDATES);
            let more =
                if more > 0 { format!("And {} more. ", format::count(more as u64)) } else { String::new() };
            screen.prose(0, 2, &format!("{more}Their intervals overlap, and no proven cause decides."));
        }
    }
}

/// What it rests on: the proof of its cause, and what made it the first.
fn standing(first: &FirstOfFleet) -> String {
    let cause = first.candidates.first().and_then(|one: &FleetCandidate| {
        Some(format!("{}, {}", one.cause.as_deref().map(format::clean)?, known(one.proof?)))
    });
    let by = match first.by {
        Some(FirstBy::Only) => "the only one that failed of its own",
        Some(FirstBy::Clock) => "the earliest by clock",
        Some(FirstBy::Cause) => "the only one with a proven cause where the clocks overlap",
        None => "",
    };
    [cause, Some(by.to_owned())]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

fn then(screen: &mut Screen, answer: &FleetAnswer) {
    if answer.cascade.is_empty() {
        return;
    }
    screen.section("Then", Ink::Strong);
    let steps: Vec<String> = answer
        .cascade
        .iter()
        .take(STEPS)
        .map(|step| format!("{} by {}", format::count(step.recordings as u64), format::clean(&step.ending)))
        .collect();
    let rest: usize = answer.cascade.iter().skip(STEPS).map(|step| step.recordings).sum();
    let rest = if rest > 0 { format!(", {} otherwise", format::count(rest as u64)) } else { String::new() };
    let within = answer.cascade.iter().filter_map(|step| step.within_s).reduce(f64::max);
    let within = within.map_or(String::new(), |s| format!(", within {}", format::duration(s)));
    screen.prose_in(LINES, 0, 2, &format!("{}{rest}{within}.", steps.join(", ")));
}

fn differs(screen: &mut Screen, node: &OddNode, style: &Style) {
    screen.section("Differs", Ink::Strong);
    let others = format::plural(node.others as u64, "other node", "other nodes");
    let name = format::clean(&node.node);
    // What nothing points to is worth a word only on the node that failed.
    let points =
        |strength: Strength| strength > Strength::Possible || node.because == OddBecause::FirstFailure;
    let shown: Vec<String> = node
        .differences
        .iter()
        .filter(|one| points(one.difference.strength))
        .take(DIFFERENCES)
        .map(|one| match one.difference.strength {
            Strength::Explains => format!("{} {}", difference(one), style.paint(Ink::Bad, "explains it")),
            Strength::Likely => format!("{} {}", difference(one), style.paint(Ink::Warn, "likely")),
            Strength::Possible => difference(one),
        })
        .collect();
    match (shown.is_empty(), node.because) {
        (false, _) => screen.prose_in(LINES, 0, 2, &format!("{name} from {others}: {}.", shown.join("; "))),
        (true, OddBecause::FirstFailure) => {
            screen.prose(0, 2, &format!("{name} from {others}: in nothing that explains it."));
        }
        (true, OddBecause::Outlier) => {}
    }
}

fn next(screen: &mut Screen, answer: &FleetAnswer) {
    let Some(limit) = &answer.nearest else { return };
    screen.section("Next", Ink::Warn);
    let all = match limit.recordings {
        0 | 1 => String::new(),
        n => format!("; {} approach it", counted(n, &answer.rows)),
    };
    screen.prose_in(
        LINES,
        0,
        2,
        &format!(
            "{}: {} ({}) would be full in {}{all}.",
            place(&limit.place),
            format::clean(&limit.limit),
            format::clean(&limit.scope),
            format::duration(limit.time_left_s)
        ),
    );
}

fn missing(screen: &mut Screen, answer: &FleetAnswer) {
    let missing = &answer.missing;
    screen.section("Missing", Ink::Warn);
    for lost in missing.lost.iter().take(LOST) {
        let text = format!(
            "{}: no recording after {} (node lost, or killed with its container).",
            place(&lost.place),
            wall_clock(lost.last_unix)
        );
        screen.prose_in(LINES, 0, 2, &text);
    }
    let mut parts = Vec::new();
    if missing.lost.len() > LOST {
        parts.push(format!("{} more stop early", format::count((missing.lost.len() - LOST) as u64)));
    }
    if !missing.ranks.is_empty() {
        let of =
            missing.expected_ranks.map_or(String::new(), |n| format!(" of {}", format::count(u64::from(n))));
        parts.push(format!(
            "no recording of {}{of}: {}",
            format::plural(missing.ranks.len() as u64, "rank", "ranks"),
            ranges(&missing.ranks, RANGES)
        ));
    }
    if missing.nodes > 0 {
        let of =
            missing.expected_nodes.map_or(String::new(), |n| format!(" of {}", format::count(u64::from(n))));
        let numbers = match missing.node_ranks.as_slice() {
            [] => String::new(),
            numbers => format!(" (number {})", ranges(numbers, RANGES)),
        };
        let nodes = format::plural(u64::from(missing.nodes), "node", "nodes");
        parts.push(format!("no recording of {nodes}{of}{numbers}"));
    }
    if !parts.is_empty() {
        let mut text = parts.join("; ");
        if let Some(first) = text.get(..1).map(str::to_uppercase) {
            text.replace_range(..1, &first);
        }
        screen.prose_in(LINES, 0, 2, &format!("{text}."));
    }
}

fn more(screen: &mut Screen, answer: &FleetAnswer) {
    screen.section("More", Ink::Quiet);
    if let Some(one) = answer.first.as_ref().and_then(|first| first.candidates.first()) {
        // A command is never broken.
        screen.line(0, &format!("ullage report {}", format::command(std::slice::from_ref(&one.place.path))));
    }
    let mut parts = Vec::new();
    let unreadable = answer.states.unreadable;
    if unreadable > 0 && unreadable < answer.recordings {
        parts.push(format!("{} cannot be read", counted(unreadable, &answer.rows)));
    }
    let running = answer.outcomes.get(OutcomeKind::StillRunning.word()).copied().unwrap_or(0);
    if answer.first.is_some() && running > 0 {
        parts.push(format!("{} still run", counted(running, &answer.rows)));
    }
    if answer.earlier > 0 {
        parts.push(format!("{} of earlier attempts", counted(answer.earlier, &answer.rows)));
    }
    if !answer.other_jobs.is_empty() {
        let other = answer.other_jobs.len() as u64;
        parts.push(format!("{} in the folder (--job)", format::plural(other, "other job", "other jobs")));
    }
    if !parts.is_empty() {
        screen.prose_in(LINES, 0, 2, &format!("{}.", parts.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::{
        CascadeStep, FailureKind, FleetLimit, FleetMissing, FleetOutlier, FleetPlace, FleetRow, FleetStates,
        LostRecording, Proof,
    };

    fn at(node: &str, rank: u32) -> FleetPlace {
        FleetPlace { path: format!("DIR/node={node}/rank={rank}"), node: Some(node.into()), rank: Some(rank) }
    }

    fn candidate(node: &str, rank: u32) -> FleetCandidate {
        FleetCandidate {
            place: at(node, rank),
            at_unix: 1_795_658_015.2,
            error_s: 0.05,
            failure: FailureKind::Own,
            role: Some("loader worker 2".into()),
            cause: Some("memcg-oom-kill".into()),
            proof: Some(Proof::KernelSaid),
            ending: "out of memory".into(),
            sentence: "The cgroup ran out of memory".into(),
        }
    }

    fn answer() -> FleetAnswer {
        let step = |ending: &str, recordings, within| CascadeStep {
            ending: ending.into(),
            failure: FailureKind::Echo,
            recordings,
            within_s: Some(within),
        };
        FleetAnswer {
            schema: FleetAnswer::SCHEMA,
            job: Some("4711".into()),
            attempt: 0,
            recordings: 1024,
            nodes: 128,
            ranks: 1024,
            states: FleetStates { failed: 1024, ..FleetStates::default() },
            outcomes: [].into(),
            causes: [].into(),
            first: Some(FirstOfFleet {
                determined: true,
                by: Some(FirstBy::Clock),
                node: Some("n064".into()),
                candidates: vec![candidate("n064", 517)],
                more: 0,
            }),
            cascade: vec![step("NCCL time-out", 932, 30.0), step("SIGTERM", 91, 1.5)],
            outliers: vec![FleetOutlier {
                place: at("n064", 517),
                figure: "growth".into(),
                value: 700_000.0,
                median: 5000.0,
                peers: 1023,
            }],
            differs: Vec::new(),
            nearest: Some(FleetLimit {
                place: at("n003", 24),
                limit: "/dev/shm bytes".into(),
                scope: "/dev/shm".into(),
                time_left_s: 7800.0,
                recordings: 1000,
            }),
            missing: FleetMissing {
                ranks: vec![8, 9, 10],
                expected_ranks: Some(1027),
                nodes: 1,
                expected_nodes: Some(129),
                lost: vec![LostRecording { place: at("n101", 808), last_unix: 1_795_658_000.0 }],
                ..FleetMissing::default()
            },
            other_jobs: Vec::new(),
            earlier: 0,
            rows: vec![FleetRow { rank: Some(1), ..FleetRow::default() }],
        }
    }

    #[test]
    fn the_first_failure_is_named_with_all_that_follows_in_few_lines() {
        let text = fleet(&answer(), &Style::plain(80));
        for part in [
            "1,023 ranks failed after rank 517 (n064)",
            "01:53:35.2 UTC ±0.05 s n064, rank 517, loader worker 2: The cgroup ran out of memory.",
            "memcg-oom-kill, established: the kernel said so; the earliest by clock.",
            "932 by NCCL time-out, 91 by SIGTERM, within 30.0 s.",
            "no recording after 01:53:20.0 UTC",
            "No recording of 3 ranks of 1,027: 8–10; no recording of 1 node of 129.",
            "ullage report DIR/node=n064/rank=517",
        ] {
            let shown = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().count() <= 15 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn what_cannot_be_determined_is_said_with_the_candidates() {
        let mut answer = answer();
        answer.first = Some(FirstOfFleet {
            determined: false,
            by: None,
            node: None,
            candidates: vec![candidate("a", 1), candidate("b", 2), candidate("c", 3), candidate("d", 4)],
            more: 2,
        });
        let words = |answer: &FleetAnswer| {
            fleet(answer, &Style::plain(80)).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let text = words(&answer);
        assert!(text.contains("the first cannot be determined"), "{text}");
        assert!(text.contains("And 3 more. Their intervals overlap"), "{text}");
        assert!(!text.contains("d, rank 4"), "{text}");
        if let Some(first) = &mut answer.first {
            first.node = Some("a".into());
        }
        let text = words(&answer);
        assert!(text.contains("first on a; which of 6 ranks there cannot be determined"), "{text}");
    }

    #[test]
    fn a_healthy_fleet_is_a_few_lines() {
        let well = FleetAnswer {
            states: FleetStates { healthy: 1024, ..FleetStates::default() },
            first: None,
            cascade: Vec::new(),
            outliers: Vec::new(),
            missing: FleetMissing::default(),
            ..answer()
        };
        let text = fleet(&well, &Style::plain(80));
        assert!(text.starts_with("Fleet   1,024 ranks on 128 nodes, job 4711: all healthy.\n"), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
