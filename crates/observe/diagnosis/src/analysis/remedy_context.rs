//! What decides which remedies a user may apply, and their exact words.

use super::failures::Failure;
use super::retainers;
use super::run::Run;
use crate::history::ProcessHistory;
use ullage_model::{LoaderSettings, Retainer};

/// What decides which fixes a user may apply, and their exact words. `None`: not known, nothing is assumed.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemedyContext {
    /// The job runs as root.
    pub(crate) root: Option<bool>,
    /// The parent of the workers holds a CUDA context.
    pub(crate) cuda: Option<bool>,
    /// Threads of the parent of the workers.
    pub(crate) threads: Option<u64>,
    /// Hard limit of descriptors.
    pub(crate) nofile_hard: Option<u64>,
    /// A number that the fix needs: bytes for a limit, pids' owner.
    pub(crate) bytes: Option<u64>,
    /// Path the fix is about.
    pub(crate) path: Option<String>,
    /// The job's command, where a shell needs no quotes for it.
    pub(crate) command: Option<String>,
    /// Pids the fix is about.
    pub(crate) pids: Vec<i32>,
    /// Python of the process that the fix goes into: major and minor.
    pub(crate) python: Option<(u32, u32)>,
    /// The container that retains memory.
    pub(crate) retainer: Option<RetainerInCode>,
    /// Workers of the job's largest loader, and the batches that each of them keeps ready.
    pub(crate) workers: Option<u32>,
    pub(crate) prefetch: Option<u32>,
}

/// A container that retains memory, as the program would write it.
#[derive(Clone, Debug)]
pub(crate) struct RetainerInCode {
    /// None where its name is no expression.
    pub(crate) name: Option<String>,
    pub(crate) collection: Collection,
    /// It retains arrays of numpy, not tensors.
    pub(crate) of_arrays: bool,
    /// It retains something else than tensors and arrays.
    pub(crate) of_others: bool,
    /// It retains functions that are called back.
    pub(crate) of_callables: bool,
    /// Native code holds it, to call it later.
    pub(crate) held_by_c: Option<HeldByC>,
    /// It retains tasks of asyncio that wait for work, each for itself.
    pub(crate) of_tasks: bool,
    /// It is a future, which retains what it calls when it is done.
    pub(crate) is_future: bool,
    /// What it retains is reached through its elements, and is not them.
    pub(crate) deep: bool,
    /// Elements that it had.
    pub(crate) length: u64,
    pub(crate) waiting: Option<Waiting>,
    /// Its elements are what became longer, and these are such.
    pub(crate) nested: Option<Collection>,
}

/// Elements that are not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Of asyncio.
    Tasks,
    /// Of an executor.
    Futures,
    /// Of a list or deque from which somebody takes them.
    Items,
}

/// As what native code holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldByC {
    /// Of a graph.
    Hook,
    /// Registered with `atexit`, or with a library.
    Callback,
}

/// What decides how something is put into a container, and how it is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    List,
    Dict,
    Set,
    Deque,
    /// What a function decorated with `lru_cache` returned.
    CachedFunction,
    Tensor,
    Array,
    DataFrame,
    /// One that is raised again and again.
    Exception,
    /// An element of an XML document, which holds those below it.
    Element,
}

impl Collection {
    fn of(type_name: &str) -> Collection {
        let last = type_name.rsplit('.').next().unwrap_or_default();
        match last {
            "lru_cache" => Collection::CachedFunction,
            "deque" => Collection::Deque,
            "set" | "frozenset" => Collection::Set,
            "Tensor" | "Parameter" => Collection::Tensor,
            "ndarray" => Collection::Array,
            "DataFrame" | "Series" => Collection::DataFrame,
            "Element" | "_Element" => Collection::Element,
            _ if last.to_lowercase().ends_with("dict") || last == "Counter" => Collection::Dict,
            _ => Collection::List,
        }
    }
}

