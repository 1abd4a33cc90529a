//! A process at its limit of open files: shared by the two causes that differ in whose descriptors they are.

use crate::policy::given::{SHARED_A_SECOND, USUAL_FILES};
use crate::policy::limits::{
    at_limit, reaches, ALIKE_PART, DESCRIPTORS_LEFT, FEW_DESCRIPTORS, KINDS_EARLY_PART, KINDS_READ_PART,
};
use crate::policy::sizes::MOST;
use crate::trend::{reach, representative_reading, Reach};

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::rule::finding::{by_failure, finding, proof_of};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::process::DescriptorKinds;
use ullage_model::{At, Evidence, Finding, Fix, GrowthClass, ProcessId, Proof, Severity};

/// Whose descriptors fill the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// torch's shared segments.
    Torch,
    /// Files, sockets, pipes and the rest.
    Other,
}

/// What filled the table, as far as it was read: torch's, all, when, and where from.
struct Kinds {
    torch: u64,
    all: u64,
    at: At,
    source: evidence::Source,
    words: String,
}

impl Kinds {
    fn owner(&self) -> Owner {
        if self.torch >= self.all - self.all / 2 {
            Owner::Torch
        } else {
            Owner::Other
        }
    }
}

pub(crate) fn judge(analysis: &Analysis, rule: &Rule, owner: Owner) -> Judgement {
    let failed = by_failure(analysis, |failure| match failure.symptom() {
        Symptom::NoDescriptors => reported(analysis, rule, failure, owner),
        Symptom::NoDescriptorsOnMachine => machine(analysis, rule, failure, owner),
        _ if failure.unexplained_end() => read(analysis, rule, failure, owner),
        _ => Ok(None),
    });
    match failed {
        Judgement::Found(_) => failed,
        _ => filled(analysis, rule, owner).map_or(failed, Judgement::one),
    }
}

/// A process filled its table, and no failure of it was seen: a server catches the errors of its threads, and serves nobody.
fn filled(analysis: &Analysis, rule: &Rule, owner: Owner) -> Option<Finding> {
    let (growth, _) = analysis.growth.as_ref().filter(|(growth, _)| growth.class == GrowthClass::FdLeak)?;
    let process = analysis.timeline.process(growth.process.as_ref()?.id)?;
    let end = Failure {
        at: process.ended.map_or(process.last_seen, |(at, ..)| at),
        process: Some(process),
        exception: None,
        stack: &[],
        ending: None,
        follows: false,
    };
    let found = read(analysis, rule, &end, owner).ok().flatten()?;
    Some(Finding { severity: Severity::Warning, ..found })
}

fn kinds(failure: &Failure) -> Option<Kinds> {
    if let Some((counts, seen)) = failure.counts().zip(failure.exception) {
        if let Some((torch, all)) = counts.fds_torch.zip(counts.fds) {
            return Some(Kinds {
                torch,
                all,
                at: seen.at,
                source: failure.agent_source(),
                words: places(torch, &counts.fd_places),
            });
        }
    }
    let process = failure.process?;
    let early = process.kinds.as_ref().is_none_or(|(_, all, _)| *all < peak(process) / KINDS_EARLY_PART);
    if let Some(kinds) = early.then(|| kinds_by_mappings(process)).flatten() {
        return Some(kinds);
    }
    let (at, all, kinds) = process.kinds.as_ref()?;
    let (at, all) = (*at, *all);
    Some(Kinds {
        torch: kinds.torch_shared,
        all,
        at,
        source: evidence::Source::Process(process.id.pid, "fd"),
        words: format!(
            "of {} descriptors, {} are torch's shared segments, {} files, {} sockets, {} pipes{}",
            evidence::count(all),
            evidence::count(kinds.torch_shared),
            evidence::count(kinds.files),
            evidence::count(kinds.sockets),
            evidence::count(kinds.pipes),
            most_files(kinds)
        ),
    })
}

/// Where most of the files are, and one of them by its name below it.
fn most_files(kinds: &DescriptorKinds) -> String {
    let Some(most) = kinds.most_files.as_deref().filter(|_| kinds.files > kinds.torch_shared) else {
        return String::new();
    };
    let example = most.example.strip_prefix(&most.folder).unwrap_or(&most.example);
    format!("; {} of the files are in {}, such as {example}", evidence::count(most.count), most.folder)
}

/// What most of the descriptors lead to, where torch's segments are not the most.
fn places(torch: u64, places: &[(String, u64)]) -> String {
    let of_torch = format!("{} of these are torch's shared segments", evidence::count(torch));
    match places.first() {
        Some((_, most)) if *most > torch => {}
        _ => return of_torch,
    }
    let of = |(place, number): &(String, u64)| {
        let number = evidence::count(*number);
        if place.ends_with('/') {
            format!("{number} lead to files in {place}")
        } else {
            format!("{number} lead to {place}s")
        }
    };
    let listed: Vec<String> = places.iter().filter(|place| place.1 > 1).map(of).collect();
    format!("Of these, {}", listed.join(", "))
}

