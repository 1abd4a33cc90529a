//! What does a person see when the run is over? Verdict, Why, Do, Limits, and what could not be seen, on one
//! screen. The most severe finding is told in full; those behind it get a line or two.

use super::layout::Screen;
use super::outcome::outcome;
use super::segments::segments;
use super::style::{Ink, Style};
use crate::format;
use ullage_model::{
    caused_by, Attempt, Cost, Evidence, Finding, Limit, LimitState, OutcomeKind, ProcessRef, Proof, Role,
    Scope, Severity, Status, Undetermined, Verdict,
};

/// Readings told of the first finding; the rest is in the JSON.
const EVIDENCE_SHOWN: usize = 6;
/// Fixes told of the first finding.
const FIXES_SHOWN: usize = 4;
/// Findings told after the first.
const ALSO_SHOWN: usize = 3;
/// Limits told, nearest first.
const LIMITS_SHOWN: usize = 5;
/// Moments told that the job marked.
const MOMENTS_SHOWN: usize = 5;
/// Sentences told of what could not be seen.
const NOT_SEEN_SHOWN: usize = 6;

/// The verdict as text for a screen; ends with a newline.
pub fn verdict(verdict: &Verdict, style: &Style) -> String {
    let mut screen = Screen::new(*style);
    head(&mut screen, *style, verdict);
    match verdict.findings.first() {
        Some(first) if first.severity > Severity::Note => {
            why(&mut screen, *style, first);
            what_to_do(&mut screen, *style, first);
            also(&mut screen, *style, &verdict.findings);
        }
        // What is no fault needs no remedy.
        _ => notes(&mut screen, *style, &verdict.findings),
    }
    limits(&mut screen, *style, &verdict.limits);
    if let Some(growth) = &verdict.growth {
        super::grew::grew(&mut screen, *style, growth);
    }
    super::memory::memory(&mut screen, *style, &verdict.memory);
    if let Some(summary) = &verdict.segments {
        segments(&mut screen, *style, summary);
    }
    moments(&mut screen, *style, verdict);
    not_seen(&mut screen, *style, verdict);
    cost(&mut screen, *style, verdict);
    screen.finish()
}

fn head(screen: &mut Screen, style: Style, verdict: &Verdict) {
    let ending = outcome(&verdict.outcome, verdict.duration_s);
    let first = verdict.findings.first();
    let worst = first.map(|finding| finding.severity);
    let ink = match worst {
        Some(Severity::Fatal) => Ink::Bad,
        Some(Severity::Warning) => Ink::Warn,
        _ if verdict.healthy => Ink::Good,
        _ => Ink::Strong,
    };
    screen.section("Verdict", ink);
    match first {
        Some(finding) if finding.severity > Severity::Note => {
            screen.prose(0, 0, &style.paint(ink, &format::clean(&finding.title)));
            screen.prose(0, 0, &standing(finding));
            screen.prose(0, 0, &ending);
        }
        _ if verdict.healthy => {
            screen.prose(0, 0, &style.paint(ink, "Healthy: nothing was found to be wrong with memory."));
            screen.prose(0, 0, &ending);
        }
        _ => {
            screen.prose(0, 0, &style.paint(ink, &ending));
            if verdict.outcome.kind != OutcomeKind::NotStarted {
                let known = if verdict.undetermined.is_empty() {
                    ""
                } else {
                    " among the causes that could be checked"
                };
                screen.prose(0, 0, &format!("No memory cause was found{known}."));
            }
            if let Some(failure) = &verdict.first_failure {
                screen.prose(0, 0, &format!("First to fail: {}", format::clean(&failure.sentence)));
            }
        }
    }
}

/// How it is known, in words: `established: the kernel said so`.
pub(super) fn known(proof: Proof) -> String {
    let status = match proof.status() {
        Status::Established => "established",
        Status::Supported => "supported",
        Status::Hypothesis => "a hypothesis",
    };
    let how = match proof {
        Proof::KernelSaid => "the kernel said so",
        Proof::SeenInside => "seen inside the process",
        Proof::SeenOutside => "read from the system",
        Proof::ReadNearLimit => "read at the limit near the failure",
        Proof::Estimated => "estimated from readings",
        Proof::InPart => "a part of it was seen",
        Proof::MessageOnly => "a message in the log alone",
        Proof::Consistent => "it fits what was seen",
    };
    format!("{status}: {how}")
}

