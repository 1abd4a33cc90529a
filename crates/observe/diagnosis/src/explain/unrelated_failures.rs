//! Which failures of a log are of another kind, so that what comes behind them needs no cause of ours?
//!
//! A worker that is gone, a semaphore that nobody took down, exit code 137: each is told in the same words whatever went
//! wrong before. Where the log shows an exception of a job's own, an assertion on the GPU or a user who interrupted, that is
//! what went wrong.
//!
//! The surprise: not every exception is a failure of its own. Some say that another process is gone (a connection that is
//! reset, a rendezvous that failed), some wrap one that stands below, and some were handled, so that the job went on for
//! thousands of lines.

use crate::policy::log::LINES_TOGETHER;
use regex::{Regex, RegexSet};
use std::sync::OnceLock;

/// What is no failure of its own: it says that another one is gone, or repeats what another one said.
const HANDED_ON: [&str; 6] = [
    r"^(?:\w+\.)*(?:ConnectionResetError|ConnectionAbortedError|BrokenPipeError|EOFError|Empty|ChildFailedError|DistBackendError|DistNetworkError|DistStoreError|RendezvousConnectionError|ProcessRaisedException|ProcessExitedException|CalledProcessError|RemoteTraceback|WorkerCrashedError|ActorDiedError|RayActorError|RayTaskError\S*|SystemExit)\b",
    r"(?i)connection (?:was )?(?:closed|reset|refused) by (?:remote )?peer|broken pipe|remote process exited|socket closed|peer (?:has )?(?:closed|disconnected)",
    r"Caught \w+ in (?:DataLoader worker|pin memory thread|replica)",
    r"(?:Process|Worker|Thread)[^\n]* (?:exited|died|terminated|failed)",
    r"(?i)\btimed? ?out\b",
    r"can only test a child process|Timeout: ",
];

/// The memory of a GPU ran out.
const GPU_MEMORY: &str = r"(?:CUDA|HIP|XPU) out of memory|\b(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED";

/// Failures that are told without a traceback, or whose end is told like one of ours.
const REPORTED_OTHERWISE: [&str; 10] = [
    GPU_MEMORY,
    r"is killed by signal: (?:Terminated|Interrupt|Hangup)",
    r"device-side assert|CUDA error: (?:an illegal|misaligned|unspecified|invalid|no kernel|CUBLAS)|CUBLAS_STATUS_|CUDNN_STATUS_",
    r"^Fatal Python error: (?:Segmentation fault|Aborted|Illegal instruction|Floating point)",
    r"^(?:\S+: line \d+:\s+\d+\s+)?(?:Segmentation fault|Illegal instruction|Floating point exception)(?: \(core dumped\)|\s{2,}|\s*$)",
    r"(?i)\bDUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)",
    r"forcefully exit+ing via (?:Signals\.)?(?:SIGKILL|9\b)",
    r"(?i)\b(?:received|got) (?:signal:? ?)?(?:SIGTERM|SIGINT|15 death signal)|^\^C",
    r"\bXid \(PCI:|uncorrectable ECC error",
    r"\b[Aa]ssertion [^\n]*failed",
];

/// Why a connection was not made.
const NETWORK: &str = r"socketStartConnect|socketPollConnect|Connect to \S+ failed|No route to host|Network is unreachable|Name or service not known";

const IGNORED: &str = "Exception ignored in";
const TRACEBACK: &str = "Traceback (most recent call last)";
const HANDLED: &str = "During handling of the above exception";

/// Lines that match none of these say nothing here, but in a traceback.
pub(crate) const PATTERNS: [&str; 14] = {
    let [a, b, c, d, e, f, g, h, i, j] = REPORTED_OTHERWISE;
    [a, b, c, d, e, f, g, h, i, j, NETWORK, IGNORED, r"Traceback \(most recent call last\)", HANDLED]
};

/// The failures of other kinds in the lines that were taken.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// The last two of them; a handled one is taken back.
    last: [Option<u64>; 2],
    /// `Traceback`, but of an exception that Python passes over.
    traceback: Option<u64>,
    ignored: Option<u64>,
    /// A network refused what NCCL then calls a system error.
    pub(crate) network: bool,
    /// The first line that says that the memory of a GPU ran out.
    pub(crate) gpu_out_of_memory_line: Option<u64>,
}

impl Others {
    /// Takes the next line. `known`: a known message stands in it.
    pub(crate) fn line(&mut self, number: u64, text: &str, known: bool) {
        let patterns = patterns();
        let said = &text[patterns.speaker.find(text).map_or(0, |speaker| speaker.end())..];
        self.network |= patterns.network.is_match(text);
        if self.gpu_out_of_memory_line.is_none() && patterns.gpu_memory.is_match(text) {
            self.gpu_out_of_memory_line = Some(number);
        }
        if text.contains(IGNORED) {
            self.ignored = Some(number);
        } else if text.contains(TRACEBACK) {
            // The first one behind "ignored in" is the ignored one's.
            self.traceback = match self.ignored.take() {
                Some(ignored) if number <= ignored + 2 => None,
                _ => Some(number),
            };
        } else if text.contains(HANDLED) {
            // Not "the direct cause of": that one did lead to the next.
            if self.last[0].is_some_and(|last| number <= last + 3) {
                self.last = [self.last[1], None];
            }
        } else if !known && (patterns.otherwise.is_match(said) || self.ends_a_traceback(number, said)) {
            self.last = [Some(number), self.last[0]];
        }
    }

