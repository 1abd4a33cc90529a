//! Does a run show large-preallocation-lazy-touch? page.md says what that is, and how it differs from its look-alikes.

use super::thp_always_rss_bloat;
use crate::analysis::growth_class::{loaded, start};
use crate::analysis::retained::{has_arrow, taken, taken_at_peak};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::given::{ARENA_BYTES, MIB};
use crate::policy::growth::{
    GROWTH_WARN_BYTES, TOUCHED_AFTER_S, TOUCHED_MADE, TOUCHED_SEEN, TOUCHED_SHARE, TOUCHED_STILL,
    TOUCHED_TAKEN,
};
use crate::policy::sizes::MOST;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use crate::trend::{rise, Rise};
use ullage_model::{At, Evidence, Fact, Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    if thp_always_rss_bloat::is_reported(analysis) {
        return Judgement::Nothing;
    }
    let found = analysis.timeline.processes().filter_map(|process| touched(analysis, process));
    // A buffer that the program touches as it starts is what this cause's remedy asks for.
    let later = found.filter(|(process, rise, _)| {
        rise.until > loaded(process) + start(analysis, process.last_seen.since(process.first_seen))
    });
    let Some((process, rise, said)) = later.max_by(|a, b| a.1.by.total_cmp(&b.1.by)) else {
        return Judgement::Nothing;
    };
    let at = At::from_seconds(rise.since);
    let space =
        process.virtual_size.at_or_before(At::from_seconds(rise.until)).map_or(0.0, |(_, bytes)| bytes);
    let sentence = format!(
        "{} touched {} of a buffer it already had, in {}; its address space stayed at {}.",
        evidence::capital(&evidence::describe(process)),
        evidence::bytes(rise.by as u64),
        evidence::seconds(rise.until - rise.since),
        evidence::bytes(space as u64)
    );
    let source = evidence::Source::Process(process.id.pid, "status");
    let mut evidence =
        vec![evidence::number("private memory", rise.by as u64, "bytes", source, at, sentence)];
    let known = if said.is_some() { Proof::Estimated } else { Proof::Consistent };
    evidence.extend(said.map(|said| reported(process, &rise, said)));
    let mut finding = of_job(&RULE, Severity::Note, known, evidence, &analysis.remedy_context(None));
    finding.process = Some(evidence::process_ref(process));
    Judgement::one(finding)
}

/// What rises in a process is a buffer that it had from the beginning, also where it does so as it starts.
pub(super) fn touches(analysis: &Analysis, process: &ProcessHistory) -> bool {
    touched(analysis, process).is_some()
}

/// What malloc had when it began and when it was over, and private memory at these moments.
type Said = ((f64, f64), (f64, f64));

fn touched<'a>(
    analysis: &Analysis,
    process: &'a ProcessHistory,
) -> Option<(&'a ProcessHistory, Rise, Option<Said>)> {
    let private = process.private();
    let rise = rise(&private, loaded(process), GROWTH_WARN_BYTES as f64)?;
    // It may have been made when the rise had begun already: a part of its time had passed, or of its bytes had come. Of the
    // latter it is the first reading that shows it: the one before may be older than the buffer.
    let by_time = rise.since + TOUCHED_MADE * (rise.until - rise.since);
    let since = private.at_or_before(At::from_seconds(rise.since.max(0.0))).or(private.first())?.1;
    let most = private.peak().map_or(0.0, |(_, bytes)| bytes);
    let by_bytes = private.points().find(|(_, bytes)| *bytes > since + TOUCHED_MADE * (most - since));
    let by_bytes = by_bytes.filter(|(_, bytes)| most - bytes >= MOST * (most - since));
    let begins = [Some(by_time), by_bytes.map(|(at, _)| at.seconds())];
    let said =
        begins.into_iter().flatten().find_map(|begin| touched_since(analysis, process, &rise, begin))?;
    Some((process, rise, said))
}

