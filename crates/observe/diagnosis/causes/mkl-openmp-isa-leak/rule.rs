//! Does a run show mkl-openmp-isa-leak? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::sizes::WARN_BYTES;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fact, Fix, GrowthClass, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// The first torch of which nobody has said it.
const FIXED: (u32, u32) = (1, 10);

fn judge(analysis: &Analysis) -> Judgement {
    let fact = |name: &str| analysis.timeline.inside().get(name).and_then(Fact::text);
    let (Some(version), Some(mkl), Some(capability)) =
        (fact("torch.version"), fact("torch.mkl"), fact("torch.cpu_capability"))
    else {
        return Judgement::Nothing;
    };
    let Some((growth, true)) = analysis.growth.as_ref() else { return Judgement::Nothing };
    let native = matches!(growth.class, GrowthClass::LiveNativeBlocks | GrowthClass::LiveGrowth);
    let one_thread =
        ["OMP_NUM_THREADS", "MKL_NUM_THREADS"].iter().any(|name| analysis.variable(name) == Some("1"));
    let affected = major_minor(version).is_some_and(|version| version < FIXED);
    if !affected || !native || one_thread || capability.contains("512") {
        return Judgement::Nothing;
    }
    let sentence = format!(
        "torch {version} with MKL {mkl} on {capability} in several threads is known to leak at each step."
    );
    let source =
        growth.process.as_ref().map_or("agent".into(), |process| evidence::Source::Agent(process.id.pid));
    let at = growth.since.unwrap_or_default();
    let evidence = vec![
        evidence::number("growth", growth.bytes, "bytes", source.clone(), at, growth.because.clone()),
        evidence::text("torch", version, source, Some(at), sentence),
    ];
    let severity = if growth.bytes >= WARN_BYTES { Severity::Warning } else { Severity::Note };
    let mut finding = of_job(&RULE, severity, Proof::Consistent, evidence, &analysis.remedy_context(None));
    finding.process.clone_from(&growth.process);
    Judgement::one(finding)
}

/// `1.8.1+cu111`.
fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let command = context.typed();
    vec![
        Fix::new(
            "Confirm it: with one thread the growth stops",
            format!("OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 {command}"),
        ),
        Fix::new("Use a newer torch", "pip install --upgrade torch"),
    ]
}