/// Whose and how it is known: `max-map-count-exhausted in the trainer (…), established: seen inside the process.`
pub fn standing(finding: &Finding) -> String {
    let process = finding.process.as_ref().map(|p| format!(" in {}", process_words(p))).unwrap_or_default();
    let cause = format::clean(&finding.cause);
    format!("{cause}{process}, {}.", known(finding.proof))
}

fn process_words(process: &ProcessRef) -> String {
    let role = match &process.role {
        Role::Main => "the main process".to_owned(),
        Role::Other => "a process of the job".to_owned(),
        role => format!("the {}", role.label()),
    };
    format!("{role} ({}, pid {})", format::clean(&process.name), process.id.pid)
}

fn why(screen: &mut Screen, style: Style, finding: &Finding) {
    screen.section("Why", Ink::Strong);
    for evidence in finding.evidence.iter().take(EVIDENCE_SHOWN) {
        screen.prose(0, 2, &evidence_words(style, evidence));
    }
    more(screen, style, finding.evidence.len(), EVIDENCE_SHOWN, "readings: ullage report --json");
}

/// The sentence, then the reading that it rests on.
pub fn evidence_words(style: Style, evidence: &Evidence) -> String {
    let reading = format::reading(&evidence.value, evidence.limit);
    let mut source = format::clean(&evidence.source.to_string());
    if let Some(at) = evidence.at {
        source = format!("{source} {}", format::at(at)).trim_start().to_owned();
    }
    let sentence = format::clean(&evidence.sentence);
    let tag = match (evidence.said && !sentence.is_empty(), source.is_empty()) {
        (true, true) => return sentence,
        (true, false) => format!("[{source}]"),
        (false, true) => format!("[{reading}]"),
        (false, false) => format!("[{reading}; {source}]"),
    };
    let sentence = if sentence.is_empty() { format!("{}:", format::clean(&evidence.what)) } else { sentence };
    format!("{sentence} {}", style.paint(Ink::Quiet, &tag))
}

fn what_to_do(screen: &mut Screen, style: Style, finding: &Finding) {
    screen.section("Do", Ink::Strong);
    let shown = finding.fixes.iter().take(FIXES_SHOWN);
    for (i, fix) in shown.enumerate() {
        screen.prose(0, 3, &format!("{}. {}", i + 1, format::clean(&fix.title)));
        screen.paste(3, &fix.command);
    }
    let page = format!("ullage explain {}", format::clean(&finding.cause));
    if finding.fixes.len() > FIXES_SHOWN || finding.fixes.is_empty() {
        screen.prose(0, 3, &format!("More about it: {}", style.paint(Ink::Code, &page)));
    }
}

fn also(screen: &mut Screen, style: Style, findings: &[Finding]) {
    screen.section("Also", Ink::Strong);
    let behind = findings.get(1..).unwrap_or_default();
    for finding in behind.iter().take(ALSO_SHOWN) {
        let process =
            finding.process.as_ref().map(|p| format!(", in {}", process_words(p))).unwrap_or_default();
        let status = match finding.status() {
            Status::Established => "established",
            Status::Supported => "supported",
            Status::Hypothesis => "hypothesis",
        };
        let tag = format!("[{}, {status}]", format::clean(&finding.cause));
        let title = format::clean(&finding.title);
        let title = title.trim_end_matches('.');
        // What comes of another one stands under it.
        let (indent, by) = match caused_by(finding, findings).first() {
            Some(cause) => (2, format!("Comes of {}: ", format::clean(cause))),
            None => (0, String::new()),
        };
        let tag = style.paint(Ink::Quiet, &tag);
        screen.prose(indent, indent + 2, &format!("{by}{title}{process}. {tag}"));
    }
    more(screen, style, behind.len(), ALSO_SHOWN, "findings: ullage report --json");
}

