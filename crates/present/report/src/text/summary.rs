//! What does a person need whose job has just ended? The headline, the reading that proves it, the first remedy, the nearest
//! limit, and where the rest stands: in at most twelve lines, printed last.
//!
//! The surprise: a limit that the readings shown name already is not told again, because two readings of it would differ.

use super::grew::in_short as growth_words;
use super::layout::Screen;
use super::outcome::{beside_a_cause, in_short};
use super::style::{Ink, Style, GLUE};
use super::verdict::{known, last_name, limit_words, nearest};
use crate::format;
use ullage_model::{
    caused_by, Evidence, EvidenceSource, Finding, FirstFailure, GrowthClass, Limit, LimitKind, LimitState,
    MemorySummary, OutcomeKind, ProcessRef, Role, Severity, Verdict,
};

/// Lines that the block has at most.
const LINES: usize = 12;
/// Whose text it is, and the width of its margin.
const NAME: &str = "ullage:";
/// SIGKILL, which the kernel sends for lack of memory, and which says nothing about why.
const SIGKILL: i32 = 9;

/// How much of each part is shown; tried from the most to the least until the block fits.
#[derive(Clone, Copy)]
struct Extent {
    proof: usize,
    remedy: usize,
    code: usize,
    also: usize,
    limit: bool,
}

const EXTENTS: [Extent; 7] = [
    Extent { proof: 2, remedy: 2, code: 5, also: 2, limit: true },
    Extent { proof: 2, remedy: 2, code: 5, also: 1, limit: true },
    Extent { proof: 2, remedy: 1, code: 5, also: 1, limit: true },
    Extent { proof: 1, remedy: 1, code: 5, also: 0, limit: true },
    Extent { proof: 1, remedy: 1, code: 5, also: 0, limit: false },
    Extent { proof: 0, remedy: 1, code: 5, also: 0, limit: false },
    Extent { proof: 1, remedy: 1, code: 0, also: 0, limit: false },
];

/// The short block; ends with a newline. `recording`: what `ullage report` finds this run by, where it was recorded.
pub fn summary(verdict: &Verdict, recording: Option<&str>, style: &Style) -> String {
    let Some(first) = worst(verdict) else { return line(verdict, recording, *style) };
    let mut block = String::new();
    for extent in EXTENTS {
        let screen = found(verdict, first, recording, *style, extent);
        let fits = screen.lines() <= LINES;
        block = screen.finish();
        if fits {
            break;
        }
    }
    block
}

/// The verdict in one sentence, without its full stop: what was found, else how it went.
pub fn headline(verdict: &Verdict) -> String {
    match worst(verdict) {
        Some(finding) => headline_of(finding),
        None => went(verdict).join(" · "),
    }
}

/// The first finding, where it is more than a note.
fn worst(verdict: &Verdict) -> Option<&Finding> {
    verdict.findings.first().filter(|finding| finding.severity > Severity::Note)
}

fn headline_of(finding: &Finding) -> String {
    let text = if finding.headline.is_empty() { &finding.title } else { &finding.headline };
    format::clean(text).trim_end_matches('.').to_owned()
}

/// How a run went of which nothing was found, in parts.
fn went(verdict: &Verdict) -> Vec<String> {
    let mut parts = Vec::new();
    let outcome = &verdict.outcome;
    let runs = outcome.kind == OutcomeKind::StillRunning;
    if verdict.healthy {
        parts.push("healthy".to_owned());
        parts.extend(verdict.duration_s.map(format::duration));
    } else {
        let cause = match outcome.kind {
            OutcomeKind::NotStarted => "",
            OutcomeKind::OomKill | OutcomeKind::Budget => "; what took the memory was not found",
            _ => ", no memory cause found",
        };
        parts.push(format!("{}{cause}", in_short(outcome, verdict.duration_s)));
    }
    if verdict.healthy || runs {
        parts.extend(peak(verdict));
        parts.extend(verdict.limits.first().and_then(nearest));
    }
    parts
}

