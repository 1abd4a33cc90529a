//! Does a run show sampler-index-lists? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::given::LISTED_INT_BYTES;
use crate::policy::memory::{BUFFER_NOTE_BYTES, LIST_PART};
use crate::policy::sizes::WARN_PART;
use crate::rule::finding::{no_memory_in, of_process};
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Fix, LoaderSettings, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    match no_memory_in(analysis, &RULE, "making a sampler's list of indices", in_sampler, |_| None) {
        Judgement::Found(found) => Judgement::Found(found),
        _ => known_length(analysis),
    }
}

/// A sampler is asked for its first index, for which it lists or shuffles them all: torch's own, or by a loader whichever it is.
fn in_sampler(failure: &Failure) -> bool {
    failure.passes("torch/utils/data/sampler.py")
        || failure.calls("torch/utils/data/dataloader.py", &["_next_index"])
}

/// The agent knows the sampler, and how long its list is.
fn known_length(analysis: &Analysis) -> Judgement {
    let lists = analysis.timeline.processes().filter_map(|process| {
        let (settings, length) = longest(process)?;
        let bytes = length.saturating_mul(LISTED_INT_BYTES);
        let (rise, at) = rise(analysis, process)?;
        let filled = rise >= bytes / 2 || (analysis.ran_out && rise >= bytes / LIST_PART);
        (bytes >= BUFFER_NOTE_BYTES && filled).then_some((bytes, at, length, settings, process))
    });
    let Some((bytes, at, length, settings, process)) = lists.max_by_key(|(bytes, at, ..)| (*bytes, *at))
    else {
        return Judgement::Nothing;
    };
    let tenth = bytes.saturating_mul(WARN_PART) >= analysis.timeline.memory().peak_bytes;
    let severity = if tenth && analysis.ran_out { Severity::Warning } else { Severity::Note };
    let sentence = format!(
        "The sampler over {} lists {} every epoch in {}: about {}, {LISTED_INT_BYTES} bytes each.",
        settings.dataset.as_deref().unwrap_or("the dataset"),
        evidence::plural(length, "index", "indices"),
        evidence::describe(process),
        evidence::bytes(bytes)
    );
    let source = evidence::Source::Agent(process.id.pid);
    let evidence = evidence::number("list of indices", bytes, "bytes", source, at, sentence);
    Judgement::one(of_process(analysis, &RULE, severity, Proof::Estimated, vec![evidence], process))
}

fn longest(process: &ProcessHistory) -> Option<(&LoaderSettings, u64)> {
    let lists = process.iterators.iter().filter_map(|(settings, _)| Some((settings, settings.index_list?)));
    lists.max_by_key(|(_, length)| *length)
}

/// By how much its anonymous memory rose after it began to make its last loader, and when it was highest. The list is made
/// within a second or two: the kernel's line says what was there when it killed the process.
fn rise(analysis: &Analysis, process: &ProcessHistory) -> Option<(u64, At)> {
    let made = process.loader_at?;
    let (_, before) = process.anonymous.at_or_before(made).or_else(|| process.anonymous.first())?;
    let (at, peak) = process.anonymous.peak()?;
    let of_process =
        analysis.oom_victims.iter().filter(|victim| victim.process.is_some_and(|it| it.id == process.id));
    let killed = of_process.filter_map(|victim| Some((victim.at, victim.line?.anonymous as f64)));
    let (at, peak) = killed.chain([(at, peak)]).max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(((peak - before).max(0.0) as u64, at))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Shuffle an array: 8 bytes per sample instead of 40",
            "class Shuffled(torch.utils.data.Sampler):\n    def __init__(self, length):\n        self.length = length\n    \
                      def __len__(self):\n        return self.length\n    \
                      def __iter__(self):\n        for block in torch.randperm(self.length).split(10_000):\n            \
                      yield from block.tolist()\n\
                      DataLoader(dataset, sampler=Shuffled(len(dataset)), num_workers=4)",
        )
        ,
        Fix::new(
            "Several ranks: shuffle only its own share in each",
            "DataLoader(torch.utils.data.Subset(dataset, range(rank, len(dataset), world_size)), sampler=..., num_workers=4)",
        )
        .only(Place::Loader),
    ]
}
