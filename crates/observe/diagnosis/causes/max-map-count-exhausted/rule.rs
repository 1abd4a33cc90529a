//! Does a run show max-map-count-exhausted? page.md says what that is, and how it differs from its look-alikes.

use crate::policy::given::{PAGE_BYTES, SHARED_A_SECOND};
use crate::policy::limits::{counted_at_limit, reaches, FAR_FROM_LIMIT};
use crate::policy::machine::SHM_NEARLY_FULL;
use crate::trend::{reach, representative_reading, Reach};

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::rule::finding::{by_failure, finding, proof_of};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Evidence, Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let machine_limit = analysis.machine().max_map_count.known();
    by_failure(analysis, |failure| {
        if matches!(failure.symptom(), Symptom::NoMemory | Symptom::NoTask) {
            Ok(counted(analysis, failure, machine_limit))
        } else if failure.unexplained_end() {
            let known = |_: &String| failure.process.is_some();
            match read(analysis, failure, machine_limit) {
                Err(because) => Some(because).filter(known).map_or(Ok(None), Err),
                found => found,
            }
        } else {
            Ok(None)
        }
    })
}

/// With the agent: the counts at the exception, else its text beside the last reading.
fn counted(analysis: &Analysis, failure: &Failure, machine_limit: Option<u64>) -> Option<Finding> {
    let counts = failure.counts()?;
    let limit = counts.max_map_count.or(machine_limit)?;
    let process = failure.process;
    let name = process.map_or_else(|| "the process".to_owned(), evidence::describe);
    let torch_segment = failure.text().contains("unable to mmap") && failure.text().contains("/torch_");
    let (known, mut evidence) = match counts.mappings {
        Some(mappings) if counted_at_limit(mappings, limit) => {
            let sentence = format!(
                "{} had {} of {} (vm.max_map_count) at the exception{}.",
                evidence::capital(&name),
                evidence::count(mappings),
                evidence::plural(limit, "mapping", "mappings"),
                if mappings > limit { "; the kernel refuses the next one" } else { "" }
            );
            let source = failure.agent_source();
            let met = evidence::number("mappings", mappings, "mappings", source, failure.at, sentence);
            (Proof::SeenInside, vec![evidence::with_limit(met, limit)])
        }
        Some(_) if !torch_segment => return None,
        // After the stack was unwound segments may be gone again; a few percent still tell the limit.
        Some(mappings) if !reaches(FAR_FROM_LIMIT, mappings, limit) => return None,
        _ => {
            let (how, met) = around(failure, limit, &name)?;
            if !torch_segment && how != Reach::Met {
                return None;
            }
            (proof_of(how), met)
        }
    };
    let torch = counts.mappings_torch.or_else(|| Some(process?.mappings?.1.torch_shared));
    let others = process.and_then(|process| others(process, torch));
    evidence.extend(torch.and_then(|torch| torch_sentence(failure, torch)));
    evidence.extend(others.iter().map(|others| others.sentence(process)));
    evidence.extend(shm_sentence(analysis, failure));
    evidence.extend(sharing::exception_sentence(failure));
    evidence.extend(sharing::loader_sentence(failure));
    let context = analysis.remedy_context(Some(failure));
    let mut finding = finding(analysis, &RULE, failure, known, evidence, &context);
    if let Some(others) = others {
        finding.fixes = others.fixes(&context);
    }
    Some(finding)
}

/// Mappings that are not torch's segments, where those are most.
struct Others {
    at: At,
    kind: OtherKind,
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherKind {
    Files,
    Anonymous,
    Shared,
}

fn others(process: &ProcessHistory, torch: Option<u64>) -> Option<Others> {
    let (at, mappings) = process.mappings?;
    let torch = torch.unwrap_or(0).max(mappings.torch_shared);
    let kinds = [
        (mappings.file, OtherKind::Files),
        (mappings.anonymous, OtherKind::Anonymous),
        (mappings.other_shared, OtherKind::Shared),
    ];
    let (count, kind) = kinds.into_iter().max_by_key(|(count, _)| *count)?;
    (count > torch).then_some(Others { at, kind, count })
}

impl Others {
    fn sentence(&self, process: Option<&ProcessHistory>) -> Evidence {
        let what = match self.kind {
            OtherKind::Files => "mapped files",
            OtherKind::Anonymous => "anonymous memory",
            OtherKind::Shared => "shared memory of others than torch",
        };
        let sentence = format!("{} of these mappings are {what}.", evidence::count(self.count));
        let source = evidence::Source::Process(process.map_or(0, |process| process.id.pid), "maps");
        evidence::number("mappings of one kind", self.count, "mappings", source, self.at, sentence)
    }

