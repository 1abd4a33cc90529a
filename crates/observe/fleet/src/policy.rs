//! Every threshold of the answer, each with its reason.

/// SIGTERM.
pub(crate) const SIGTERM: i32 = 15;
/// SIGHUP, SIGINT, SIGKILL and SIGTERM: sent to end a process. Kills of the kernel's are findings.
pub(crate) const SENT_SIGNALS: [i32; 4] = [1, 2, 9, SIGTERM];
/// SIGILL, SIGBUS, SIGFPE and SIGSEGV: faults of the process itself.
pub(crate) const FAULT_SIGNALS: [i32; 4] = [4, 7, 8, 11];
/// A shell's exit status for a process that a signal killed, less the signal.
pub(crate) const SHELL_SIGNALS_FROM: i32 = 128;

/// Error of a clock of which nothing is recorded, seconds: the kernel's own word for a clock that nothing keeps right is
/// 16 s (`NTP_PHASE_LIMIT`, include/linux/timex.h), and less would be a guess.
pub(crate) const UNKNOWN_CLOCK_ERROR_S: f64 = 16.0;

/// The agent sends an exception when it happens; what lies between that and its time in the recording, seconds.
pub(crate) const EXCEPTION_ERROR_S: f64 = 0.05;

/// A finding that took effect later than this after an echo explains what came of the echo, not the echo; seconds.
pub(crate) const AFTER_AN_ECHO_S: f64 = 5.0;

/// Parts of a recording are copied every 60 s. One whose last reading is older than the others' end by this was cut off;
/// half of 60 s more allows for slow disks and clocks.
pub(crate) const LOST_AFTER_S: f64 = 90.0;

/// Fewer peers have no spread that is worth the name.
pub(crate) const LEAST_PEERS: usize = 8;
/// Distance from the median in standard deviations, as the MAD estimates them. Of 65,000 figures of a normal fleet
/// (8,192 recordings), 0.0001 lie farther than 6.
pub(crate) const OUTLIER_DEVIATIONS: f64 = 6.0;
/// The standard deviation of a normal distribution is this often its MAD.
pub(crate) const DEVIATION_OF_MAD: f64 = 1.4826;
/// A MAD of zero says that most are alike, not that a page more matters: share of the median that is always needed. A fleet in
/// which one rank uses half more than the others is worth a line.
pub(crate) const LEAST_SHARE: f64 = 0.5;
/// And this much at least, by figure: below it a difference is a library or a buffer.
pub(crate) const LEAST_DISTANCE: [(&str, f64); 5] = [
    ("memory", 67_108_864.0),
    // 4 MiB a minute: what a loader's warm-up leaves in a run of a few minutes.
    ("growth", 69_905.0),
    ("mappings", 1_000.0),
    ("descriptors", 64.0),
    ("shm_bytes", 67_108_864.0),
];
/// Of any other figure: private memory of a role.
pub(crate) const LEAST_DISTANCE_ELSE: f64 = 67_108_864.0;

/// A fact counts as what most nodes have where this share of the other nodes agrees on one value: names, paths and counters
/// differ everywhere and are no fact of a fleet.
pub(crate) const MAJORITY: f64 = 0.8;

/// Sizes from here on that differ by no more than this share are alike: MemTotal of equal machines differs by what the firmware
/// and the kernel set aside. Smaller numbers are counts and limits, which are equal or not.
pub(crate) const ALIKE_FROM: u64 = 1 << 20;
pub(crate) const ALIKE_SHARE: f64 = 0.02;