fn notes(screen: &mut Screen, style: Style, findings: &[Finding]) {
    screen.section("Notes", Ink::Strong);
    for finding in findings.iter().take(ALSO_SHOWN) {
        let tag = style.paint(Ink::Quiet, &format!("[{}]", format::clean(&finding.cause)));
        screen.prose(0, 2, &format!("{} {tag}", note(finding)));
    }
    more(screen, style, findings.len(), ALSO_SHOWN, "notes: ullage report --json");
}

/// What a finding saw, in its first evidence.
fn note(finding: &Finding) -> String {
    let seen =
        finding.evidence.first().map(|evidence| evidence.sentence.as_str()).filter(|text| !text.is_empty());
    format::clean(seen.unwrap_or(&finding.title))
}

fn limits(screen: &mut Screen, style: Style, limits: &[LimitState]) {
    // A limit without a number cannot be met.
    let finite: Vec<&LimitState> =
        limits.iter().filter(|l| !matches!(l.limit.as_known(), Some(Limit::Unlimited))).collect();
    if finite.is_empty() {
        return;
    }
    screen.section("Limits", Ink::Strong);
    let mut rows = vec![["nearest first", "used", "limit", "left", "time left"].map(String::from).to_vec()];
    for state in finite.iter().take(LIMITS_SHOWN) {
        rows.push(limit_row(state).to_vec());
    }
    screen.table(&rows);
    for state in finite.iter().take(LIMITS_SHOWN) {
        for (what, reason) in [("used", state.used.missing()), ("limit", state.limit.missing())] {
            if let Some(reason) = reason {
                screen.prose(
                    0,
                    2,
                    &style.paint(
                        Ink::Quiet,
                        &format!("? {}: {what} {}", limit_and_scope(state), format::missing(reason)),
                    ),
                );
            }
        }
    }
    for state in limits.iter().filter(|state| state.warning) {
        screen.prose(0, 2, &style.paint(Ink::Warn, &growth(state)));
    }
    more(screen, style, finite.len(), LIMITS_SHOWN, "limits, further away: ullage report --json");
}

/// Which limit, used, allowed, left, and the time left.
pub fn limit_row(state: &LimitState) -> [String; 5] {
    let unit = state.kind.unit();
    let unknown = || "?".to_owned();
    [
        limit_and_scope(state),
        state.used.as_known().map_or_else(unknown, |n| format::quantity(*n, unit)),
        state.limit.as_known().map_or_else(unknown, |limit| format::limit(*limit, unit)),
        state.headroom().map_or_else(unknown, |n| format::quantity(n, unit)),
        time_left(state),
    ]
}

/// A limit that is about to be met, as a sentence without its full stop.
pub fn growth(state: &LimitState) -> String {
    let used = state.used.as_known().map_or_else(|| "?".into(), |n| format::quantity(*n, state.kind.unit()));
    let limit =
        state.limit.as_known().map_or_else(|| "?".into(), |limit| format::limit(*limit, state.kind.unit()));
    let mut text = format!("{}: {used} of {limit}", limit_and_scope(state));
    if let (Some(slope), Some(lasted)) = (state.slope_per_s, state.growing_for_s) {
        let rate = format::rate(slope, state.kind.unit());
        let lasted = format::duration(lasted.round());
        text += &format!(", growing by {rate} for {lasted}");
    }
    if let Some(left) = state.time_left_s {
        text += "; at this rate the limit is met ";
        text += &if left < 1.0 {
            "within a second".into()
        } else {
            format!("in about {}", format::duration(left.round()))
        };
    }
    text
}

/// `nearest limit: mappings of trainer 4711, 83 %`; none where it is not known how much of it is used.
pub fn nearest(state: &LimitState) -> Option<String> {
    let (used, most) = (state.used.as_known()?, state.limit.as_known()?.at()?);
    let share = format::share(*used as f64 / most as f64);
    let left = until_met(state).map(|left| format!(", {left}")).unwrap_or_default();
    (most > 0).then(|| format!("nearest limit: {}, {share}{left}", limit_name(state)))
}