    fn ends_a_traceback(&self, number: u64, said: &str) -> bool {
        let patterns = patterns();
        self.in_a_traceback(number) && patterns.exception.is_match(said) && !patterns.handed_on.is_match(said)
    }

    /// Whether a line may be the end of a traceback.
    pub(crate) fn in_a_traceback(&self, number: u64) -> bool {
        self.traceback.is_some_and(|at| number <= at + LINES_TOGETHER)
    }

    /// Whether there is any.
    pub(crate) fn any(&self) -> bool {
        self.last[0].is_some()
    }

    /// Whether one stands so shortly before this line that the line may tell of it.
    pub(crate) fn led_to(&self, number: u64) -> bool {
        self.last[0].is_some_and(|last| number <= last + LINES_TOGETHER)
    }
}

/// Whether an exception (`Type: message`) says that another process failed, or repeats what another one said.
pub fn repeats_another(exception: &str) -> bool {
    patterns().handed_on.is_match(exception)
}

struct Patterns {
    speaker: Regex,
    exception: Regex,
    handed_on: RegexSet,
    otherwise: RegexSet,
    network: Regex,
    gpu_memory: Regex,
}

fn patterns() -> &'static Patterns {
    static COMPILED: OnceLock<Patterns> = OnceLock::new();
    COMPILED.get_or_init(|| {
        // Who prints a line: `[rank0]:`, `trainer-1  |`, a time, a logger's level.
        let speaker = r"^(?:\[[^\]]*\]:?\s*|<std(?:err|out)>:\s*|\([^)]*\)\s+|\S+\s+\|\s|\d[\d:.,TZ+/-]*\s+|(?:ERROR|CRITICAL|FATAL|WARNING|INFO)[ :]+)*";
        let exception = r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure|NotFound|Expired|Empty|Exhausted|BadZipFile|Iteration|Timeout)\d*(?::\s.*|\s*$)";
        Patterns {
            speaker: Regex::new(speaker).expect("a constant, compiled by every test of a log"),
            exception: Regex::new(exception).expect("a constant, compiled by every test of a log"),
            handed_on: RegexSet::new(HANDED_ON).expect("a constant, compiled by every test of a log"),
            network: Regex::new(NETWORK).expect("a constant, compiled by every test of a log"),
            gpu_memory: Regex::new(GPU_MEMORY).expect("a constant, compiled by every test of a log"),
            otherwise: RegexSet::new(REPORTED_OTHERWISE).expect("a constant, compiled by every test of a log"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(log: &str) -> Option<u64> {
        let mut others = Others::default();
        for (index, line) in log.lines().enumerate() {
            others.line(index as u64 + 1, line, line.contains("KNOWN"));
        }
        others.last[0]
    }

    const HEAD: &str = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n";

    #[test]
    fn an_exception_of_the_job_itself_is_one_whoever_prints_it() {
        for line in [
            "KeyError: 'labels'",
            "AssertionError",
            "[rank3]: ValueError: too few",
            "trainer-1  | my.module.LoadingError: x",
            "2024-05-01 12:00:00,123 KeyboardInterrupt",
            "[1,0]<stderr>:TypeError: f() takes 1 positional argument",
        ] {
            assert_eq!(last(&format!("{HEAD}{line}\n")), Some(3), "{line}");
            assert_eq!(last(&format!("step\n{line}\n")), None, "no traceback: {line}");
        }
    }

    #[test]
    fn what_is_known_handed_on_handled_or_ignored_is_none() {
        for line in [
            "RuntimeError: KNOWN",
            "ConnectionResetError: [Errno 104] Connection reset by peer",
            "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
            "RuntimeError: Caught OSError in DataLoader worker process 3.",
            "    raise ValueError('x')",
        ] {
            assert_eq!(last(&format!("{HEAD}{line}\n")), None, "{line}");
        }
        assert_eq!(last(&format!("Exception ignored in: <function x>\n{HEAD}TypeError: x\n")), None);
        let chain = "\nDuring handling of the above exception, another exception occurred:\n\n";
        assert_eq!(last(&format!("{HEAD}KeyError: 1\n{chain}{HEAD}OSError: KNOWN\n")), None);
        let cause = "\nThe above exception was the direct cause of the following exception:\n\n";
        assert_eq!(last(&format!("{HEAD}KeyError: 1\n{cause}{HEAD}OSError: KNOWN\n")), Some(3));
    }

    #[test]
    fn an_exception_that_repeats_another_is_known_without_a_log() {
        let gloo = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:4711";
        assert!(repeats_another(gloo) && repeats_another("torch.distributed.DistBackendError: NCCL error"));
        assert!(!repeats_another("KeyError: 'labels'"));
    }

    #[test]
    fn some_are_reported_without_a_traceback() {
        for line in [
            "/b/aten/Loss.cu:242: nll_loss: block: [0,0,0], thread: [0,0,0] device-side assert triggered",
            "Segmentation fault (core dumped)",
            "slurmstepd: error: *** JOB 42 ON n1 CANCELLED AT 2024-05-01T12:00:00 DUE TO TIME LIMIT ***",
        ] {
            assert_eq!(last(line), Some(1), "{line}");
        }
    }

    #[test]
    fn a_job_that_goes_on_for_long_did_not_fail_of_it() {
        let mut others = Others::default();
        for (index, line) in format!("{HEAD}KeyError: 1").lines().enumerate() {
            others.line(index as u64 + 1, line, false);
        }
        assert!(others.any() && others.led_to(4) && !others.led_to(5000));
    }
}
