//! Does a run show fork-parent-rewrites? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::copies::parent;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::given::PAGE_BYTES;
use crate::policy::sizes::{MOST, NOTE_BYTES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Evidence, Fix, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// Old pages that a child keeps.
struct Retained<'a> {
    child: &'a ProcessHistory,
    parent: &'a ProcessHistory,
    bytes: u64,
    at: At,
    freed: bool,
}

fn judge(analysis: &Analysis) -> Judgement {
    let forked = analysis.timeline.processes().filter(|process| {
        let from = process.facts.as_ref().and_then(|facts| facts.forked_from);
        from.is_some() || process.started_by.as_deref() == Some("fork")
    });
    let retained = forked.filter_map(|child| {
        let parent = parent(analysis, child)?;
        let freed = freed(child, parent);
        let rewritten = rewritten(analysis, child, parent);
        freed.into_iter().chain(rewritten).max_by_key(|retained| retained.bytes)
    });
    let Some(most) = retained
        .filter(|retained| retained.bytes >= NOTE_BYTES)
        .max_by_key(|retained| (retained.bytes, retained.child.id))
    else {
        return Judgement::Nothing;
    };
    let severity = if analysis.ran_out { Severity::Warning } else { Severity::Note };
    let evidence = vec![sentence(&most), faults(&most)];
    let mut finding =
        of_job(&RULE, severity, Proof::Estimated, evidence, &analysis.remedy_context_of(Some(most.parent)));
    finding.process = Some(evidence::process_ref(most.child));
    Judgement::one(finding)
}

fn inherited(child: &ProcessHistory, parent: &ProcessHistory) -> Option<(At, u64)> {
    let (at, first) = child.anonymous.first()?;
    let (_, held) = parent.anonymous.at_or_before(at)?;
    let inherited = held.min(first) as u64;
    (inherited >= NOTE_BYTES).then_some((at, inherited))
}

/// What the child still maps, and the parent has no more.
fn freed<'a>(child: &'a ProcessHistory, parent: &'a ProcessHistory) -> Option<Retained<'a>> {
    let (from, inherited) = inherited(child, parent)?;
    let mut held = inherited;
    let mut most: Option<(u64, At)> = None;
    for (at, anonymous) in child.anonymous.points().filter(|(at, _)| *at > from) {
        // What the child gave back it has not kept, whatever it took later.
        held = held.min(anonymous as u64);
        // A parent that ends falls to nothing, and its children with it.
        let Some((read, now)) = parent.anonymous.at_or_before(at).filter(|_| parent.last_seen >= at) else {
            continue;
        };
        let bytes = held.saturating_sub(now as u64);
        if read > from && most.is_none_or(|(most, _)| bytes > most) {
            most = Some((bytes, at));
        }
    }
    most.map(|(bytes, at)| Retained { child, parent, bytes, at, freed: true })
}

/// What the child alone maps without having taken faults for it, and the parent has.
fn rewritten<'a>(
    analysis: &Analysis,
    child: &'a ProcessHistory,
    parent: &'a ProcessHistory,
) -> Option<Retained<'a>> {
    let (from, inherited) = inherited(child, parent)?;
    let page = analysis.machine().page_size.max(PAGE_BYTES);
    let before = parent.faults.at_or_before(from)?.1;
    let retained = child.probes.iter().filter(|probe| parent.last_seen >= probe.at).filter_map(|probe| {
        let fresh = probe.anonymous.saturating_sub(inherited);
        let own = fresh.max(probe.faults.saturating_mul(page));
        let sure = probe.exclusive.bytes.0.saturating_sub(own).saturating_sub(probe.exclusive.error.0);
        let taken = parent.faults.at_or_before(probe.at)?.1 - before;
        (taken * page as f64 >= MOST * sure as f64).then_some((sure, probe.at))
    });
    let (bytes, at) = retained.max()?;
    Some(Retained { child, parent, bytes, at, freed: false })
}

fn sentence(retained: &Retained) -> Evidence {
    let what = if retained.freed { "has freed since" } else { "has rewritten since" };
    let sentence = format!(
        "{} still holds at least {} of old pages that {} {what}.",
        evidence::capital(&evidence::describe(retained.child)),
        evidence::bytes(retained.bytes),
        evidence::describe(retained.parent),
    );
    let source = if retained.freed {
        evidence::Source::Pair(retained.child.id.pid, retained.parent.id.pid, "status")
    } else {
        evidence::Source::Process(retained.child.id.pid, "pagemap")
    };
    evidence::number("old pages kept", retained.bytes, "bytes", source, retained.at, sentence)
}

/// The child did nothing for it.
fn faults(retained: &Retained) -> Evidence {
    let faults = retained.child.faults.at_or_before(retained.at).map_or(0.0, |(_, faults)| faults) as u64;
    let sentence =
        format!("It took {} minor faults by then, too few to have copied them.", evidence::count(faults));
    let source = evidence::Source::Process(retained.child.id.pid, "stat");
    evidence::number("minor faults", faults, "faults", source, retained.at, sentence)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Start the workers before you fill the memory",
            format!(
                "batches = iter({})  # before torch.load(...)",
                context.loader("persistent_workers=True")
            ),
        )
        .only(Place::Loader),
        Fix::new(
            "Or start them without the parent's memory",
            context.loader("multiprocessing_context=\"forkserver\""),
        )
        .only(Place::Loader),
        Fix::new(
            "Or free and rewrite only while no forked process lives",
            "del batches  # ends the loader's workers\ndel checkpoint",
        ),
    ]
}
