//! `ullage runs push`: copies recordings to a shared disk after their runs, those of a killed ullage too.

use super::place;
use crate::{home, launcher, machine, printer};
use anyhow::{bail, Context};
use std::path::{Path, PathBuf};
use ullage_recording::RecordingCopy;

/// Copies what is meant by `run`; without it, all of the job that the environment names (SLURM_JOB_ID in an epilog), else the
/// newest.
pub fn run(run: Option<&str>, dir: &Path) -> anyhow::Result<u8> {
    for from in meant(run)? {
        let place = place::claim(dir, &from, &super::host())?;
        RecordingCopy::new(&from, &place)
            .update(&mut || ())
            .with_context(|| format!("{} was not copied", from.display()))?;
        printer::note(&format!("copied {} to {}", from.display(), place.display()));
    }
    Ok(0)
}

fn meant(run: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    let job = launcher::place(|name| std::env::var(name).ok()).job;
    let Some(job) = job.filter(|_| run.is_none()) else { return Ok(vec![home::find(run)?]) };
    let home = home::home()?;
    let mut runs = ullage_recording::list_runs(&home, |id| machine::is_alive(*id))?;
    runs.retain(|run| run.facts.as_ref().is_ok_and(|facts| facts.job.as_ref() == Some(&job)));
    if runs.is_empty() {
        bail!("no recording of job {job} in {}", home.display());
    }
    // Oldest first: they are numbered in that order where the launcher gives no number.
    Ok(runs.into_iter().rev().map(|run| run.path).collect())
}
