//! Does a run show sigbus-file-truncated-or-netfs? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::space;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::{by_failure, finding};
use crate::rule::{Judgement, Rule};
use ullage_model::{FilesystemUse, Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    by_failure(analysis, |failure| match space::is_bus_error(failure) {
        true => faulted(analysis, failure),
        false => Ok(None),
    })
}

fn faulted(analysis: &Analysis, failure: &Failure) -> Result<Option<Finding>, String> {
    let Some(process) = failure.process else { return Ok(None) };
    let name = evidence::describe(process);
    if let Some(file) = analysis.timeline.short_file(process.id) {
        let mut evidence: Vec<_> = space::bus_error_sentence(failure).into_iter().collect();
        let sentence = format!(
            "It had mapped {} of {}, which now ends at {}: touching a page beyond raises SIGBUS.",
            evidence::bytes(file.mapped),
            file.path,
            evidence::bytes(file.length)
        );
        let source = evidence::Source::Process(process.id.pid, "maps and stat of the file");
        let met = evidence::number("mapped beyond the file", file.mapped, "bytes", source, file.at, sentence);
        evidence.insert(0, evidence::with_limit(met, file.length));
        let known = Proof::SeenOutside;
        return Ok(Some(finding(
            analysis,
            &RULE,
            failure,
            known,
            evidence,
            &analysis.remedy_context(Some(failure)),
        )));
    }
    let places = [FilesystemUse::Shm, FilesystemUse::Temporary, FilesystemUse::Work];
    let full = |used_for: &[FilesystemUse]| {
        space::fullest(analysis, used_for, failure, false)
            .filter(|(_, _, used, size)| space::is_full(*used, *size))
    };
    if full(&places[..1]).is_some() || full(&places[1..2]).is_some() || full(&places[2..]).is_some() {
        return Ok(None);
    }
    let Some((_, at, used, size)) = space::fullest(analysis, &places[..1], failure, false) else {
        return Err(format!("{name} was killed by SIGBUS, and /dev/shm could not be read"));
    };
    if let Some(because) = space::may_have_filled(analysis, &places[..1], failure, false) {
        return Err(because);
    }
    let mapped = process.mappings.filter(|(_, mappings)| mappings.data_file_bytes.0 > 0);
    let Some((counted, mappings)) = mapped else {
        return Err(format!(
            "{name} was killed by SIGBUS with room in /dev/shm and no data file mapped; the faulting mapping is unknown"
        ));
    };
    let mut evidence: Vec<_> = space::bus_error_sentence(failure).into_iter().collect();
    let sentence = format!(
        "/dev/shm had room: {} of {} in use, {}.",
        evidence::bytes(used),
        evidence::bytes(size),
        space::when(at, failure.at)
    );
    evidence.push(evidence::with_limit(
        evidence::number("/dev/shm bytes", used, "bytes", "statvfs /dev/shm", at, sentence),
        size,
    ));
    let sentence = format!(
        "It had {} of data files mapped {}; the faulting page belongs to one of them.",
        evidence::bytes(mappings.data_file_bytes.0),
        space::when(counted, failure.at)
    );
    let source = evidence::Source::Process(process.id.pid, "maps");
    let bytes = mappings.data_file_bytes.0;
    evidence.push(evidence::number("mapped data files", bytes, "bytes", source, counted, sentence));
    Ok(Some(finding(
        analysis,
        &RULE,
        failure,
        Proof::Estimated,
        evidence,
        &analysis.remedy_context(Some(failure)),
    )))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Never rewrite a mapped file: write a new one and rename it over the old",
            "numpy.save(\"data.npy.new.npy\", array)\nos.replace(\"data.npy.new.npy\", \"data.npy\")",
        ),
        Fix::new(
            "On a network filesystem: read the file instead of mapping it",
            "numpy.load(path)  # without mmap_mode\ntorch.load(path, mmap=False)",
        ),
        Fix::new(
            "Before mapping a sparse file: allocate it, so that a full disk fails there",
            "os.posix_fallocate(file.fileno(), 0, size)",
        ),
    ]
}
