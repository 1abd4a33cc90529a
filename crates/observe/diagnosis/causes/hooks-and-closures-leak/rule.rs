//! Does a run show hooks-and-closures-leak? page.md says what that is, and how it differs from its look-alikes.

use super::unnamed_growth;
use crate::analysis::growth_class::rising;
use crate::analysis::retainers::{explained_share, is_much_in_use, Kind};
use crate::analysis::{Analysis, Collection, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{AT_EXIT_MORE, EXPLAINS, GROWTH_BYTES};
use crate::rule::finding::of_job;
use crate::rule::{retainers, Judgement, Rule};
use crate::trend::Rise;
use ullage_model::{At, Finding, Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    match retainers::judge(analysis, &RULE, Kind::Hook) {
        Judgement::Found(found) => Judgement::Found(found),
        none => registered(analysis).map_or(none, Judgement::one),
    }
}

/// A growth that nothing names, while the program registers function after function with `atexit`: CPython keeps those, and what
/// they are to be called with, where nobody can look.
fn registered(analysis: &Analysis) -> Option<Finding> {
    let rising = rising(analysis, GROWTH_BYTES as f64).into_iter();
    let grows = rising
        .filter(|(process, rise)| is_much_in_use(process, rise) && unnamed_growth::grows(analysis, process))
        .filter(|(process, rise)| explained_share(process, *rise) < EXPLAINS);
    let registers = grows.filter_map(|(process, rise)| Some((process, rise, came(process, &rise)?)));
    let (process, rise, (at, before, now)) = registers.max_by(|a, b| a.1.by.total_cmp(&b.1.by))?;
    let sentence = format!(
        "{} are registered with atexit; there were {} before. What they are to be called with stays until the end.",
        evidence::plural(now, "function", "functions"),
        evidence::count(before)
    );
    let source = evidence::Source::Agent(process.id.pid);
    let counted = evidence::number("functions registered with atexit", now, "", source, at, sentence);
    let evidence = vec![counted, retainers::growth_sentence(process, &rise)];
    let context = analysis.remedy_context_of(Some(process));
    let mut finding = of_job(&RULE, Severity::Warning, Proof::Consistent, evidence, &context);
    finding.fixes = vec![
        Fix::new("Take each one back when it has nothing to end any more", "atexit.unregister(self.close)"),
        Fix::new(
            "Or register one for all, which refers to them weakly",
            "opened = weakref.WeakSet()\natexit.register(lambda: [one.close() for one in list(opened)])",
        ),
    ];
    finding.process = Some(evidence::process_ref(process));
    finding.at = Some(At::from_seconds(rise.since));
    Some(finding)
}

/// Functions that came to be registered from each census to the next: when they were last counted, how many before, how many then.
fn came(process: &ProcessHistory, rise: &Rise) -> Option<(At, u64, u64)> {
    let counts: Vec<(At, u64)> =
        process.censuses.iter().filter_map(|(at, census)| Some((*at, census.at_exit?))).collect();
    let ((_, before), (at, now)) = (*counts.first()?, *counts.last()?);
    let again = counts.len() > 2 && counts.windows(2).all(|two| two[0].1 < two[1].1);
    (again && now >= before + AT_EXIT_MORE && at.seconds() >= rise.since).then_some((at, before, now))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let name = context.retainer.as_ref().and_then(|retainer| retainer.name.as_deref());
    if name.is_some_and(|name| name.starts_with("weakref.finalize.")) {
        return vec![
            Fix::new(
                "Give each finalizer what it ends, and neither the object nor a method of it",
                "weakref.finalize(self, os.close, self.fd)  # not weakref.finalize(self, self.close)",
            ),
            Fix::new("Or call it when the object is done with", "finalizer()"),
        ];
    }
    if name.is_some_and(|name| name.ends_with("._scheduled")) {
        return vec![
            Fix::new(
                "Cancel each timer when what it is for is done",
                "timer = loop.call_later(3600, cleanup, key)  # and when it is done with: timer.cancel()",
            ),
            Fix::new(
                "Or let it keep neither the caller's context nor the object",
                "loop.call_later(3600, cleanup, key, context=contextvars.Context())",
            ),
        ];
    }
    if context.retainer.as_ref().is_some_and(|retainer| retainer.is_future) {
        let name = name.unwrap_or("future");
        if let Some(name) = name.strip_suffix("._done_callbacks") {
            return vec![Fix::new(
                "Add one callback for all, and remove from what it calls each that is done",
                format!(
                    "{name}.add_done_callback(lambda future: [call(future) for call in waiting.values()])"
                ),
            )];
        }
        let name = name.strip_suffix("._callbacks").unwrap_or(name);
        return vec![
            Fix::new(
                "Remove each callback when what it was added for is done",
                format!("{name}.remove_done_callback(callback)"),
            ),
            Fix::new(
                "Or wait for both, which adds and removes them",
                format!("await asyncio.wait([task, {name}], return_when=asyncio.FIRST_COMPLETED)"),
            ),
        ];
    }
    if let Some(retainer) = context.retainer.as_ref().filter(|retainer| retainer.of_callables) {
        let name = retainer.name.as_deref().unwrap_or("callbacks");
        let remove = match retainer.collection {
            Collection::Dict => format!("{name}.pop(key)"),
            _ => format!("{name}.remove(callback)"),
        };
        return vec![
            Fix::new(
                "Remove each callback with what it was made for, before another one takes its place",
                remove,
            ),
            Fix::new(
                "Or refer weakly to what it is called for",
                "reference = weakref.ref(axes)  # and in the callback: axes = reference()",
            ),
        ];
    }
    vec![
        Fix::new(
            "Remove each hook after use",
            "handle = module.register_forward_hook(hook)\ntry:\n    module(batch)\nfinally:\n    handle.remove()",
        ),
        Fix::new(
            "Or register it once, before the loop",
            "module.register_forward_hook(hook)  # and in the hook: features[name] = output.detach()",
        ),
    ]
}