impl RetainerInCode {
    pub(crate) fn of(retainer: &Retainer) -> RetainerInCode {
        let arrays = |text: &str| text.starts_with("ndarray");
        RetainerInCode {
            name: expression(&retainer.name),
            collection: match retainer.errors > 0.0 && retainer.element.is_empty() {
                true => Collection::Exception,
                false => Collection::of(&retainer.type_name),
            },
            of_arrays: arrays(&retainer.element) || arrays(&retainer.type_name),
            of_callables: retainers::is_of_callables(retainer),
            held_by_c: match retainer.element.as_str() {
                _ if !retainers::is_held_by_c(retainer) => None,
                "hook" => Some(HeldByC::Hook),
                _ => Some(HeldByC::Callback),
            },
            of_tasks: retainers::is_of_tasks(retainer),
            is_future: retainers::is_future(retainer),
            of_others: !retainer.element.is_empty()
                && !["Tensor", "Parameter", "ndarray"].iter().any(|name| retainer.element.contains(name)),
            waiting: match retainers::is_waiting(retainer) {
                true if retainer.element.starts_with("concurrent.") => Some(Waiting::Futures),
                true => Some(Waiting::Tasks),
                false => (retainer.drained || retainer.taken_from).then_some(Waiting::Items),
            },
            deep: retainer.deep,
            // Of what a name leads to it is no length of what has the name.
            length: if retainer.deep { 0 } else { retainer.length },
            nested: retainer.nested.then(|| Collection::of(&retainer.element)),
        }
    }

    /// A tensor of this name.
    pub(crate) fn tensor(name: &str) -> RetainerInCode {
        RetainerInCode {
            name: expression(name),
            collection: Collection::Tensor,
            of_arrays: false,
            of_others: false,
            of_callables: false,
            held_by_c: None,
            of_tasks: false,
            is_future: false,
            waiting: None,
            deep: false,
            length: 0,
            nested: None,
        }
    }
}

/// A name that can stand in a line of code: `net.layers[0].seen`, `outputs['logits']`.
fn expression(name: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || "._[]'".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then(|| readable(name))
}

/// As the program writes it: without the module that it is itself, and a module's children under their names:
/// `net._modules['m']._modules['0']` is `net.m[0]`.
pub(crate) fn readable(name: &str) -> String {
    let mut parts = name.strip_prefix("__main__.").unwrap_or(name).split("._modules['");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("']") {
            Some((child, rest)) if child.chars().all(|c| c.is_ascii_digit()) => {
                text.push_str(&format!("[{child}]{rest}"));
            }
            Some((child, rest)) => text.push_str(&format!(".{child}{rest}")),
            None => text.push_str(&format!("._modules['{part}")),
        }
    }
    text
}

impl RemedyContext {
    /// Forking is safe where the parent has no CUDA context and no threads of its own; unknown counts as
    /// safe, with the condition said in the title.
    pub(crate) fn may_fork(&self) -> bool {
        self.cuda != Some(true)
    }

    /// Objects can be made immortal: from Python 3.12 on; unknown counts as yes, with the condition said in the title.
    pub(crate) fn freezes(&self) -> bool {
        self.python.is_none_or(|version| version >= (3, 12))
    }

    pub(crate) fn is_root(&self) -> bool {
        self.root == Some(true)
    }

    /// The job's command, or one that stands for it.
    pub(crate) fn typed(&self) -> &str {
        self.command.as_deref().unwrap_or("python train.py")
    }

    /// The job's loader with these arguments, and with the workers that it has.
    pub(crate) fn loader(&self, arguments: &str) -> String {
        format!("DataLoader(dataset, num_workers={}, {arguments})", self.workers.unwrap_or(4))
    }

    /// Loader arguments that keep about a quarter of the batches ready; at least one.
    pub(crate) fn fewer_batches(&self) -> String {
        let half = |number: Option<u32>, usual: u32| (number.unwrap_or(usual) / 2).max(1);
        format!("num_workers={}, prefetch_factor={}", half(self.workers, 4), half(self.prefetch, 2))
    }

    fn collection(&self) -> Option<Collection> {
        self.retainer.as_ref().map(|retainer| retainer.collection)
    }

    /// What retains the memory is one of these; unknown counts as no.
    pub(crate) fn retained_by(&self, kinds: &[Collection]) -> bool {
        self.collection().is_some_and(|collection| kinds.contains(&collection))
    }

    /// The name of what retains the memory.
    pub(crate) fn retainer_name<'a>(&'a self, otherwise: &'a str) -> &'a str {
        self.retainer.as_ref().and_then(|retainer| retainer.name.as_deref()).unwrap_or(otherwise)
    }

    /// Code that puts a value into what retains the memory.
    pub(crate) fn put(&self, value: &str, otherwise: &str) -> String {
        let name = self.retainer_name(otherwise);
        match self.collection() {
            Some(Collection::Dict) if self.has_lists() => format!("{name}[key].append({value})"),
            Some(Collection::Dict) => format!("{name}[key] = {value}"),
            Some(Collection::Set) => format!("{name}.add({value})"),
            Some(Collection::Tensor | Collection::Array | Collection::DataFrame | Collection::Exception) => {
                format!("{name} = {value}")
            }
            Some(Collection::CachedFunction) => format!("return {value}"),
            Some(Collection::List | Collection::Deque | Collection::Element) | None => {
                format!("{name}.append({value})")
            }
        }
    }

