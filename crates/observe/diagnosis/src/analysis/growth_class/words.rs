//! The sentence behind the word: whose growth, since when, how it is known, and what cannot be told.

use super::counts::CountedGrowth;
use super::sources::GrowthSource;
use crate::analysis::run::Run;
use crate::evidence;
use crate::policy::growth::{ALL_OF_IT, LINE_NAMED};
use ullage_model::{GrowthClass, ProcessId};

fn owner(run: &Run, process: Option<ProcessId>) -> String {
    match process.and_then(|id| run.timeline.process(id)) {
        Some(process) => evidence::describe(process),
        None => "the job".into(),
    }
}

/// For what rose in bytes. `these` are the sources of the class, with their bytes of it.
pub(super) fn grew(
    run: &Run,
    class: GrowthClass,
    bytes: f64,
    share: f64,
    these: &[(&GrowthSource, f64)],
    end: f64,
) -> String {
    let largest = these.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(source, _)| *source);
    let Some(largest) = largest else { return nothing(run) };
    let rise = &largest.rise;
    let one = owner(run, largest.process);
    let subject = match these.len() {
        0 | 1 => evidence::capital(&one),
        several => format!("{several} processes, {one} most,"),
    };
    let amount = evidence::bytes(bytes as u64);
    let how_long = if rise.ongoing {
        format!("in the last {} of the run", evidence::seconds(end - rise.since))
    } else {
        format!(
            "from {} to {} after the start, and not since",
            evidence::seconds(rise.since),
            evidence::seconds(rise.until)
        )
    };
    let part =
        match these.iter().any(|(source, of_it)| *of_it < ALL_OF_IT * source.rise.by) || share < ALL_OF_IT {
            true => format!(" ({:.0} % of all growth)", 100.0 * share),
            false => String::new(),
        };
    let known = match class {
        GrowthClass::LiveTensors => "These are live tensors.",
        GrowthClass::LivePythonObjects => "These are live Python objects.",
        GrowthClass::LiveNativeBlocks => {
            "Native code holds it (arrays, buffers): neither tensors nor Python objects."
        }
        GrowthClass::FreedButHeld => "The program freed it; the allocator retains it.",
        GrowthClass::CopyOnWrite => {
            "They wrote to pages shared with their parent; reading a Python object is such a write."
        }
        GrowthClass::SharedMemoryBacklog => "This shared memory was filled and not released.",
        GrowthClass::MappedFiles => {
            "These are pages of mapped files, which the kernel can take back: no leak."
        }
        GrowthClass::KernelMemory => "The kernel holds it for this job, as page tables and the like.",
        GrowthClass::LiveGrowth if largest.not_split => {
            "It is private memory; nothing inside the process reported its kind."
        }
        GrowthClass::LiveGrowth => {
            "It is private memory in use; its kind is unknown (tensors, objects or native blocks)."
        }
        GrowthClass::WarmUp => "It came early in the run and stopped.",
        GrowthClass::Plateau => "It came during the run and stopped.",
        GrowthClass::PageCache
        | GrowthClass::MappingLeak
        | GrowthClass::FdLeak
        | GrowthClass::ProcessAccumulation
        | GrowthClass::SwapThrash
        | GrowthClass::None => "",
    };
    let grew =
        format!("{subject} grew by {amount} {how_long}{part}. {known}{}", allocated(run, class, largest));
    grew.trim_end().to_owned()
}

/// Lines that are named.
const MOST_LINES: usize = 3;

/// Where, for what Python or native code holds and no name was found for.
fn allocated(run: &Run, class: GrowthClass, largest: &GrowthSource) -> String {
    let traced = [GrowthClass::LivePythonObjects, GrowthClass::LiveNativeBlocks, GrowthClass::LiveGrowth]
        .contains(&class);
    let process = largest.process.and_then(|id| run.timeline.process(id)).filter(|_| traced);
    let Some((at, sites)) = process.and_then(|process| process.sites.as_ref()) else { return String::new() };
    let share = |bytes: u64| bytes as f64 / sites.bytes.max(1) as f64;
    let lines: Vec<String> = sites
        .sites
        .iter()
        .take(MOST_LINES)
        .filter(|site| share(site.bytes) >= LINE_NAMED)
        .map(|site| format!("{} ({:.0} %)", site.line, 100.0 * share(site.bytes)))
        .collect();
    if at.seconds() < largest.rise.since || lines.is_empty() {
        return String::new();
    }
    format!(
        " Its container was not found; of {} allocated in {} and still alive, most came from {}.",
        evidence::bytes(sites.bytes),
        evidence::seconds(sites.seconds),
        lines.join(", ")
    )
}

/// For what rose in number, and for what is not the job's own.
pub(super) fn counted(run: &Run, counted: &CountedGrowth) -> String {
    let subject = evidence::capital(&owner(run, counted.process));
    let period = evidence::seconds(counted.rise.until - counted.rise.since);
    let number = counted.number.map_or_else(String::new, |number| evidence::count(number as u64));
    let bytes = evidence::bytes(counted.bytes as u64);
    let memory = if counted.bytes >= 1.0 { format!(" Memory grew by {bytes}.") } else { String::new() };
    match counted.class {
        GrowthClass::FdLeak => format!(
            "{subject} opened {number} descriptors in the last {period} of the run and closed none.{memory}"
        ),
        GrowthClass::MappingLeak => format!(
            "{subject} made {number} mappings in the last {period} of the run and unmapped none.{memory}"
        ),
        GrowthClass::SharedMemoryBacklog => format!(
            "{subject} made or received {number} shared segments in the last {period} of the run and closed none. /dev/shm grew by {bytes}."
        ),
        GrowthClass::ProcessAccumulation => format!(
            "The job gained {number} processes in the last {period} of the run. They hold {bytes} of private memory."
        ),
        GrowthClass::SwapThrash => format!(
            "{bytes} came back from swap in the last {period}, and no memory of the job grew. Memory is short; nothing leaks."
        ),
        _ => format!(
            "Files of {bytes} were read or written in {period}. They stay as page cache, which the kernel takes back."
        ),
    }
}

pub(super) fn nothing(run: &Run) -> String {
    format!(
        "Nothing in the job grew by {} or more after its start.",
        evidence::bytes(super::sources::least(run) as u64)
    )
}