fn peak(verdict: &Verdict) -> Option<String> {
    let memory = &verdict.memory;
    // Over before its first reading.
    if memory.peak_bytes == 0 {
        return None;
    }
    let roles = of_roles(memory);
    let roles = if roles.is_empty() { String::new() } else { format!(" ({})", roles.join(", ")) };
    Some(format!("peak {}{roles}", format::bytes(memory.peak_bytes)))
}

/// `main 190 MiB`, `4 loader workers 55 MiB each`, `shared and files 300 MiB`; nothing of a process alone.
fn of_roles(memory: &MemorySummary) -> Vec<String> {
    /// Roles told, and the share of the peak below which none is.
    const ROLES: usize = 3;
    const LEAST_SHARE: u64 = 50;
    if memory.by_role.iter().map(|role| role.processes).sum::<u64>() < 2 {
        return Vec::new();
    }
    let worth = |bytes: u64| bytes >= memory.peak_bytes / LEAST_SHARE;
    let mut shown = Vec::new();
    for role in memory.by_role.iter().filter(|role| worth(role.bytes)).take(ROLES) {
        let name = format::clean(&role.role);
        let each = format::bytes(role.bytes / role.processes.max(1));
        shown.push(match role.processes {
            1 => format!("{name} {each}"),
            n => format!("{n} {} {each} each", many(&name)),
        });
    }
    let own: u64 = memory.by_role.iter().map(|role| role.bytes).sum();
    let rest = memory.peak_bytes.saturating_sub(own);
    if worth(rest) {
        shown.push(format!("shared and files {}", format::bytes(rest)));
    }
    shown
}

fn many(role: &str) -> String {
    match role {
        "main" | "other" => format!("{role} processes"),
        role => format!("{role}s"),
    }
}

/// A run of which nothing was found: how it went, and a line for what else is worth one.
fn line(verdict: &Verdict, recording: Option<&str>, style: Style) -> String {
    let mut screen = Screen::block(style, NAME);
    let ink = if verdict.healthy { Ink::Good } else { Ink::Strong };
    screen.section(NAME, ink);
    let parts = went(verdict).into_iter().chain(recording.map(report));
    screen.prose(0, 0, &joined(parts));
    if let Some(failure) = verdict.first_failure.as_ref().filter(|failure| is_news(failure, verdict)) {
        screen.section("First", Ink::Strong);
        screen.prose_in(2, 0, 0, &failed(failure));
    }
    if verdict.outcome.signal == Some(SIGKILL) {
        if let Some(open) = verdict.undetermined.first() {
            let because = format::clean(open.because.trim_end_matches('.'));
            screen.section("Open", Ink::Strong);
            screen.prose_in(3, 0, 0, &format!("{}: {because}", format::clean(&open.cause)));
        }
    }
    if let Some((heading, text)) = growing(verdict) {
        screen.section(heading, Ink::Strong);
        screen.prose_in(2, 0, 0, &text);
    }
    if let Some(left) = verdict.segments.as_ref().and_then(super::segments::left_behind) {
        screen.section("Left", Ink::Strong);
        screen.prose(0, 0, &left);
    }
    screen.finish()
}

/// It says more than the command's own end does.
fn is_news(failure: &FirstFailure, verdict: &Verdict) -> bool {
    let outcome = &verdict.outcome;
    // A command that ended before it was read has no role.
    let as_it = failure.code == outcome.code && failure.signal == outcome.signal;
    let of_command = failure.process.as_ref().is_none_or(|process| match process.role {
        Role::Main => true,
        Role::Other => as_it,
        _ => false,
    });
    failure.exception.is_some() || !of_command
}

/// `loader worker 0 (pid 4750): ValueError: boom`.
fn failed(failure: &FirstFailure) -> String {
    let subject = failure.process.as_ref().map_or_else(|| "a process that was never read".into(), process);
    let how = match (&failure.exception, failure.signal, failure.code) {
        (Some(exception), ..) => format::clean(exception),
        (_, Some(signal), _) => format!("killed by {}", format::signal(signal)),
        (_, _, Some(code)) => format!("exit status {code}"),
        _ => "ended, how was not seen".into(),
    };
    let how = how.trim_end_matches('.');
    format!("{subject}: {how}, {} after the start", format::duration(failure.at.seconds()))
}