/// `memory and swap of the host: 2.72 GiB of 23.5 GiB, met in about 18 min at this rate`.
pub(super) fn limit_words(state: &LimitState) -> String {
    let unit = state.kind.unit();
    let used = state.used.as_known().map_or_else(|| "?".into(), |n| format::quantity(*n, unit));
    let limit = state.limit.as_known().map_or_else(|| "?".into(), |limit| format::limit(*limit, unit));
    let share = || Some(format::share(*state.used.as_known()? as f64 / state.limit.as_known()?.at()? as f64));
    let left = until_met(state).or_else(share).map(|left| format!(", {left}")).unwrap_or_default();
    // What it says is that there is time, or room.
    let far = until_met(state).is_none()
        && state
            .used
            .as_known()
            .zip(state.limit.as_known())
            .is_some_and(|(used, limit)| limit.at().is_some_and(|limit| used.saturating_mul(2) < limit));
    if far {
        return format!("none is near ({}{})", limit_name(state), left.replacen(',', ":", 1));
    }
    format!("{}: {used} of {limit}{left}", limit_name(state))
}

fn until_met(state: &LimitState) -> Option<String> {
    match (state.headroom(), state.time_left_s) {
        (Some(0), _) => Some("met".into()),
        (_, Some(left)) if left < 1.0 => Some("met within a second".into()),
        (_, Some(left)) => Some(format!("met in about {} at this rate", format::duration(left.round()))),
        _ => None,
    }
}

/// `memory and swap of the host`, `mappings of trainer 4742`, `cgroup memory of …/job`.
fn limit_name(state: &LimitState) -> String {
    let name = state.kind.name();
    match &state.scope {
        Scope::Process(id, role) => format!("{name} of {} {}", role.label(), id.pid),
        Scope::Host => format!("{name} of the host"),
        Scope::Job => format!("{name} of the job"),
        Scope::Filesystem(path) if name.starts_with(path.as_str()) => name.to_owned(),
        Scope::Filesystem(path) => format!("{name} in {}", format::clean(path)),
        Scope::User(_) => format!("{name} of the user"),
        Scope::Cgroup(path) => format!("{name} of {}", format::clean(&last_name(path))),
    }
}

/// `…/job` of `/user.slice/user-0.slice/job`.
pub(super) fn last_name(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some((front, last)) if !front.is_empty() => format!("…/{last}"),
        _ => path.to_owned(),
    }
}

/// `mappings, trainer 4742`; a scope that is no process's as it is.
fn limit_and_scope(state: &LimitState) -> String {
    let scope = match &state.scope {
        Scope::Process(id, role) => format!("{} {}", role.label(), id.pid),
        scope => scope.to_string(),
    };
    format!("{}, {}", state.kind.name(), format::clean(&scope))
}

fn time_left(state: &LimitState) -> String {
    match (state.headroom(), state.time_left_s, state.slope_per_s) {
        (Some(0), _, _) => "met".into(),
        (_, Some(seconds), _) if seconds < 1.0 => "under 1 s".into(),
        (_, Some(seconds), _) => format::duration(seconds),
        (_, None, Some(slope)) if slope <= 0.0 => "not growing".into(),
        (Some(_), None, Some(_)) => "far off".into(),
        _ => "cannot tell".into(),
    }
}

