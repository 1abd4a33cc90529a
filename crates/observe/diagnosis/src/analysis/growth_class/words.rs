//! The sentence behind the word: whose growth, since when, how it is known, and what cannot be told.

use super::counts::CountedGrowth;
use super::sources::GrowthSource;
use crate::analysis::run::Run;
use crate::evidence;
use crate::policy::growth::{ALL_OF_IT, LINE_NAMED};
use ullage_model::{GrowthClass, ProcessId};

fn whose(run: &Run, process: Option<ProcessId>) -> String {
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
    let several = these.len() > 1;
    let mut who = whose(run, largest.process);
    if several {
        who = format!("{} processes ({who} most)", these.len());
    }
    let who = evidence::capital(&who);
    let amount = evidence::bytes(bytes as u64);
    let how_long = if rise.ongoing {
        format!("in the last {} of the run, and did so to its end", evidence::seconds(end - rise.since))
    } else {
        format!(
            "between {} and {} after the start, and has been at rest since",
            evidence::seconds(rise.since),
            evidence::seconds(rise.until)
        )
    };
    let part =
        match these.iter().any(|(source, of_it)| *of_it < ALL_OF_IT * source.rise.by) || share < ALL_OF_IT {
            true => format!(", {:.0} % of all that grew", 100.0 * share),
            false => String::new(),
        };
    let known = match class {
        GrowthClass::LiveTensors => "tensors that Python still refers to, as the collector's list and malloc say",
        GrowthClass::LivePythonObjects => "objects of Python that are in use, as its allocator and the collector's list say",
        GrowthClass::LiveNativeBlocks => {
            "blocks in use that native code took (arrays, buffers), as malloc says; no tensors, no objects of Python"
        }
        GrowthClass::FreedButHeld => {
            "free inside the allocator, which keeps it for later, as malloc says: the program has let go of it"
        }
        GrowthClass::CopyOnWrite => {
            "pages that a forked process shared with its parent and no longer does, as its page table says: it wrote there, and reading a Python object is a write"
        }
        GrowthClass::SharedMemoryBacklog => "shared memory that was filled and not given back",
        GrowthClass::MappedFiles => "pages of mapped files that were touched; the kernel can take them back, this is no leak",
        GrowthClass::KernelMemory => "page tables and other memory of the kernel for this job",
        GrowthClass::LiveGrowth if largest.not_split => {
            "private memory; nothing was said from inside the process that tells objects, native blocks, tensors, or free memory that the allocator holds: cannot tell which"
        }
        GrowthClass::LiveGrowth => {
            "private memory in use; cannot tell which of objects, native blocks and tensors it is"
        }
        GrowthClass::WarmUp => "taken early in the run; it did not go on",
        GrowthClass::Plateau => "taken in the course of the run; it did not go on",
        GrowthClass::PageCache
        | GrowthClass::MappingLeak
        | GrowthClass::FdLeak
        | GrowthClass::ProcessAccumulation
        | GrowthClass::SwapThrash
        | GrowthClass::None => "counted",
    };
    format!("{who} grew by {amount} {how_long}{part}: {known}.{}", allocated(run, class, largest))
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
        " No name was found that holds it; of {} that Python allocated in {} and still held then, most was allocated at {}.",
        evidence::bytes(sites.bytes),
        evidence::seconds(sites.seconds),
        lines.join(", ")
    )
}

/// For what rose in number, and for what is not the job's own.
pub(super) fn counted(run: &Run, counted: &CountedGrowth) -> String {
    let who = evidence::capital(&whose(run, counted.process));
    let for_so_long = evidence::seconds(counted.rise.until - counted.rise.since);
    let number = counted.number.map_or_else(String::new, |number| evidence::count(number as u64));
    let bytes = evidence::bytes(counted.bytes as u64);
    match counted.class {
        GrowthClass::FdLeak => format!(
            "{who} opened {number} descriptors in {for_so_long} and did not close them, to the end of the run; memory grew by {bytes}."
        ),
        GrowthClass::MappingLeak => format!(
            "{who} made {number} mappings in {for_so_long} and did not unmap them, to the end of the run; memory grew by {bytes}."
        ),
        GrowthClass::SharedMemoryBacklog => format!(
            "{who} made {number} shared segments in {for_so_long} that nobody has taken, to the end of the run: /dev/shm grew by {bytes}."
        ),
        GrowthClass::ProcessAccumulation => format!(
            "The job had {number} processes more after {for_so_long}, and became more to the end of the run; they hold {bytes} of private memory."
        ),
        GrowthClass::SwapThrash => format!(
            "{bytes} came back from swap in the last {for_so_long} while others went there, and no memory of the job grew: memory is short, nothing was leaked."
        ),
        _ => format!(
            "Files of {bytes} were read or written in {for_so_long} and stay in memory as page cache, which the kernel takes back; no memory of the job grew with it."
        ),
    }
}

pub(super) fn nothing(run: &Run) -> String {
    format!(
        "Nothing of the job grew by {} or more once it had started.",
        evidence::bytes(super::sources::least(run) as u64)
    )
}
