//! What stands on the page, and where: each text escaped, each figure spelled as the reports spell it.

use crate::curves::{Count, Curves};
use crate::picture::{self, Layer, Scale};
use askama::Template;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use ullage_job_state::Point;
use ullage_model::{Finding, Limit, LimitKind, LimitState, MemorySummary, OutcomeKind, Severity, Verdict};
use ullage_report::{format, json as report_json, text};

pub(crate) const STYLE: &str =
    concat!(include_str!("../assets/page.css"), include_str!("../vendor/uplot/uPlot.min.css"));
const SCRIPT: &str =
    concat!(include_str!("../vendor/uplot/uPlot.iife.min.js"), "\n", include_str!("../assets/page.js"));
/// SHA-256 of the two, as a content policy has them; a test compares, and prints the right one.
pub(crate) const STYLE_HASH: &str = "2kwtoB660fVfmBTrNeOZ6DQGdF9UrPpw/VbKvsFuSMM=";
const SCRIPT_HASH: &str = "5hKNu6gZlS8C+2w01bdbR0psms6PRWwFgMC+MFU8ogA=";
/// A limit that is more than this often the peak lies above the plot: drawn in it, memory would be a line at the bottom.
const LIMIT_IN_SIGHT: u64 = 3;
/// Layers of the plot: as many as there are colours that differ clearly; the smallest categories are one of them.
const CATEGORIES: usize = 10;
const OTHER: &str = "other";
/// Findings with all that is known of them; the rest stands in the JSON.
const FINDINGS: usize = 8;

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    policy: String,
    style: &'static str,
    script: &'static str,
    headline: String,
    ink: &'static str,
    command: String,
    ending: String,
    run: String,
    findings: Vec<FindingWords>,
    memory: String,
    layers: Vec<Layer>,
    ticks: Vec<(f64, String)>,
    limit_lines: Vec<(f64, String)>,
    flag_places: Vec<f64>,
    from: String,
    to: String,
    parts: Vec<Part>,
    flags: Vec<(String, String)>,
    more_flags: u64,
    roles: Vec<RoleRow>,
    limits: Vec<[String; 5]>,
    counts: Vec<CountWords>,
    not_seen: Vec<String>,
    text: String,
    cost: String,
    version: &'a str,
    verdict: String,
    curves: String,
}

struct FindingWords {
    name: String,
    headline: String,
    standing: String,
    readings: Vec<String>,
    remedies: Vec<(String, String)>,
}

struct Part {
    ink: usize,
    name: String,
    bytes: String,
    share: String,
}

struct RoleRow {
    name: String,
    processes: u64,
    peak: String,
    last: String,
    line: String,
}

struct CountWords {
    title: &'static str,
    words: String,
}

/// The page of a run. `version`: of ullage, as it stands at the bottom.
pub fn render(verdict: &Verdict, curves: &Curves, version: &str) -> String {
    let mut curves = curves.clone();
    for finding in verdict.findings.iter().filter(|finding| finding.severity > Severity::Note) {
        if let Some(at) = finding.at {
            curves.flag(at, finding.title.clone());
        }
    }
    curves.flags.sort_by_key(|flag| flag.at);
    let stack = Stack::new(&curves, &verdict.memory);
    let limits = memory_limits(verdict);
    let page = page(verdict, &curves, &stack, &limits, version);
    // Every field is a string or a number: rendering into a string has nothing that could fail.
    page.render().unwrap_or_else(|error| format!("<!DOCTYPE html><title>ullage</title><p>{error}</p>"))
}