    /// Lists in it grow, and it does not.
    fn has_lists(&self) -> bool {
        self.retainer.as_ref().is_some_and(|retainer| retainer.nested == Some(Collection::List))
    }

    /// Code that empties what retains the memory.
    pub(crate) fn empty(&self, otherwise: &str) -> String {
        let name = self.retainer_name(otherwise);
        match self.collection() {
            Some(Collection::Dict) if self.has_lists() => format!("for one in {name}.values(): one.clear()"),
            Some(Collection::Tensor) => format!("{name} = {name}[:0].clone()"),
            Some(Collection::Array) => format!("{name} = {name}[:0].copy()"),
            Some(Collection::DataFrame) => format!("{name} = {name}.iloc[:0].copy()"),
            Some(Collection::CachedFunction) => format!("{name}.cache_clear()"),
            _ => format!("{name}.clear()"),
        }
    }

    /// What may be put in the place of a whole output of a model, or of whatever else is retained: (title, code).
    pub(crate) fn digest(&self) -> (&'static str, &'static str) {
        match &self.retainer {
            Some(retainer) if retainer.of_others => {
                ("Or store of each element only what is used later", "summary(element)")
            }
            Some(retainer) if retainer.of_arrays => {
                ("Or store a digest of each array instead of the whole array", "array.mean(axis=0)")
            }
            _ => (
                "Or store a digest of each output instead of the whole output",
                "logits.argmax(-1).to(torch.int16)",
            ),
        }
    }

    /// The call that copies what a small view shows.
    pub(crate) fn copied(&self) -> &'static str {
        match self.retainer.as_ref().is_some_and(|retainer| retainer.of_arrays) {
            true => "copy()",
            false => "clone()",
        }
    }
}

impl Run<'_> {
    /// Rights and circumstances of a process, for the fixes.
    pub(crate) fn remedy_context(&self, failure: Option<&Failure>) -> RemedyContext {
        let process = failure.and_then(|failure| failure.process);
        let report = failure.and_then(|failure| failure.exception).map(|exception| &exception.report);
        let loader = self.loader_of(failure);
        let uid = process.and_then(|process| process.uid()).or_else(|| self.main_uid());
        RemedyContext {
            command: typeable(&self.facts.command),
            root: uid.map(|uid| uid == 0),
            cuda: report.and_then(|report| report.cuda_initialized),
            threads: report.and_then(|report| report.counts.threads),
            nofile_hard: report
                .and_then(|report| report.counts.nofile_hard)
                .or_else(|| process.and_then(|p| p.limits).and_then(|limits| limits.open_files_hard.at())),
            workers: loader.map(|loader| loader.workers).filter(|workers| *workers > 0),
            prefetch: loader.and_then(|loader| loader.prefetch_factor).and_then(|n| u32::try_from(n).ok()),
            ..RemedyContext::default()
        }
    }

    /// The loader that failed, or the largest one.
    fn loader_of<'b>(&'b self, failure: Option<&'b Failure>) -> Option<&'b LoaderSettings> {
        let failed = failure
            .and_then(|failure| failure.exception?.report.loader.as_ref())
            .filter(|loader| loader.workers > 0);
        failed.or_else(|| {
            let loaders = self.timeline.processes().filter_map(|process| process.heaviest.as_ref());
            loaders.max_by_key(|loader| loader.workers)
        })
    }

    /// The same for the process that a remedy goes into, where nothing failed.
    pub(crate) fn remedy_context_of(&self, process: Option<&ProcessHistory>) -> RemedyContext {
        let version = process.and_then(|process| process.python.as_deref());
        let python = version.and_then(|version| {
            let mut parts = version.split('.').map(|part| part.parse().ok());
            Some((parts.next()??, parts.next()??))
        });
        let threads = process.and_then(|process| process.threads.last()).map(|(_, threads)| threads as u64);
        RemedyContext { python, threads, ..self.remedy_context(None) }
    }
}

/// A command as it can be typed; none where a shell would take it apart, or where it is long.
fn typeable(command: &[String]) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let fine = !command.is_empty() && command.iter().all(|word| !word.is_empty() && word.chars().all(plain));
    let typed = command.join(" ");
    (fine && typed.len() <= 120).then_some(typed)
}
