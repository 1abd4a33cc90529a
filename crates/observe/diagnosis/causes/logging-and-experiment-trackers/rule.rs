//! Does a run show logging-and-experiment-trackers? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::growth_class::rising;
use crate::analysis::retainers::{held, is_much, Kind, RetainedGrowth};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{EXPLAINS, EXPLAINS_MOST, GROWTH_BYTES};
use crate::rule::finding::of_process;
use crate::rule::retainers::{growth_sentence, unseen, what_grows};
use crate::rule::{Judgement, Rule};
use crate::trend::Rise;
use ullage_model::{At, Finding, Fix, Proof, Retainer, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// Packages whose classes take what a program logs.
const PACKAGES: [&str; 9] = [
    "logging.",
    "wandb.",
    "tensorboard.",
    "tensorboardX.",
    "torch.utils.tensorboard.",
    "mlflow.",
    "comet_ml.",
    "neptune.",
    "clearml.",
];

/// Their classes, where a project has copied one, or derived its own of that name.
const CLASSES: [&str; 9] = [
    "SummaryWriter",
    "EventFileWriter",
    "MemoryHandler",
    "BufferingHandler",
    "WandbLogger",
    "TensorBoardLogger",
    "MLFlowLogger",
    "CometLogger",
    "NeptuneLogger",
];

fn judge(analysis: &Analysis) -> Judgement {
    let rising = rising(analysis, GROWTH_BYTES as f64).into_iter();
    let found: Vec<Finding> = rising.filter_map(|(process, rise)| logged(analysis, process, rise)).collect();
    if found.is_empty() {
        return unseen(analysis).map_or(Judgement::Nothing, Judgement::undetermined);
    }
    Judgement::Found(found)
}

fn is_of_a_logger(retainer: &Retainer) -> bool {
    let class = retainer.owner.rsplit('.').next().unwrap_or_default();
    // The program's own handler: `train.History(logging.Handler)`.
    let derived = retainer.owner.contains("(logging.");
    derived || PACKAGES.iter().any(|package| retainer.owner.starts_with(package)) || CLASSES.contains(&class)
}

/// What holds most of the growth of a process is an attribute of a logger or tracker.
fn logged(analysis: &Analysis, process: &ProcessHistory, rise: Rise) -> Option<Finding> {
    let most =
        Kind::ALL.into_iter().filter_map(|kind| held(process, rise, kind)).max_by_key(|one| one.explained)?;
    let retainer = most.retainers.first().filter(|retainer| is_of_a_logger(retainer))?;
    let share = most.explained as f64 / most.of.max(1) as f64;
    if share < EXPLAINS {
        return None;
    }
    let sure = share >= EXPLAINS_MOST;
    let severity = match is_much(process, &most.rise) && sure && !retainer.bounded {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let mut evidence: Vec<ullage_model::Evidence> = what_grows(process).into_iter().collect();
    evidence.push(owner_sentence(&most, retainer));
    evidence.push(growth_sentence(process, &most.rise));
    let proof = if sure { Proof::SeenInside } else { Proof::InPart };
    let mut finding = of_process(analysis, &RULE, severity, proof, evidence, process);
    finding.at = Some(At::from_seconds(most.rise.since));
    Some(finding)
}

fn owner_sentence(most: &RetainedGrowth, retainer: &Retainer) -> ullage_model::Evidence {
    let sentence = format!(
        "{} stores what the program logs; this explains {} of {} that came between two readings.",
        retainer.owner,
        evidence::bytes(most.explained),
        evidence::bytes(most.of)
    );
    let source = evidence::Source::Agent(most.process.id.pid);
    let explained = evidence::number("growth explained", most.explained, "bytes", source, most.at, sentence);
    evidence::with_limit(explained, most.of)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Log numbers, not tensors or arrays", "logger.info(\"loss %f\", loss.item())"),
        Fix::new(
            "Give a handler that stores records a bound and a target",
            "logging.handlers.MemoryHandler(capacity=1000, target=logging.FileHandler(\"train.log\"))",
        ),
        Fix::new(
            "Confirm it for a tracker: run without it",
            format!("WANDB_MODE=disabled {}", context.typed()),
        ),
    ]
}
