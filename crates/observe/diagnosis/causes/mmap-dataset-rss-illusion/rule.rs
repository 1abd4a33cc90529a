//! Does a run show mmap-dataset-rss-illusion? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::growth_class::loaded;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::LATE_FILES_BYTES;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Fix, GrowthClass, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let all: Vec<_> =
        analysis.timeline.processes().filter_map(|process| touched(analysis, process)).collect();
    let Some((most, at, by)) = all.iter().copied().max_by(|a, b| a.2.total_cmp(&b.2)) else {
        return Judgement::Nothing;
    };
    let private = most.anonymous.peak().map_or(0.0, |(_, bytes)| bytes);
    let others = match all.len() {
        1 => String::new(),
        number => format!(
            " {} more read it too: their resident sizes count {}, memory holds it once.",
            evidence::plural(number as u64 - 1, "process", "processes"),
            evidence::bytes(all.iter().map(|(.., by)| *by).sum::<f64>() as u64)
        ),
    };
    let sentence = format!(
        "{} of the resident size of {} is mapped files, which the kernel can take back (private: {}).{others}",
        evidence::bytes(by as u64),
        evidence::describe(most),
        evidence::bytes(private as u64)
    );
    let source = evidence::Source::Process(most.id.pid, "status");
    let evidence = evidence::number("mapped files", by as u64, "bytes", source, at, sentence);
    let known = Proof::SeenOutside;
    let mut finding = of_job(&RULE, Severity::Note, known, vec![evidence], &analysis.remedy_context(None));
    finding.process = Some(evidence::process_ref(most));
    Judgement::one(finding)
}

/// A process that touched much of a mapped data file: when it had most of it, and how much that was.
fn touched<'a>(analysis: &Analysis, process: &'a ProcessHistory) -> Option<(&'a ProcessHistory, At, f64)> {
    let (at, most) = process.files.peak()?;
    let before = process.files.at_or_before(At::from_seconds(loaded(process)));
    let by = most - before.or(process.files.first())?.1;
    // Mappings are counted rarely: a file may have become longer since. Libraries that come slowly are no data.
    let data = process.mappings.map_or(0.0, |(_, mappings)| mappings.data_file_bytes.0 as f64);
    let rose = analysis.growth.as_ref().is_some_and(|(growth, _)| {
        let of_it = growth.process.as_ref().is_some_and(|grown| grown.id == process.id);
        of_it && growth.class == GrowthClass::MappedFiles
    });
    (by >= LATE_FILES_BYTES as f64 && data > 0.0 && (data >= by || rose)).then_some((process, at, by))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Nothing to do: watch private memory instead",
            "grep -E 'RssAnon|RssFile|RssShmem' /proc/PID/status",
        ),
        Fix::new(
            "If resident sizes are counted: drop the pages after each pass",
            "array._mmap.madvise(mmap.MADV_DONTNEED)  # array: a numpy.memmap that is only read",
        ),
    ]
}
