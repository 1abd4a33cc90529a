//! A folder that looks like a machine's /proc and /sys to [`KernelRoot::at`].

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use ullage_kernel::KernelRoot;

/// The folder; removed when dropped.
#[derive(Debug)]
pub struct FakeRoot {
    folder: TempDir,
}

impl Default for FakeRoot {
    fn default() -> Self {
        FakeRoot::new()
    }
}

impl FakeRoot {
    /// A machine without processes, with 16 GiB of memory and usual settings, and an empty kernel log.
    pub fn new() -> FakeRoot {
        FakeRoot::of(tempfile::tempdir().unwrap())
    }

    /// The same on a tmpfs, as which the /dev/shm of its processes is then seen.
    pub fn on_tmpfs() -> FakeRoot {
        FakeRoot::of(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    fn of(folder: TempDir) -> FakeRoot {
        let root = FakeRoot { folder };
        root.meminfo(16 << 20, 8 << 20);
        root.file("proc/vmstat", "pswpin 0\npswpout 0\noom_kill 0\n");
        root.file("proc/stat", "processes 100\n");
        root.file("proc/pressure/memory", "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n");
        root.file("proc/sys/fs/file-nr", "592\t0\t2466183\n");
        root.file("proc/sys/vm/max_map_count", "65530\n");
        root.file("dev/kmsg", "");
        root.file("proc/self/mountinfo", "");
        root
    }

    /// What readers are given.
    pub fn root(&self) -> KernelRoot {
        KernelRoot::at(self.folder.path())
    }

    /// Path of something below it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    /// Writes any file, with the folders above it.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &FakeRoot {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Appends to `/dev/kmsg`.
    pub fn kernel_log(&self, line: &str) -> &FakeRoot {
        let mut content = fs::read(self.path("dev/kmsg")).unwrap();
        content.extend_from_slice(line.as_bytes());
        content.push(b'\n');
        self.file("dev/kmsg", content)
    }

    /// `/proc/meminfo`, in KiB.
    pub fn meminfo(&self, total: u64, available: u64) -> &FakeRoot {
        self.file(
            "proc/meminfo",
            format!(
                "MemTotal: {total} kB\nMemFree: {available} kB\nMemAvailable: {available} kB\nCached: 0 kB\n\
                 SwapTotal: 0 kB\nSwapFree: 0 kB\nAnonPages: 0 kB\nShmem: 0 kB\nCommitLimit: {total} kB\nCommitted_AS: 0 kB\n"
            ),
        )
    }

    /// Mounts cgroup v1 memory and pids, and v2, at their usual places.
    pub fn cgroup_mounts(&self) -> &FakeRoot {
        self.file(
            "proc/self/mountinfo",
            "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )
    }

    /// A v1 memory group.
    pub fn cgroup_v1_memory(
        &self,
        path: &str,
        usage: u64,
        limit: u64,
        failcnt: u64,
        oom_kill: u64,
    ) -> &FakeRoot {
        let file = |name: &str, value: String| {
            self.file(&format!("sys/fs/cgroup/memory{path}/memory.{name}"), value);
        };
        file("usage_in_bytes", format!("{usage}\n"));
        file("max_usage_in_bytes", format!("{usage}\n"));
        file("limit_in_bytes", format!("{limit}\n"));
        file("failcnt", format!("{failcnt}\n"));
        file("oom_control", format!("oom_kill_disable 0\nunder_oom 0\noom_kill {oom_kill}\n"));
        file("stat", format!("cache 0\nrss {usage}\ntotal_cache 0\ntotal_rss {usage}\ntotal_shmem 0\n"));
        self
    }

    /// A v2 group with the memory controller; `max` as the kernel writes it.
    pub fn cgroup_v2_memory(&self, path: &str, current: u64, max: &str, oom_kill: u64) -> &FakeRoot {
        let file = |name: &str, value: String| {
            self.file(&format!("sys/fs/cgroup/unified{path}/memory.{name}"), value);
        };
        file("current", format!("{current}\n"));
        file("max", format!("{max}\n"));
        file("high", "max\n".into());
        file("events", format!("low 0\nhigh 0\nmax {oom_kill}\noom {oom_kill}\noom_kill {oom_kill}\n"));
        file("stat", format!("anon {current}\nfile 0\nkernel 0\nshmem 0\ninactive_file 0\n"));
        self
    }

    /// A pids group: `hierarchy` is `pids` (v1) or `unified` (v2).
    pub fn cgroup_pids(
        &self,
        hierarchy: &str,
        path: &str,
        current: u64,
        max: &str,
        refused: u64,
    ) -> &FakeRoot {
        let base = format!("sys/fs/cgroup/{hierarchy}{path}");
        self.file(&format!("{base}/pids.current"), format!("{current}\n"));
        self.file(&format!("{base}/pids.max"), format!("{max}\n"));
        self.file(&format!("{base}/pids.events"), format!("max {refused}\n"))
    }

    /// Begins a process; [`FakeProcess::write`] puts it there.
    pub fn process(&self, pid: i32) -> FakeProcess<'_> {
        FakeProcess {
            fake: self,
            pid,
            parent: 1,
            start: 1000 + pid as u64,
            comm: "python3".into(),
            state: 'S',
            arguments: vec!["python3".into(), "train.py".into()],
            resident_kib: 10_000,
            shared_kib: 0,
            virtual_kib: 100_000,
            descriptors: vec!["/dev/null".into(); 3],
            maps: None,
            cgroup: String::new(),
            nofile: 1024,
            exit_code: 0,
            program: 0,
            faults: 10,
            pagemap: None,
        }
    }

    /// The process is gone.
    pub fn remove(&self, pid: i32) {
        fs::remove_dir_all(self.path(&format!("proc/{pid}"))).unwrap();
    }

    /// Gone too, but its directory's inode is not free for the next process of this pid, as in the kernel.
    pub fn rename_away(&self, pid: i32) {
        fs::rename(self.path(&format!("proc/{pid}")), self.path(&format!("was-{pid}"))).unwrap();
    }
}

/// One process; fields as in its files.
#[derive(Debug)]
pub struct FakeProcess<'a> {
    fake: &'a FakeRoot,
    pid: i32,
    parent: i32,
    start: u64,
    comm: String,
    state: char,
    arguments: Vec<String>,
    resident_kib: u64,
    shared_kib: u64,
    virtual_kib: u64,
    descriptors: Vec<String>,
    maps: Option<String>,
    cgroup: String,
    nofile: u64,
    exit_code: i32,
    program: u64,
    faults: u64,
    pagemap: Option<Vec<u64>>,
}

impl FakeProcess<'_> {
    /// Parent's pid.
    pub fn parent(mut self, pid: i32) -> Self {
        self.parent = pid;
        self
    }
    /// Start time, clock ticks.
    pub fn start(mut self, ticks: u64) -> Self {
        self.start = ticks;
        self
    }
    /// comm.
    pub fn comm(mut self, comm: &str) -> Self {
        self.comm = comm.into();
        self
    }
    /// Arguments.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        self
    }
    /// RssAnon, RssShmem and VmSize in KiB.
    pub fn memory(mut self, anonymous_kib: u64, shared_kib: u64, virtual_kib: u64) -> Self {
        (self.resident_kib, self.shared_kib, self.virtual_kib) = (anonymous_kib, shared_kib, virtual_kib);
        self
    }
    /// Link targets of its descriptors.
    pub fn descriptors(mut self, targets: Vec<String>) -> Self {
        self.descriptors = targets;
        self
    }
    /// Content of maps.
    pub fn maps(mut self, maps: String) -> Self {
        self.maps = Some(maps);
        self
    }
    /// Content of cgroup.
    pub fn cgroup(mut self, cgroup: &str) -> Self {
        self.cgroup = cgroup.into();
        self
    }
    /// Soft limit of open files.
    pub fn nofile(mut self, limit: u64) -> Self {
        self.nofile = limit;
        self
    }
    /// Image mark: another one after exec.
    pub fn program(mut self, mark: u64) -> Self {
        self.program = mark;
        self
    }
    /// Minor faults so far.
    pub fn faults(mut self, faults: u64) -> Self {
        self.faults = faults;
        self
    }
    /// Entries of pagemap, from address 0 on.
    pub fn pagemap(mut self, entries: Vec<u64>) -> Self {
        self.pagemap = Some(entries);
        self
    }
    /// A zombie with this wait status.
    pub fn zombie(mut self, status: i32) -> Self {
        (self.state, self.exit_code) = ('Z', status);
        self
    }

    /// Writes its files, over those that were there.
    pub fn write(self) {
        let FakeProcess { fake, pid, parent, start, comm, state, exit_code, program, faults, .. } = &self;
        let base = format!("proc/{pid}");
        let head = format!(
            "{pid} ({comm}) {state} {parent} {pid} {pid} 0 -1 0 {faults} 0 0 0 5 5 0 0 20 0 1 0 {start}"
        );
        let (vsize, rss) = (self.virtual_kib * 1024, (self.resident_kib + self.shared_kib) / 4);
        let tail = format!("{vsize} {rss} 0 0 0 {program} {} {exit_code}", ["0"; 23].join(" "));
        fake.file(&format!("{base}/stat"), format!("{head} {tail}\n"));
        let mut status = format!("Name:\t{comm}\nUid:\t0\t0\t0\t0\n");
        if *state != 'Z' {
            status += &format!(
                "VmPeak:\t{0} kB\nVmSize:\t{0} kB\nVmLck:\t0 kB\nVmHWM:\t{1} kB\nRssAnon:\t{1} kB\nRssFile:\t0 kB\n\
                 RssShmem:\t{2} kB\nVmPTE:\t100 kB\nVmSwap:\t0 kB\n",
                self.virtual_kib, self.resident_kib, self.shared_kib
            );
        }
        fake.file(&format!("{base}/status"), status);
        fake.file(
            &format!("{base}/cmdline"),
            self.arguments.iter().map(|a| format!("{a}\0")).collect::<String>(),
        );
        fake.file(&format!("{base}/cgroup"), &self.cgroup);
        fake.file(&format!("{base}/limits"), limits(self.nofile));
        fake.file(&format!("{base}/maps"), self.maps.clone().unwrap_or_else(|| anonymous_maps(100)));
        if let Some(entries) = &self.pagemap {
            let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
            fake.file(&format!("{base}/pagemap"), bytes);
        }
        let fd = fake.path(&format!("{base}/fd"));
        if fd.exists() {
            fs::remove_dir_all(&fd).unwrap();
        }
        fs::create_dir_all(&fd).unwrap();
        for (number, target) in self.descriptors.iter().enumerate() {
            symlink(target, fd.join(number.to_string())).unwrap();
        }
        link_once(&fake.path(&format!("{base}/cwd")), "/");
        fs::create_dir_all(fake.path(&format!("{base}/ns"))).unwrap();
        link_once(&fake.path(&format!("{base}/ns/mnt")), "mnt:[1]");
        for folder in ["dev/shm", "tmp"] {
            fs::create_dir_all(fake.path(&format!("{base}/root/{folder}"))).unwrap();
        }
    }
}

fn link_once(path: &Path, target: &str) {
    if fs::symlink_metadata(path).is_err() {
        symlink(target, path).unwrap();
    }
}

/// `maps` of so many anonymous mappings.
pub fn anonymous_maps(count: u64) -> String {
    (0..count).map(|n| format!("{:x}-{:x} rw-p 00000000 00:00 0 \n", n << 16, (n << 16) + 4096)).collect()
}

/// `maps` of so many torch segments.
pub fn torch_maps(count: u64) -> String {
    (0..count)
        .map(|n| {
            format!("{:x}-{:x} rw-s 00000000 00:1b {n} /dev/shm/torch_1_2_{n}\n", n << 12, (n + 1) << 12)
        })
        .collect()
}

fn limits(nofile: u64) -> String {
    format!(
        "Limit                     Soft Limit           Hard Limit           Units     \n\
         Max file size             unlimited            unlimited            bytes     \n\
         Max stack size            8388608              unlimited            bytes     \n\
         Max processes             96365                96365                processes \n\
         Max open files            {nofile}                 1048576              files     \n\
         Max locked memory         8388608              8388608              bytes     \n\
         Max address space         unlimited            unlimited            bytes     \n"
    )
}