fn page<'a>(
    verdict: &Verdict,
    curves: &Curves,
    stack: &Stack,
    limits: &[(String, u64)],
    version: &'a str,
) -> Page<'a> {
    let scale = stack.scale(limits);
    let ticks = picture::ticks(scale.top as u64);
    let finite = |state: &&LimitState| !matches!(state.limit.as_known(), Some(Limit::Unlimited));
    let plain = text::Style::plain(80);
    Page {
        policy: format!(
            "default-src 'none'; script-src 'sha256-{SCRIPT_HASH}'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
        ),
        style: STYLE,
        script: SCRIPT,
        headline: capital(&text::headline(verdict)),
        ink: ink(verdict),
        command: format::command(&verdict.command),
        ending: text::outcome(&verdict.outcome, verdict.duration_s),
        run: match verdict.outcome.kind {
            OutcomeKind::NotStarted => String::new(),
            _ => format::clean(&verdict.run.0),
        },
        findings: verdict.findings.iter().take(FINDINGS).map(|finding| words(finding, plain)).collect(),
        memory: memory_words(&verdict.memory),
        layers: picture::layers(&stack.names, &stack.times, &stack.rows, &scale),
        ticks: ticks.iter().map(|tick| (scale.y(*tick as f64), format::bytes(*tick))).collect(),
        limit_lines: limits
            .iter()
            .filter(|(_, limit)| *limit as f64 <= scale.top)
            .map(|(name, limit)| (scale.y(*limit as f64), name.clone()))
            .collect(),
        flag_places: curves.flags.iter().map(|flag| scale.x(flag.at.seconds())).collect(),
        from: format::duration(scale.from),
        to: format::duration(scale.to),
        parts: parts(&stack.names, &verdict.memory),
        flags: curves.flags.iter().map(|flag| (format::at(flag.at), flag.text.clone())).collect(),
        more_flags: curves.more_flags,
        roles: roles(curves, &scale),
        limits: verdict.limits.iter().filter(finite).map(text::limit_row).collect(),
        counts: counts(curves),
        not_seen: verdict.not_seen.iter().map(|sentence| format::clean(sentence)).collect(),
        text: text::verdict(verdict, &plain),
        cost: text::cost_words(verdict),
        version,
        verdict: embedded(&report_json::verdict_text(verdict)),
        curves: embedded(&data(curves, stack, limits, &scale).to_string()),
    }
}