fn peak(process: &ProcessHistory) -> u64 {
    process.descriptors.peak().map_or(0, |(_, value)| value as u64)
}

/// Where the links were not read near the end: with the file_descriptor strategy each of torch's mappings holds one
/// descriptor, so that as many of the one as of the other tell whose they are. With file_system there are none.
fn kinds_by_mappings(process: &ProcessHistory) -> Option<Kinds> {
    let (at, mappings) = process.mappings?;
    let (torch, all) = (mappings.torch_shared, peak(process));
    let alike = torch >= all / 2 && torch <= all + all / ALIKE_PART;
    (all > FEW_DESCRIPTORS && alike).then(|| Kinds {
        torch: torch.min(all),
        all,
        at,
        source: evidence::Source::Process(process.id.pid, "maps"),
        words: format!(
            "{} of its mappings are torch's shared segments; under file_descriptor each holds a descriptor",
            evidence::count(torch)
        ),
    })
}

/// Whether most descriptors of a process that had too many lead to pipes and sockets, as those to its children do.
pub(crate) fn lead_to_children(analysis: &Analysis, parent: ProcessId) -> bool {
    let reported =
        analysis.failures.iter().filter(|failure| failure.process.is_some_and(|one| one.id == parent));
    let reported = reported.filter_map(|failure| {
        let counts = failure.counts().filter(|counts| !counts.fd_places.is_empty())?;
        let of = |place: &&(String, u64)| ["pipe", "socket"].contains(&place.0.as_str());
        Some((counts.fd_places.iter().filter(of).map(|place| place.1).sum::<u64>(), counts.fds?))
    });
    let read = || {
        let (_, all, kinds) = analysis.timeline.process(parent)?.kinds.as_ref()?;
        Some((kinds.pipes + kinds.sockets, *all))
    };
    reported.max_by_key(|(_, all)| *all).or_else(read).is_some_and(|(leads, all)| reaches(MOST, leads, all))
}

/// The text, where no link could be read.
fn owner_by_text(failure: &Failure) -> Option<Owner> {
    let text = failure.text();
    if text.contains("/torch_") || text.contains("ancdata") || text.contains("Communication with the") {
        return Some(Owner::Torch);
    }
    let path = failure.counts().and_then(|counts| counts.path.clone())?;
    Some(if path.contains("/torch_") { Owner::Torch } else { Owner::Other })
}

/// The agent reported EMFILE.
fn reported(
    analysis: &Analysis,
    rule: &Rule,
    failure: &Failure,
    owner: Owner,
) -> Result<Option<Finding>, String> {
    let kinds = kinds(failure);
    // A failed open of torch's own object says whose table was being filled, but not who filled it.
    let Some(found) = kinds.as_ref().map(Kinds::owner).or_else(|| owner_by_text(failure)) else {
        return Err(
            "a process met its limit of open files (EMFILE); its descriptors' links could not be read".into(),
        );
    };
    if found != owner {
        return Ok(None);
    }
    let name = failure.process.map_or_else(|| "the process".to_owned(), evidence::describe);
    let counts = failure.counts();
    let limit = counts.and_then(|counts| counts.nofile).or_else(|| failure.process?.limits?.open_files.at());
    let mut evidence = Vec::new();
    let mut known = Proof::InPart;
    match (counts.and_then(|counts| counts.fds), limit) {
        (Some(fds), Some(limit)) => {
            if near(fds, limit) && !failure.is_echo() {
                known = Proof::SeenInside;
            }
            let sentence = format!(
                "{} had {} of {} open (ulimit -n) at the exception.",
                evidence::capital(&name),
                evidence::count(fds),
                evidence::plural(limit, "descriptor", "descriptors")
            );
            let met = evidence::number(
                "descriptors",
                fds,
                "descriptors",
                failure.agent_source(),
                failure.at,
                sentence,
            );
            evidence.push(evidence::with_limit(met, limit));
        }
        _ => evidence.extend(last_count(failure, limit, &name)),
    }
    evidence.extend(kinds.as_ref().and_then(kinds_sentence));
    evidence.extend(sharing::exception_sentence(failure));
    if owner == Owner::Torch {
        evidence.extend(sharing::loader_sentence(failure));
    }
    Ok(Some(finding(analysis, rule, failure, known, evidence, &analysis.remedy_context(Some(failure)))))
}

/// At the limit, or a few below it: the interpreter needs some to report anything at all.
fn near(fds: u64, limit: u64) -> bool {
    fds.saturating_add(DESCRIPTORS_LEFT) >= limit || at_limit(fds, limit)
}