fn process(process: &ProcessRef) -> String {
    let role = match &process.role {
        Role::Main => "main process".to_owned(),
        Role::Other => format::clean(&process.name),
        role => role.label(),
    };
    format!("{role} (pid {})", process.id.pid)
}

/// What a run grew by to its end that went well, by the note that explains it where there is one. Growth of a few seconds
/// is a job that had not begun.
fn growing(verdict: &Verdict) -> Option<(&'static str, String)> {
    const WORTH_A_LINE_S: f64 = 20.0;
    let growth = verdict.growth.as_ref().filter(|growth| growth.until.is_some())?;
    let lasted = verdict.duration_s? - growth.since?.seconds();
    let of_death = matches!(verdict.outcome.kind, OutcomeKind::OomKill | OutcomeKind::Budget);
    let harmless =
        matches!(growth.class, GrowthClass::PageCache | GrowthClass::MappedFiles | GrowthClass::None);
    if harmless || (lasted < WORTH_A_LINE_S && !of_death) {
        return None;
    }
    let note = verdict.findings.iter().find(|note| growth.explained_by.as_ref() == Some(&note.cause));
    Some(match note {
        Some(note) => ("Note", headline_of(note)),
        None => ("Grows", growth_words(growth)),
    })
}

fn found(
    verdict: &Verdict,
    first: &Finding,
    recording: Option<&str>,
    style: Style,
    extent: Extent,
) -> Screen {
    let mut screen = Screen::block(style, NAME);
    let ink = if first.severity == Severity::Fatal { Ink::Bad } else { Ink::Warn };
    let headline = headline_of(first);
    screen.section(NAME, ink);
    screen.prose_in(3, 0, 0, &style.paint(ink, &shorter(&headline, first)));
    let cause = format::clean(&first.cause);
    // What was fatal says by what it was killed.
    let ended = match first.severity {
        Severity::Fatal => beside_a_cause(&verdict.outcome, verdict.duration_s),
        _ => in_short(&verdict.outcome, verdict.duration_s),
    };
    screen.prose(0, 0, &joined([style.paint(Ink::Strong, &cause), known(first.proof), ended].into_iter()));
    // A second reading of the limit that the headline has would be another figure of one quantity.
    let limit = first.evidence.first().and_then(|evidence| evidence.limit);
    let proof = first.evidence.iter().enumerate().find(|(place, evidence)| {
        let again = *place > 0 && limit.is_some() && evidence.limit == limit;
        !again && !evidence.sentence.is_empty() && format::clean(evidence.first_sentence()) != headline
    });
    let proof = proof.map(|(_, evidence)| evidence);
    if let Some(proof) = proof.filter(|_| extent.proof > 0) {
        screen.section("Why", Ink::Strong);
        let sentence = shorter(&format::clean(proof.first_sentence()), first);
        screen.prose_in(extent.proof, 0, 0, &format!("{sentence}."));
    }
    remedy(&mut screen, first, extent);
    if let Some(limit) = untold_limit(verdict, first, proof).filter(|_| extent.limit) {
        screen.section("Limit", Ink::Strong);
        screen.prose_in(1, 0, 0, &limit_words(limit));
    }
    also(&mut screen, verdict, extent);
    screen.section("More", Ink::Strong);
    let page = command(&format!("ullage explain {cause}"));
    screen.prose(0, 0, &joined(recording.map(report).into_iter().chain([page])));
    screen
}

