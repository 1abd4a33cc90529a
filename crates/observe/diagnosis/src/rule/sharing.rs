//! What the causes around torch's shared tensors have in common: the sentences about the loader, and the fixes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use ullage_model::{At, Evidence, FilesystemUse, Fix, LoaderSettings, Place};

/// Workers by fork: nothing is pickled, nothing is shared tensor by tensor.
pub(crate) fn fork_context(context: &RemedyContext) -> Option<Fix> {
    context.may_fork().then(|| Fix::new(
        match context.threads {
            Some(threads) if threads > 1 => format!(
                "Start the workers by fork: they inherit the dataset. This process has {threads} threads: none may hold a lock then"
            ),
            _ => "Start the workers by fork: they inherit the dataset (not with CUDA or threads in this process)".to_owned(),
        },
        context.loader("multiprocessing_context=\"fork\""),
    )
    .only(Place::Loader))
}

/// The cure: no segment for each tensor any more. First without touching the code, then in it.
pub(crate) fn arena(context: &RemedyContext) -> Vec<Fix> {
    let command = context.typed();
    vec![
        Fix::new(
            "Send batches through one shared-memory arena, with no code change (needs the ullage package)",
            format!("ullage run --fix -- {command}"),
        )
        .automatic("arena"),
        Fix::new(
            "The same in the code, for one loader",
            context.loader("multiprocessing_context=ullage.context(\"forkserver\")"),
        )
        .only(Place::Loader),
    ]
}

/// Less in flight at once, in a job with a loader.
pub(crate) fn fewer_batches(context: &RemedyContext) -> Fix {
    Fix::new(
        "Run fewer workers, with fewer batches ready",
        format!("DataLoader(dataset, {})", context.fewer_batches()),
    )
    .only(Place::Loader)
}

/// A budget of most of what the machine has, in bytes of the context.
pub(crate) fn budget(context: &RemedyContext) -> Fix {
    let size = |bytes: u64| format!("{}GiB", ((bytes / 10 * 8) >> 30).max(1));
    let size = context.bytes.map_or_else(|| "SIZE".to_owned(), size);
    Fix::new(
        "Give the job a budget: ullage ends it in order before the machine runs out",
        format!("ullage run --memory-max {size} -- {}", context.typed()),
    )
}

/// Where a job may have no loader.
pub(crate) fn hold_less() -> Fix {
    Fix::new("Let the job hold less: the report says which process holds how much", "ullage report")
}

/// One tensor for all samples.
pub(crate) fn one_tensor() -> Fix {
    Fix::new(
        "Pack the samples into one tensor with offsets: one mapping, one descriptor",
        "flat = torch.cat([t.reshape(-1) for t in tensors])\n\
                  offsets = torch.tensor([0] + [t.numel() for t in tensors]).cumsum(0)\n\
                  # sample i is flat[offsets[i]:offsets[i + 1]]",
    )
}

/// The settings of the loader that a failing process was making.
pub(crate) fn loader<'a>(failure: &'a Failure) -> Option<&'a LoaderSettings> {
    failure
        .exception
        .and_then(|seen| seen.report.loader.as_ref())
        .or_else(|| failure.process.and_then(|process| process.loader.as_ref()))
}

/// Why this loader sends its dataset tensor by tensor: the start method, and where it came from.
pub(crate) fn loader_sentence(failure: &Failure) -> Option<Evidence> {
    let report = failure.exception.map(|seen| &seen.report);
    let settings = loader(failure);
    let method = settings
        .and_then(|settings| settings.start_method.clone())
        .or_else(|| report.and_then(|report| report.start_method.clone()))
        .filter(|method| method != "fork")?;
    let own = report
        .and_then(|report| report.started_by.clone())
        .or_else(|| failure.process.and_then(|process| process.started_by.clone()));
    let by_default = settings.is_none_or(|settings| settings.start_method_is_default);
    let strategy = report
        .and_then(|report| report.sharing_strategy.clone())
        .or_else(|| settings.and_then(|settings| settings.sharing_strategy.clone()))
        .map(|strategy| format!(" (sharing strategy {strategy})"))
        .unwrap_or_default();
    let reason = match (by_default, own.as_deref()) {
        (true, Some(own)) if own == method => {
            "this process's own start method; multiprocessing_context was not given".to_owned()
        }
        (true, _) => "the default here; multiprocessing_context was not given".to_owned(),
        (false, _) => format!("as multiprocessing_context={method:?} says"),
    };
    Some(evidence::text(
        "start method",
        &method,
        failure.agent_source(),
        Some(failure.at),
        format!(
            "The loader starts its workers by {method}, {reason}. It pickles the dataset and moves each tensor into a shared segment{strategy}."
        ),
    ))
}

/// The exception as the process told it.
pub(crate) fn exception_sentence(failure: &Failure) -> Option<Evidence> {
    let seen = failure.exception?;
    let frame = seen.report.stack.last().map(|frame| format!(", in {frame}")).unwrap_or_default();
    let message = failure.message();
    Some(evidence::text(
        "exception",
        &message,
        failure.agent_source(),
        Some(failure.at),
        format!("It failed with \"{}\"{frame}.", message.trim_end_matches('.')),
    ))
}

/// How full the job's /dev/shm was: counted at the failure, else read last before it.
pub(crate) fn shm(
    analysis: &Analysis,
    failure: &Failure,
) -> Option<(u64, Option<u64>, At, evidence::Source)> {
    if let Some(counts) = failure.counts() {
        if let Some(used) = counts.shm_used {
            return Some((used, counts.shm_size, failure.at, failure.agent_source()));
        }
    }
    let history = analysis.timeline.filesystems(FilesystemUse::Shm).next()?;
    let (at, used) = history.used.at_or_before(failure.at).or_else(|| history.used.first())?;
    Some((used as u64, history.last.size.at(), at, evidence::Source::Filesystem(history.last.path.clone())))
}