/// JSON that cannot end the element that it stands in.
pub(crate) fn embedded(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Memory over time: each row sums to what the job held, at most the peak.
struct Stack {
    names: Vec<String>,
    times: Vec<f64>,
    rows: Vec<Vec<u64>>,
}

impl Stack {
    /// The surprise: a reading with a wide error may lie above the peak, which is the largest of those that are certain. It is
    /// drawn at the peak, so that the largest value of the page is the verdict's.
    fn new(curves: &Curves, memory: &MemorySummary) -> Stack {
        let points = curves.memory.points();
        let mut largest: BTreeMap<&String, u64> = BTreeMap::new();
        for point in &points {
            for (name, bytes) in &point.of {
                let most = largest.entry(name).or_default();
                *most = (*most).max(*bytes);
            }
        }
        let mut names: Vec<String> = largest.keys().map(|name| (*name).clone()).collect();
        names.sort_by_key(|name| std::cmp::Reverse(largest[name]));
        if names.len() > CATEGORIES {
            names.truncate(CATEGORIES - 1);
            names.push(OTHER.into());
        }
        let rows = points.iter().map(|point| row(&names, point, memory.peak_bytes)).collect();
        Stack { names, times: points.iter().map(|point| point.at.seconds()).collect(), rows }
    }

    fn scale(&self, limits: &[(String, u64)]) -> Scale {
        let largest = self.rows.iter().map(|row| row.iter().sum::<u64>()).max().unwrap_or(0);
        let limit = limits.iter().map(|(_, limit)| *limit).max().unwrap_or(0);
        Scale {
            from: self.times.first().copied().unwrap_or(0.0),
            to: self.times.last().copied().unwrap_or(0.0),
            top: largest.max(limit) as f64 * 1.05,
        }
    }
}

fn row(names: &[String], point: &Point<BTreeMap<String, u64>>, peak: u64) -> Vec<u64> {
    let mut row: Vec<u64> = names.iter().map(|name| of_category(&point.of, names, name)).collect();
    let sum: u64 = row.iter().sum();
    let most = point.value.min(peak);
    if sum > most {
        let share = |bytes: u64| (u128::from(bytes) * u128::from(most) / u128::from(sum.max(1))) as u64;
        row.iter_mut().for_each(|bytes| *bytes = share(*bytes));
    }
    // What rounding took, and what is in no category.
    let rest = most.saturating_sub(row.iter().sum());
    if let Some(first) = row.first_mut() {
        *first += rest;
    }
    row
}

/// Bytes of a category; of `OTHER` those of all that have no layer of their own.
fn of_category(categories: &BTreeMap<String, u64>, names: &[String], name: &str) -> u64 {
    let own = categories.get(name).copied().unwrap_or(0);
    if name != OTHER {
        return own;
    }
    let rest = categories.iter().filter(|(other, _)| !names.contains(other)).map(|(_, bytes)| bytes);
    rest.fold(own, |sum, bytes| sum.saturating_add(*bytes))
}

/// Limits of memory that can be drawn beside the peak: their names and bytes.
fn memory_limits(verdict: &Verdict) -> Vec<(String, u64)> {
    let of_memory = [LimitKind::CgroupMemory, LimitKind::MemoryBudget, LimitKind::HostMemory];
    let most = verdict.memory.peak_bytes.saturating_mul(LIMIT_IN_SIGHT);
    let mut seen = BTreeSet::new();
    let limits = verdict.limits.iter().filter(|state| of_memory.contains(&state.kind));
    limits
        .filter_map(|state| {
            let bytes = state.limit.as_known()?.at()?;
            let name = format!("limit: {}", state.kind.name());
            (bytes <= most && seen.insert(bytes)).then_some((name, bytes))
        })
        .collect()
}

fn words(finding: &Finding, plain: text::Style) -> FindingWords {
    let headline = format::clean(&finding.headline);
    FindingWords {
        name: format::clean(&finding.title),
        headline: if finding.headline == finding.title { String::new() } else { headline },
        standing: text::standing(finding),
        readings: finding.evidence.iter().map(|evidence| text::evidence_words(plain, evidence)).collect(),
        remedies: finding
            .fixes
            .iter()
            .map(|fix| (format::clean(&fix.title), format::clean_lines(&fix.command)))
            .collect(),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn ink(verdict: &Verdict) -> &'static str {
    match verdict.findings.first().map(|finding| finding.severity) {
        Some(Severity::Fatal) => "bad",
        Some(Severity::Warning) => "warn",
        _ if verdict.healthy => "good",
        _ => "",
    }
}

fn memory_words(memory: &MemorySummary) -> String {
    match memory.peak_bytes {
        0 => "The job was over before its memory was read.".into(),
        peak => format!(
            "At its peak the job held {}. {}.",
            format::bytes(peak),
            capital(&format::clean(&memory.source))
        ),
    }
}

fn parts(names: &[String], memory: &MemorySummary) -> Vec<Part> {
    let peak = memory.peak_bytes.max(1) as f64;
    let of = |(ink, name): (usize, &String)| {
        let bytes = of_category(&memory.categories, names, name);
        Part {
            ink: ink % 10,
            name: format::clean(name),
            bytes: format::bytes(bytes),
            share: format::share(bytes as f64 / peak),
        }
    };
    names.iter().enumerate().map(of).collect()
}

fn roles(curves: &Curves, scale: &Scale) -> Vec<RoleRow> {
    let mut rows: Vec<(u64, RoleRow)> = Vec::new();
    for (name, series) in &curves.roles {
        let points = series.points();
        let (Some(peak), Some(last)) = (points.iter().max_by_key(|point| point.value), points.last()) else {
            continue;
        };
        rows.push((
            peak.value,
            RoleRow {
                name: format::clean(name),
                processes: peak.of,
                peak: format::bytes(peak.value),
                last: format::bytes(last.value),
                line: picture::line(&points, scale.from, scale.to),
            },
        ));
    }
    rows.sort_by_key(|(peak, _)| std::cmp::Reverse(*peak));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Those that were ever more than nothing, in the order of the page.
fn drawn(curves: &Curves) -> impl Iterator<Item = &Count> {
    curves.counts.iter().filter(|count| count.series.points().iter().any(|point| point.value > 0))
}

fn counts(curves: &Curves) -> Vec<CountWords> {
    let mut words = Vec::new();
    for count in drawn(curves) {
        let points = count.series.points();
        let Some(peak) = points.iter().max_by_key(|point| point.value) else { continue };
        let said = format!(
            "At most {}, at {}.",
            format::quantity(peak.value, count.unit),
            format::duration(peak.at.seconds())
        );
        words.push(CountWords { title: count.title, words: said });
    }
    words
}

/// What the script draws from.
fn data(curves: &Curves, stack: &Stack, limits: &[(String, u64)], scale: &Scale) -> serde_json::Value {
    let seconds = |at: f64| (at * 100.0).round() / 100.0;
    let of_category = |n: usize| stack.rows.iter().map(|row| row[n]).collect::<Vec<_>>();
    let counts = drawn(curves).map(|count| {
        let points = count.series.points();
        let at: Vec<f64> = points.iter().map(|point| seconds(point.at.seconds())).collect();
        let values: Vec<u64> = points.iter().map(|point| point.value).collect();
        json!({"unit": count.unit, "at": at, "values": values})
    });
    json!({
        "from": scale.from,
        "to": scale.to,
        "top": scale.top,
        "memory": {
            "at": stack.times.iter().map(|at| seconds(*at)).collect::<Vec<_>>(),
            "names": stack.names,
            "bytes": (0..stack.names.len()).map(of_category).collect::<Vec<_>>(),
        },
        "limits": limits,
        "flags": curves.flags.iter().map(|flag| (flag.at.seconds(), &flag.text)).collect::<Vec<_>>(),
        "counts": counts.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use ullage_model::{At, MemoryAt, ProcessId};
    use ullage_testing::{process, SampleBuilder};

    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte))
                << (8 * (3 - chunk.len()));
            for n in 0..4 {
                let letter = LETTERS[(group >> (18 - 6 * n) & 63) as usize] as char;
                text.push(if n > chunk.len() { '=' } else { letter });
            }
        }
        text
    }

    #[test]
    fn the_content_policy_allows_what_is_on_the_page() {
        for (what, content, hash) in [("STYLE_HASH", STYLE, STYLE_HASH), ("SCRIPT_HASH", SCRIPT, SCRIPT_HASH)]
        {
            assert_eq!(hash, base64(&Sha256::digest(content)), "{what} in page.rs");
            assert!(!content.contains("</"), "{what}: it would end its element");
        }
    }

    fn verdict(memory: MemorySummary) -> Verdict {
        Verdict {
            run: ullage_model::RunId("20261125-010203-train-7".into()),
            command: vec!["python".into(), "train.py".into()],
            outcome: ullage_model::Outcome::of(OutcomeKind::Exit),
            healthy: true,
            findings: Vec::new(),
            limits: Vec::new(),
            memory,
            growth: None,
            first_failure: None,
            segments: None,
            undetermined: Vec::new(),
            not_seen: Vec::new(),
            fixes: Vec::new(),
            cost_cpu_share: None,
            cost_peak_rss: None,
            marks: Vec::new(),
            attempts: Vec::new(),
            duration_s: Some(3.0),
        }
    }

    fn curves(readings: &[(u64, &[(&str, u64)])]) -> Curves {
        let mut curves = Curves::default();
        for (n, (bytes, categories)) in readings.iter().enumerate() {
            let at = At::from_seconds(n as f64);
            let id = ProcessId { pid: 7, start: ullage_model::ClockTicks(1) };
            let sample = SampleBuilder::at(n as f64).process(process(7).start(1)).build();
            let categories = categories.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
            let memory =
                MemoryAt { at, bytes: *bytes, categories, own: vec![(id, *bytes)], ..MemoryAt::default() };
            curves.sample(&sample, &memory, |_| "main".into());
        }
        curves
    }

    fn summary(peak_bytes: u64) -> MemorySummary {
        MemorySummary { peak_bytes, source: "test".into(), ..MemorySummary::default() }
    }

    #[test]
    fn the_largest_value_is_the_peak_of_the_verdict() {
        let curves = curves(&[
            (10, &[("malloc", 4), ("file", 6)]),
            (900, &[("malloc", 500), ("file", 100)]),
            (40, &[]),
        ]);
        let stack = Stack::new(&curves, &summary(700));
        let sums: Vec<u64> = stack.rows.iter().map(|row| row.iter().sum()).collect();
        assert_eq!(sums, [10, 700, 40]);
        assert_eq!(stack.names, ["malloc", "file"]);
    }

    #[test]
    fn hostile_text_is_no_markup() {
        let hostile = "</script><script>alert(1)</script>\u{1b}[31m\"'&amp;";
        let mut verdict = verdict(summary(10));
        verdict.command = vec![hostile.into()];
        verdict.not_seen = vec![hostile.into()];
        let mut curves = curves(&[(10, &[(hostile, 10)])]);
        curves.flag(At(0), hostile.into());
        let page = render(&verdict, &curves, "0");
        assert_eq!(page.matches("<script").count(), 3);
        assert_eq!(page.matches("</script").count(), 3);
        assert!(!page.contains("alert(1)</") && !page.contains('\u{1b}'));
    }

    #[test]
    fn a_run_without_readings_has_a_page() {
        let page = render(&verdict(summary(0)), &Curves::default(), "0");
        assert!(page.contains("over before its memory was read"), "{page}");
        assert!(!page.contains("<polygon"));
    }
}