    fn fixes(&self, context: &RemedyContext) -> Vec<Fix> {
        let files = Fix::new(
            "Read small files instead of mapping each, or merge them into few",
            "array = numpy.load(path)  # without mmap_mode\ntable = pyarrow.parquet.read_table(path, memory_map=False)",
        );
        let of_kind = (self.kind == OtherKind::Files).then_some(files);
        of_kind.into_iter().chain([raise_limit(context)]).collect()
    }
}

/// Without the agent: the last count before the process ended.
fn read(
    analysis: &Analysis,
    failure: &Failure,
    machine_limit: Option<u64>,
) -> Result<Option<Finding>, String> {
    let Some(process) = failure.process else { return Ok(None) };
    let Some(limit) = machine_limit else {
        return Err("vm.max_map_count could not be read".into());
    };
    let name = evidence::describe(process);
    match reach(&process.mapping_count, limit, failure.at, SHARED_A_SECOND) {
        how @ (Reach::Met | Reach::Projected) => {
            let Some((_, mut evidence)) = around(failure, limit, &name) else { return Ok(None) };
            let torch = process.mappings.map_or(0, |(_, mappings)| mappings.torch_shared);
            evidence.extend(torch_sentence(failure, torch));
            evidence.extend(shm_sentence(analysis, failure));
            let proof = proof_of(how);
            Ok(Some(finding(
                analysis,
                &RULE,
                failure,
                proof,
                evidence,
                &analysis.remedy_context(Some(failure)),
            )))
        }
        Reach::Possible => Err(match process.mapping_count.last() {
            Some((at, value)) => format!(
                "{name} ended on its own, {} after it had {} of {} mappings, and reported no exception",
                evidence::seconds(failure.at.since(at)),
                evidence::count(value as u64),
                evidence::count(limit)
            ),
            None => {
                format!("{name} ended on its own before its mappings were counted, and reported no exception")
            }
        }),
        Reach::Excluded => Ok(None),
    }
}

fn around(failure: &Failure, limit: u64, name: &str) -> Option<(Reach, Vec<Evidence>)> {
    let process = failure.process?;
    let (at, value) = representative_reading(&process.mapping_count, failure.at)?;
    let how = reach(&process.mapping_count, limit, failure.at, 0.0);
    let growth = match (how, process.mapping_count.rate_at_end()) {
        (Reach::Projected, Some(rate)) => {
            format!(", growing by {} a second", evidence::count(rate.max(0.0) as u64))
        }
        (Reach::Met, _) => String::new(),
        _ => return None,
    };
    let sentence = format!(
        "{} had {} of {} (vm.max_map_count){growth}, {} before it ended.",
        evidence::capital(name),
        evidence::count(value as u64),
        evidence::plural(limit, "mapping", "mappings"),
        evidence::seconds(failure.at.since(at)),
    );
    let source = evidence::Source::Process(process.id.pid, "maps");
    let met = evidence::number("mappings", value as u64, "mappings", source, at, sentence);
    Some((how, vec![evidence::with_limit(met, limit)]))
}

fn torch_sentence(failure: &Failure, torch: u64) -> Option<Evidence> {
    if torch == 0 {
        return None;
    }
    let each = asked_bytes(&failure.text()).filter(|bytes| *bytes < PAGE_BYTES).map_or_else(
        || "Each takes at least a page of 4 KiB".to_owned(),
        |bytes| format!("The failed one asked for {bytes} bytes; each takes a whole page of 4 KiB"),
    );
    let source = match failure.exception {
        Some(_) => failure.agent_source(),
        None => evidence::Source::Process(failure.process.map_or(0, |process| process.id.pid), "maps"),
    };
    let at = match (failure.exception, failure.process.and_then(|process| process.mappings)) {
        (None, Some((at, _))) => at,
        _ => failure.at,
    };
    let sentence = format!(
        "{} of these mappings are torch's shared segments, one per tensor. {each}.",
        evidence::count(torch)
    );
    Some(evidence::number("mappings of torch's segments", torch, "mappings", source, at, sentence))
}

fn shm_sentence(analysis: &Analysis, failure: &Failure) -> Option<Evidence> {
    let (used, size, at, source) = sharing::shm(analysis, failure)?;
    if size.is_some_and(|size| reaches(SHM_NEARLY_FULL, used, size)) {
        return None;
    }
    let whole = size.map_or("no limit".to_owned(), evidence::bytes);
    let sentence = format!("/dev/shm was not full: {} of {whole} in use.", evidence::bytes(used));
    let evidence = evidence::number("/dev/shm in use", used, "bytes", source, at, sentence);
    Some(match size {
        Some(size) => evidence::with_limit(evidence, size),
        None => evidence,
    })
}

/// `320` of `unable to mmap 320 bytes`.
fn asked_bytes(text: &str) -> Option<u64> {
    let rest = &text[text.find("unable to mmap ")? + "unable to mmap ".len()..];
    rest.split(' ').next()?.parse().ok()
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = sharing::arena(context);
    fixes.extend(sharing::fork_context(context));
    fixes.push(sharing::one_tensor());
    if context.is_root() {
        fixes.push(raise_limit(context));
    }
    fixes
}

fn raise_limit(context: &RemedyContext) -> Fix {
    let sudo = if context.is_root() { "" } else { "sudo " };
    Fix::new(
        "Raise the limit for every process of this machine (needs a writable /proc/sys; gone after a reboot)",
        format!("{sudo}sysctl -w vm.max_map_count=1048576"),
    )
}
