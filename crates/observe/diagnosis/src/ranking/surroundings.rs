//! Which remedies can be carried out where the job runs? Of Docker only in a container, of Slurm only under it, of a loader
//! only where one was seen.

use crate::analysis::Analysis;
use ullage_model::{Fact, Finding, Fix, Place, Role};

/// Where a job runs, as far as it is known.
#[derive(Clone, Copy, Debug)]
struct Surroundings {
    /// None where nobody looked.
    container: Option<bool>,
    slurm: bool,
    loader: bool,
}

impl Surroundings {
    fn of(analysis: &Analysis) -> Surroundings {
        let runtime = analysis.machine().others.get("container.runtime").and_then(Fact::text);
        let in_slurm = |line: &String| line.contains("slurm");
        let makes_loader = analysis
            .timeline
            .processes()
            .any(|process| process.loader.is_some() || matches!(process.role, Role::LoaderWorker(_)));
        Surroundings {
            container: runtime.map(|runtime| !runtime.starts_with("none")),
            slurm: analysis.facts.environment.keys().any(|name| name.starts_with("SLURM_"))
                || analysis
                    .timeline
                    .processes()
                    .filter_map(|process| process.facts.as_ref())
                    .any(|facts| facts.cgroups.iter().any(in_slurm)),
            loader: makes_loader
                || analysis.timeline.exceptions().iter().any(|seen| seen.report.loader.is_some()),
        }
    }

    fn allow(self, fix: &Fix) -> bool {
        match fix.place {
            // Where nobody looked, it may be one.
            Some(Place::Container) => self.container != Some(false),
            Some(Place::Slurm) => self.slurm,
            Some(Place::Loader) => self.loader,
            None => true,
        }
    }
}

/// Takes out the remedies that do not fit.
pub(crate) fn fit(analysis: &Analysis, findings: &mut [Finding]) {
    let surroundings = Surroundings::of(analysis);
    for finding in findings {
        finding.fixes.retain(|fix| surroundings.allow(fix));
    }
}