/// Whether a buffer that was there at this moment is most of what came then, and what malloc said of it.
fn touched_since(
    analysis: &Analysis,
    process: &ProcessHistory,
    rise: &Rise,
    begin: f64,
) -> Option<Option<Said>> {
    let (private, end) = (process.private(), process.last_seen);
    let most = private.peak().map_or(0.0, |(_, bytes)| bytes);
    let begin_at = At::from_seconds(begin.max(0.0));
    let by = most - private.at_or_before(begin_at).or(private.first())?.1;
    let before = process.virtual_size.at_or_before(begin_at).or(process.virtual_size.first())?.1;
    // What came in one step came between two readings.
    let after = process.virtual_size.peak_between(begin_at, end)?.1;
    // An address space that was never read holds nothing.
    if by < (GROWTH_WARN_BYTES as f64).max(TOUCHED_SHARE * most)
        || after - before > TOUCHED_STILL * by
        || before < by
    {
        return None;
    }
    // A look that came before the buffer was made, or too early to see what was touched, knows nothing of it.
    let was_there = |reading: &(f64, f64, f64)| {
        let space = process.virtual_size.at_or_before(At::from_seconds(reading.2));
        space.is_some_and(|(_, space)| before - space <= TOUCHED_STILL * by)
    };
    let first = taken(&process.memory_readings, begin).filter(was_there);
    let plain = |(taken, private, _)| (taken, private);
    let last = taken_at_peak(&process.memory_readings, begin, rise.until + TOUCHED_AFTER_S);
    let said = first.map(plain).zip(last.map(plain));
    match said.filter(|(before, after)| after.1 - before.1 >= TOUCHED_SEEN * by) {
        Some((before, after)) => {
            let silent = allocator(analysis).is_some_and(|name| name.contains("mimalloc"));
            let same = after.0 - before.0 <= TOUCHED_TAKEN * by;
            (same && !silent).then_some(Some((before, after)))
        }
        None => {
            let threads = process.threads.peak().map_or(1.0, |(_, threads)| threads);
            let allocators = allocator(analysis).or(analysis.variable("LD_PRELOAD")).unwrap_or_default();
            // Arrow's own takes address space by the gigabyte.
            if has_arrow(&process.memory_readings) {
                return None;
            }
            (by > ARENA_BYTES * (threads + 1.0) && !allocators.contains("malloc")).then_some(None)
        }
    }
}

/// Who is in malloc's place.
fn allocator<'a>(analysis: &'a Analysis) -> Option<&'a str> {
    analysis.timeline.inside().get("loaded.allocator").and_then(Fact::text)
}

fn reported(process: &ProcessHistory, rise: &Rise, (before, after): Said) -> Evidence {
    let open = (after.0 - after.1).max(0.0);
    let more = match open >= MIB as f64 {
        true => format!(" At least {} was still untouched at the end.", evidence::bytes(open as u64)),
        false => String::new(),
    };
    let sentence = format!(
        "malloc held {} before and {} after: nothing new was allocated.{more}",
        evidence::bytes(before.0 as u64),
        evidence::bytes(after.0 as u64)
    );
    let (source, at) = (evidence::Source::Agent(process.id.pid), At::from_seconds(rise.until));
    evidence::number("memory of malloc", after.0 as u64, "bytes", source, at, sentence)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Touch all of it at the start: a buffer that does not fit then fails at once",
            "buffer = numpy.zeros(shape, numpy.uint8)\nbuffer.fill(0)",
        ),
        Fix::new(
            "Or make it smaller: bytes instead of floats, each frame once",
            "frames = numpy.zeros((count, 84, 84), numpy.uint8)  # stack four of them when a batch is made",
        ),
        Fix::new(
            "Or put it into a file, whose pages the kernel can take back",
            "frames = numpy.memmap(path, numpy.uint8, \"w+\", shape=(count, 84, 84))",
        ),
    ]
}
