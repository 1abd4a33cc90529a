//! Builders of samples: only what a test cares about is said, the rest is a plausible calm job.

use ullage_model::process::DescriptorKinds;
use ullage_model::{
    At, Bytes, CgroupReading, ClockTicks, Descriptors, FilesystemReading, HostReading, Mappings, Measured,
    ProcessId, ProcessMemory, ProcessReading, ProcessState, Sample,
};

/// Begins a reading of a process: python3, child of 1, start time 1000 + pid, 100 MiB, 10 descriptors,
/// mappings not asked.
pub fn process(pid: i32) -> ReadingBuilder {
    ReadingBuilder {
        reading: ProcessReading {
            id: ProcessId { pid, start: ClockTicks(1000 + pid as u64) },
            parent: 1,
            state: ProcessState::Sleeping,
            comm: "python3".into(),
            threads: 1,
            cpu: ClockTicks(0),
            minor_faults: 0,
            major_faults: 0,
            memory: Measured::Known(ProcessMemory {
                peak_virtual: Bytes(1 << 30),
                virtual_size: Bytes(1 << 30),
                peak_resident: Bytes(100 << 20),
                anonymous: Bytes(100 << 20),
                ..ProcessMemory::default()
            }),
            descriptors: Measured::Known(Descriptors { count: 10, kinds: Measured::default() }),
            mappings: Measured::default(),
            exclusive: Measured::default(),
            run_delay_ns: Measured::default(),
        },
    }
}

/// A reading under construction.
#[derive(Clone, Debug)]
pub struct ReadingBuilder {
    reading: ProcessReading,
}

impl ReadingBuilder {
    /// Start time.
    pub fn start(mut self, ticks: u64) -> Self {
        self.reading.id.start = ClockTicks(ticks);
        self
    }
    /// Parent.
    pub fn parent(mut self, pid: i32) -> Self {
        self.reading.parent = pid;
        self
    }
    /// comm.
    pub fn comm(mut self, comm: &str) -> Self {
        self.reading.comm = comm.into();
        self
    }
    /// Threads.
    pub fn threads(mut self, threads: u32) -> Self {
        self.reading.threads = threads;
        self
    }
    /// Descriptors, kinds not asked.
    pub fn fds(mut self, count: u64) -> Self {
        self.reading.descriptors = Measured::Known(Descriptors { count, kinds: Measured::default() });
        self
    }
    /// Descriptors by kind; the count is their sum.
    pub fn fd_kinds(mut self, kinds: DescriptorKinds) -> Self {
        let count = kinds.torch_shared + kinds.files + kinds.sockets + kinds.pipes + kinds.other;
        self.reading.descriptors = Measured::Known(Descriptors { count, kinds: Measured::Known(kinds) });
        self
    }
    /// Mappings, of which so many are torch's segments of 4 KiB; the rest is anonymous.
    pub fn mappings(mut self, count: u64, torch_shared: u64) -> Self {
        self.reading.mappings = Measured::Known(Mappings {
            count,
            torch_shared,
            torch_shared_bytes: Bytes(torch_shared * 4096),
            anonymous: count.saturating_sub(torch_shared),
            ..Mappings::default()
        });
        self
    }
    /// Sizes.
    pub fn memory(mut self, memory: ProcessMemory) -> Self {
        self.reading.memory = Measured::Known(memory);
        self
    }
    /// A zombie.
    pub fn zombie(mut self) -> Self {
        self.reading.state = ProcessState::Zombie;
        self.reading.memory = Measured::Missing(ullage_model::Missing::Vanished);
        self.reading.descriptors = Measured::Missing(ullage_model::Missing::Vanished);
        self
    }
    /// The reading.
    pub fn build(self) -> ProcessReading {
        self.reading
    }
}

/// A sample under construction.
#[derive(Clone, Debug, Default)]
pub struct SampleBuilder {
    sample: Sample,
}

impl SampleBuilder {
    /// At so many seconds.
    pub fn at(seconds: f64) -> SampleBuilder {
        SampleBuilder { sample: Sample { at: At::from_seconds(seconds), ..Sample::default() } }
    }
    /// Adds a process.
    pub fn process(mut self, process: ReadingBuilder) -> Self {
        self.sample.processes.push(process.build());
        self
    }
    /// Adds a cgroup.
    pub fn cgroup(mut self, cgroup: CgroupReading) -> Self {
        self.sample.cgroups.push(cgroup);
        self
    }
    /// Adds a filesystem.
    pub fn filesystem(mut self, filesystem: FilesystemReading) -> Self {
        self.sample.filesystems.push(filesystem);
        self
    }
    /// The machine.
    pub fn host(mut self, host: HostReading) -> Self {
        self.sample.host = host;
        self
    }
    /// The sample.
    pub fn build(self) -> Sample {
        self.sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builder_says_what_it_was_given_and_is_calm_otherwise() {
        let sample = SampleBuilder::at(2.0).process(process(7).fds(99).mappings(65530, 64000)).build();
        let reading = &sample.processes[0];
        assert_eq!((sample.at.seconds(), reading.id.pid), (2.0, 7));
        assert_eq!(reading.descriptors.as_known().unwrap().count, 99);
        assert_eq!(reading.mappings.as_known().unwrap().anonymous, 1530);
    }
}