fn remedy(screen: &mut Screen, finding: &Finding, extent: Extent) {
    let Some(fix) = finding.fixes.first() else { return };
    let mut title = format::clean(&fix.title);
    // What stands in brackets at its end is in the report.
    if let Some(at) = title.rfind(" (").filter(|_| title.ends_with(')')) {
        if screen.wrapped(0, 0, &format!("{title}:")).len() > extent.remedy {
            title.truncate(at);
        }
    }
    screen.section("Do", Ink::Strong);
    let code = super::layout::pasteable(&fix.command, screen.columns().saturating_sub(2));
    let shown = code.len() <= extent.code;
    screen.prose_in(extent.remedy, 0, 0, &format!("{title}{}", if shown { ":" } else { "" }));
    if shown {
        screen.paste(2, &fix.command);
    }
}

/// With paths of cgroups by their last name: they are long, and say nothing to who reads them.
fn shorter(sentence: &str, finding: &Finding) -> String {
    let mut text = sentence.to_owned();
    for evidence in &finding.evidence {
        if let EvidenceSource::Cgroup(_, path) | EvidenceSource::CgroupMemory(path) = &evidence.source {
            text = text.replace(path.as_str(), &last_name(path));
        }
    }
    text
}

/// The nearest limit that the readings shown do not name; none where the job met one, or died.
fn untold_limit<'a>(
    verdict: &'a Verdict,
    first: &Finding,
    proof: Option<&Evidence>,
) -> Option<&'a LimitState> {
    let shown: Vec<Limit> =
        first.evidence.first().into_iter().chain(proof).filter_map(|evidence| evidence.limit).collect();
    let is_named = |state: &&LimitState| {
        state.limit.as_known().is_some_and(|limit| shown.iter().any(|one| one.at().is_some() && one == limit))
    };
    let dead = first.severity == Severity::Fatal
        || matches!(verdict.outcome.kind, OutcomeKind::OomKill | OutcomeKind::Budget);
    let candidates = || verdict.limits.iter().filter(|state| !is_named(state) && state.headroom().is_some());
    // Of temporary files nothing is said while they are far from it: on a large disk others write most of them.
    let is_far = |state: &&LimitState| {
        let used = state.used.as_known().copied().unwrap_or(0);
        let room = state.headroom().unwrap_or(0);
        state.kind == LimitKind::TemporaryFiles && state.time_left_s.is_none() && used < room
    };
    let of_memory = [LimitKind::HostMemory, LimitKind::CgroupMemory, LimitKind::MemoryBudget];
    let nearest = candidates().next().filter(|state| !is_far(state));
    let memory = || candidates().find(|state| of_memory.contains(&state.kind));
    nearest.or_else(memory).or_else(|| candidates().next()).filter(|_| !dead)
}

fn also(screen: &mut Screen, verdict: &Verdict, extent: Extent) {
    let all = &verdict.findings;
    // The same container may be two causes, one of which names it better.
    let is_said =
        |finding: &Finding| all.first().is_some_and(|first| headline_of(first) == headline_of(finding));
    let mut others =
        all.iter().skip(1).filter(|finding| finding.severity > Severity::Note && !is_said(finding));
    let leads = all
        .first()
        .zip(all.get(1))
        .is_some_and(|(first, other)| caused_by(other, all).contains(&first.cause.as_str()));
    screen.section(if leads { "Led to" } else { "Also" }, Ink::Strong);
    for finding in others.by_ref().take(extent.also) {
        let text = format!("{}: {}", format::clean(&finding.cause), shorter(&headline_of(finding), finding));
        screen.prose_in(extent.also, 0, 0, &text);
    }
    match others.count() {
        0 => {}
        1 if extent.also == 0 => screen.prose(0, 0, "1 more finding"),
        n => screen.prose(0, 0, &format::plural(n as u64, "more finding", "more findings")),
    }
}

fn report(recording: &str) -> String {
    command(&format!("ullage report {}", format::clean(recording)))
}

/// A command stays on one line.
fn command(text: &str) -> String {
    text.replace(' ', &GLUE.to_string())
}

/// Parts in a row; one that is short stays on one line.
fn joined(parts: impl Iterator<Item = String>) -> String {
    const SHORT: usize = 60;
    let whole = |part: String| if part.chars().count() <= SHORT { command(&part) } else { part };
    parts.map(whole).collect::<Vec<_>>().join(&format!("{GLUE}· "))
}
