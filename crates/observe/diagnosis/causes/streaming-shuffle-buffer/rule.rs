//! Does a run show streaming-shuffle-buffer? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::memory::BUFFER_NOTE_BYTES;
use crate::policy::sizes::{BUFFER_PART, NOTE_PART};
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Fix, Place, Proof, Severity, TorchCount};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let all: Vec<(&ProcessHistory, At, &TorchCount)> = analysis
        .timeline
        .processes()
        .filter_map(|process| {
            let (at, buffer) = process.torch_counters.latest("shuffle-buffer")?;
            Some((process, at, buffer))
        })
        .collect();
    // Those that were there at one time: the workers of the next epoch are others.
    let alive = |at: At| {
        let lived =
            move |process: &&ProcessHistory| (process.first_seen..=process.last_seen.max(at)).contains(&at);
        all.iter().filter(move |(process, reported, _)| lived(process) && *reported <= at)
    };
    let held =
        |at: At| alive(at).map(|(_, _, buffer)| buffer.bytes.unwrap_or(0)).fold(0, u64::saturating_add);
    let Some((at, bytes)) =
        all.iter().map(|(_, at, _)| (*at, held(*at))).max_by_key(|(at, bytes)| (*bytes, *at))
    else {
        return Judgement::Nothing;
    };
    let Some((process, _, most)) = alive(at).max_by_key(|(_, _, buffer)| buffer.bytes) else {
        return Judgement::Nothing;
    };
    let peak = analysis.timeline.memory().peak_bytes;
    let severity = match analysis.ran_out {
        true if bytes.saturating_mul(BUFFER_PART) >= peak => Severity::Warning,
        _ if bytes >= BUFFER_NOTE_BYTES && bytes.saturating_mul(NOTE_PART) >= peak => Severity::Note,
        _ => return Judgement::Nothing,
    };
    let number = alive(at).count() as u64;
    let place = if most.name.is_empty() { String::new() } else { format!(" in {}", most.name) };
    let sentence = format!(
        "{} held {} in shuffle buffers; that of {} had {} samples of {} each{place}.",
        evidence::capital(&evidence::plural(number, "process", "processes")),
        evidence::bytes(bytes),
        evidence::describe(process),
        evidence::count(most.count),
        evidence::bytes(most.bytes.unwrap_or(0) / most.count.max(1))
    );
    let source = evidence::Source::Agent(process.id.pid);
    let evidence = evidence::number("shuffle buffers", bytes, "bytes", source, at, sentence);
    Judgement::one(of_process(analysis, &RULE, severity, Proof::Estimated, vec![evidence], process))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Shuffle small samples: before you decode them",
            "dataset = dataset.shuffle(5000).map(decode)  # not .map(decode).shuffle(5000)",
        ),
        Fix::new(
            "Or use a smaller buffer, with the shards in random order",
            "random.shuffle(shards)\ndataset = dataset.shuffle(500)",
        ),
        Fix::new("Or run fewer workers: each has its own buffer", "DataLoader(dataset, num_workers=2)")
            .only(Place::Loader),
    ]
}