/// The machine's own limit: no single process need be near its own.
fn machine(
    analysis: &Analysis,
    rule: &Rule,
    failure: &Failure,
    owner: Owner,
) -> Result<Option<Finding>, String> {
    if kinds(failure).map_or(Owner::Other, |kinds| kinds.owner()) != owner {
        return Ok(None);
    }
    let mut evidence: Vec<Evidence> = sharing::exception_sentence(failure).into_iter().collect();
    if let Some((open, limit)) = analysis.timeline.host().last.open_files.known() {
        let sentence = format!(
            "The machine had {} of {} open (fs.file-max).",
            evidence::count(open),
            evidence::plural(limit, "descriptor", "descriptors")
        );
        let met = evidence::number(
            "file handles of the machine",
            open,
            "descriptors",
            "/proc/sys/fs/file-nr",
            failure.at,
            sentence,
        );
        evidence.push(evidence::with_limit(met, limit));
    }
    let known = Proof::InPart;
    Ok(Some(finding(analysis, rule, failure, known, evidence, &analysis.remedy_context(Some(failure)))))
}

/// Without the agent: the last count before the process ended.
fn read(
    analysis: &Analysis,
    rule: &Rule,
    failure: &Failure,
    owner: Owner,
) -> Result<Option<Finding>, String> {
    let Some(process) = failure.process else { return Ok(None) };
    let Some(limit) = process.limits.and_then(|limits| limits.open_files.at()) else { return Ok(None) };
    let name = evidence::describe(process);
    // Descriptors and mappings of shared tensors grow together: the nearer limit is met first.
    if owner == Owner::Torch && mappings_first(analysis, failure, limit) {
        return Ok(None);
    }
    match reach(&process.descriptors, limit, failure.at, SHARED_A_SECOND) {
        how @ (Reach::Met | Reach::Projected) => {
            let Some(kinds) = kinds(failure).filter(|kinds| kinds.all >= limit / KINDS_READ_PART) else {
                return Err(format!("{name} was near its limit of {} open files; their links could not be read", evidence::count(limit)));
            };
            if kinds.owner() != owner {
                return Ok(None);
            }
            let mut evidence: Vec<Evidence> = last_count(failure, Some(limit), &name).into_iter().collect();
            evidence.extend(kinds_sentence(&kinds));
            let known = proof_of(how);
            Ok(Some(finding(analysis, rule, failure, known, evidence, &analysis.remedy_context(Some(failure)))))
        }
        Reach::Possible => Err(match process.descriptors.last() {
            Some((at, value)) => format!(
                "{name} ended on its own, {} after it had {} of {} descriptors open, and reported no exception",
                evidence::seconds(failure.at.since(at)),
                evidence::count(value as u64),
                evidence::count(limit)
            ),
            None => format!("{name} ended on its own before its descriptors were counted, and reported no exception"),
        }),
        Reach::Excluded => Ok(None),
    }
}

fn mappings_first(analysis: &Analysis, failure: &Failure, limit: u64) -> bool {
    analysis.machine().max_map_count.known().is_some_and(|maps| {
        maps < limit
            && failure.process.is_some_and(|process| {
                matches!(reach(&process.mapping_count, maps, failure.at, 0.0), Reach::Met | Reach::Projected)
            })
    })
}

fn last_count(failure: &Failure, limit: Option<u64>, name: &str) -> Option<Evidence> {
    let process = failure.process?;
    let (at, value) = representative_reading(&process.descriptors, failure.at)?;
    let value = value as u64;
    let of = limit.map_or(String::new(), |limit| format!(" of {}", evidence::count(limit)));
    let rate = process.descriptors.rate_at_end().filter(|rate| *rate >= 1.0);
    let growth =
        rate.map_or(String::new(), |rate| format!(", opening {} a second", evidence::count(rate as u64)));
    let sentence = format!(
        "{} had {}{of} descriptors open (ulimit -n){growth}, {} before it ended.",
        evidence::capital(name),
        evidence::count(value),
        evidence::seconds(failure.at.since(at)),
    );
    let source = evidence::Source::Process(process.id.pid, "fd");
    let evidence = evidence::number("descriptors", value, "descriptors", source, at, sentence);
    Some(limit.map_or(evidence.clone(), |limit| evidence::with_limit(evidence, limit)))
}

fn kinds_sentence(kinds: &Kinds) -> Option<Evidence> {
    let sentence = format!("{}.", evidence::capital(&kinds.words));
    Some(evidence::number(
        "descriptors of torch's segments",
        kinds.torch,
        "descriptors",
        kinds.source.clone(),
        kinds.at,
        sentence,
    ))
}

/// Up to the hard limit nobody needs a right for it.
pub(crate) fn raise_soft_limit(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = Vec::new();
    let hard = context.nofile_hard;
    if hard.is_none_or(|hard| hard > USUAL_FILES) {
        fixes.push(
            Fix::new(
                match hard {
                    Some(hard) => format!(
                        "Raise the soft limit to the hard limit of {} before the workers start",
                        evidence::count(hard)
                    ),
                    None => "Raise the soft limit to the hard limit before the workers start".to_owned(),
                },
                "import resource\n\
                      hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n\
                      resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))",
            )
            .automatic("nofile"),
        );
    }
    if context.is_root() {
        fixes.push(Fix::new("Start the job with a higher limit", "ulimit -n 1048576"));
    }
    fixes
}