fn not_seen(screen: &mut Screen, style: Style, verdict: &Verdict) {
    screen.section("Not seen", Ink::Strong);
    for sentence in verdict.not_seen.iter().take(NOT_SEEN_SHOWN) {
        screen.prose(0, 2, &format::clean(sentence));
    }
    more(screen, style, verdict.not_seen.len(), NOT_SEEN_SHOWN, "things: ullage report --json");
    // A proven cause leaves nothing to ask about the others.
    let proven = verdict
        .findings
        .first()
        .is_some_and(|f| f.severity == Severity::Fatal && f.status() == Status::Established);
    if proven {
        return;
    }
    let open = by_reason(&verdict.undetermined);
    for (because, causes) in open.iter().take(NOT_SEEN_SHOWN) {
        let which = match causes.split_last() {
            Some((last, [])) => format!("it was {last}"),
            Some((last, [one])) => format!("it was {one} or {last}"),
            Some((last, several)) => format!("it was one of {} or {last}", several.join(", ")),
            None => continue,
        };
        screen.prose(0, 2, &format!("Cannot tell whether {which}: {}.", because.trim_end_matches('.')));
    }
    let left = open.iter().skip(NOT_SEEN_SHOWN).map(|(_, causes)| causes.len()).sum::<usize>();
    more(screen, style, left + NOT_SEEN_SHOWN, NOT_SEEN_SHOWN, "open causes: ullage report --json");
}

/// Causes that cannot be told for the same reason: it is said once.
fn by_reason(undetermined: &[Undetermined]) -> Vec<(String, Vec<String>)> {
    let mut open: Vec<(String, Vec<String>)> = Vec::new();
    for one in undetermined {
        let (because, cause) = (format::clean(&one.because), format::clean(&one.cause));
        match open.iter_mut().find(|(known, _)| *known == because) {
            Some((_, causes)) => causes.push(cause),
            None => open.push((because, vec![cause])),
        }
    }
    open
}

fn cost(screen: &mut Screen, style: Style, verdict: &Verdict) {
    screen.section("Cost", Ink::Strong);
    let words = cost_words(verdict);
    if !words.is_empty() {
        screen.prose(0, 0, &style.paint(Ink::Quiet, &words));
    }
}

/// What the job marked and when torchrun started it again: the last ones, because a job that dies does so behind them.
fn moments(screen: &mut Screen, style: Style, verdict: &Verdict) {
    let marks = verdict.marks.iter().map(|mark| (mark.at, format::clean(&mark.text)));
    let attempts = verdict.attempts.iter().map(|attempt| (attempt.at, Attempt::sentence(attempt.number)));
    let mut moments: Vec<_> = marks.chain(attempts).collect();
    if moments.is_empty() {
        return;
    }
    moments.sort_by_key(|(at, _)| *at);
    screen.section("Moments", Ink::Strong);
    let shown = &moments[moments.len().saturating_sub(MOMENTS_SHOWN)..];
    for (at, text) in shown {
        screen.prose(0, 2, &format!("{}: {text}", format::at(*at)));
    }
    more(screen, style, moments.len(), shown.len(), "before these");
}

/// What `--fix` did and what watching cost; empty where nothing is known of it.
pub fn cost_words(verdict: &Verdict) -> String {
    let cpu = verdict.cost_cpu_share.map(|s| format!("{} of one core", format::share(s)));
    let memory = verdict.cost_peak_rss.map(|n| format!("{} of memory", format::bytes(n)));
    let costs: Vec<String> = cpu.into_iter().chain(memory).collect();
    let mut sentences = Vec::new();
    for fix in &verdict.fixes {
        sentences.push(format!("With --fix: {}.", format::clean(fix)));
    }
    if !costs.is_empty() {
        sentences.push(format!("Watching took {}.", costs.join(" and ")));
    }
    if verdict.cost_cpu_share.is_some_and(|share| share > Cost::SHARE) {
        sentences.push(format!(
            "It may take {} of one core, and {} s of CPU time more at the start.",
            format::share(Cost::SHARE),
            Cost::AT_THE_START_NS as f64 / 1e9
        ));
    }
    if !verdict.run.0.is_empty() && verdict.outcome.kind != OutcomeKind::NotStarted {
        sentences.push(format!("Recording: {}", format::clean(&verdict.run.0)));
    }
    sentences.join(" ")
}

/// Says how many were left out, where some were.
fn more(screen: &mut Screen, style: Style, all: usize, shown: usize, of_what: &str) {
    if all > shown {
        screen.prose(0, 2, &style.paint(Ink::Quiet, &format!("and {} more {of_what}", all - shown)));
    }
}
