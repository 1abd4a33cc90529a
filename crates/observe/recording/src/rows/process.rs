//! How do a process's reading, its mappings and its descriptors by kind stand in their tables?

use super::Placed;
use crate::row::{BadRow, Record, RowReader, RowWriter};
use crate::table::{Table, DESCRIPTORS, MAPPINGS, PROCESSES};
use ullage_model::process::{DescriptorKinds, FilesIn};
use ullage_model::{
    ClockTicks, Descriptors, Exclusive, Mappings, Measured, Missing, ProcessId, ProcessMemory,
    ProcessReading, ProcessState,
};

/// The reading without its mappings and kinds of descriptors: where they are known, `decode` leaves zeros that
/// the rows of the other two tables replace.
impl Record for Placed<ProcessReading> {
    const TABLE: &'static Table = &PROCESSES;

    fn encode(&self, row: &mut RowWriter<'_>) {
        let process = &self.what;
        row.u64(self.tick);
        row.u64(self.position);
        row.i32(process.id.pid);
        row.u64(process.id.start.0);
        row.i32(process.parent);
        match process.state {
            ProcessState::Other(letter) => row.text(&format!("other:{letter}")),
            known => row.text(state_word(known)),
        }
        row.text(&process.comm);
        row.u64(process.threads.into());
        row.u64(process.cpu.0);
        row.u64(process.minor_faults);
        row.u64(process.major_faults);
        match process.memory {
            Measured::Known(memory) => {
                row.bytes(memory.peak_virtual);
                row.bytes(memory.virtual_size);
                row.bytes(memory.locked);
                row.bytes(memory.peak_resident);
                row.bytes(memory.anonymous);
                row.bytes(memory.file);
                row.bytes(memory.shared);
                row.bytes(memory.page_tables);
                row.bytes(memory.swap);
            }
            Measured::Missing(why) => {
                row.absent("memory", why);
                row.nulls(9);
            }
        }
        row.measured("descriptors", process.descriptors.as_ref().map(|descriptors| descriptors.count));
        if let Measured::Known(Descriptors { kinds: Measured::Missing(why), .. }) = process.descriptors {
            row.absent("descriptor_kinds", why);
        }
        if let Measured::Missing(why) = process.mappings {
            row.absent("mappings", why);
        }
        match process.exclusive {
            Measured::Known(exclusive) => {
                row.bytes(exclusive.bytes);
                row.bytes(exclusive.error);
            }
            Measured::Missing(why) => {
                row.absent("exclusive", why);
                row.nulls(2);
            }
        }
        row.optional_u64(process.run_delay_ns.known());
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (tick, position) = (row.u64()?, row.u64()?);
        let id = read_id(row)?;
        let parent = row.i32()?;
        let state = read_state(row.text()?).ok_or_else(|| row.bad("is no state of a process"))?;
        let comm = row.text()?.to_owned();
        let threads = u32::try_from(row.u64()?).map_err(|_| row.bad("is out of range"))?;
        let cpu = ClockTicks(row.u64()?);
        let (minor_faults, major_faults) = (row.u64()?, row.u64()?);
        let memory = match row.absent("memory") {
            Some(why) => {
                row.skip(9);
                Measured::Missing(why)
            }
            None => Measured::Known(ProcessMemory {
                peak_virtual: row.bytes()?,
                virtual_size: row.bytes()?,
                locked: row.bytes()?,
                peak_resident: row.bytes()?,
                anonymous: row.bytes()?,
                file: row.bytes()?,
                shared: row.bytes()?,
                page_tables: row.bytes()?,
                swap: row.bytes()?,
            }),
        };
        let kinds = match row.absent("descriptor_kinds") {
            Some(why) => Measured::Missing(why),
            None => Measured::Known(DescriptorKinds::default()),
        };
        let descriptors = row.measured("descriptors").map(|count| Descriptors { count, kinds });
        let mappings = match row.absent("mappings") {
            Some(why) => Measured::Missing(why),
            None => Measured::Known(Mappings::default()),
        };
        // A null without a reason: the recording is of a version that did not know these columns.
        let exclusive = match (row.optional_bytes(), row.optional_bytes()) {
            (Some(bytes), Some(error)) => Measured::Known(Exclusive { bytes, error }),
            _ => Measured::Missing(row.absent("exclusive").unwrap_or(Missing::NotAsked)),
        };
        let run_delay_ns = row.optional_u64().map_or_else(Measured::default, Measured::Known);
        let what = ProcessReading {
            id,
            parent,
            state,
            comm,
            threads,
            cpu,
            minor_faults,
            major_faults,
            memory,
            descriptors,
            mappings,
            exclusive,
            run_delay_ns,
        };
        Ok(Placed { tick, position, what })
    }
}

fn read_id(row: &mut RowReader<'_>) -> Result<ProcessId, BadRow> {
    Ok(ProcessId { pid: row.i32()?, start: ClockTicks(row.u64()?) })
}

const fn state_word(state: ProcessState) -> &'static str {
    match state {
        ProcessState::Running => "running",
        ProcessState::Sleeping => "sleeping",
        ProcessState::DiskSleep => "disk-sleep",
        ProcessState::Stopped => "stopped",
        ProcessState::Zombie => "zombie",
        ProcessState::Dead => "dead",
        ProcessState::Other(_) => "other",
    }
}

fn read_state(word: &str) -> Option<ProcessState> {
    Some(match word {
        "running" => ProcessState::Running,
        "sleeping" => ProcessState::Sleeping,
        "disk-sleep" => ProcessState::DiskSleep,
        "stopped" => ProcessState::Stopped,
        "zombie" => ProcessState::Zombie,
        "dead" => ProcessState::Dead,
        _ => ProcessState::Other(word.strip_prefix("other:")?.chars().next()?),
    })
}

impl Record for Placed<(ProcessId, Mappings)> {
    const TABLE: &'static Table = &MAPPINGS;

    fn encode(&self, row: &mut RowWriter<'_>) {
        let (id, mappings) = &self.what;
        row.u64(self.tick);
        row.u64(self.position);
        row.i32(id.pid);
        row.u64(id.start.0);
        row.u64(mappings.count);
        row.u64(mappings.torch_shared);
        row.bytes(mappings.torch_shared_bytes);
        row.u64(mappings.other_shared);
        row.u64(mappings.anonymous);
        row.u64(mappings.file);
        row.bytes(mappings.file_bytes);
        row.bytes(mappings.data_file_bytes);
        row.optional_u64(mappings.executable_bytes.known().map(|bytes| bytes.0));
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (tick, position) = (row.u64()?, row.u64()?);
        let id = read_id(row)?;
        let mappings = Mappings {
            count: row.u64()?,
            torch_shared: row.u64()?,
            torch_shared_bytes: row.bytes()?,
            other_shared: row.u64()?,
            anonymous: row.u64()?,
            file: row.u64()?,
            file_bytes: row.bytes()?,
            // Null in recordings of versions that did not count it.
            data_file_bytes: row.optional_bytes().unwrap_or_default(),
            executable_bytes: row.optional_bytes().map_or_else(Measured::default, Measured::Known),
        };
        Ok(Placed { tick, position, what: (id, mappings) })
    }
}

impl Record for Placed<(ProcessId, DescriptorKinds)> {
    const TABLE: &'static Table = &DESCRIPTORS;

    fn encode(&self, row: &mut RowWriter<'_>) {
        let (id, kinds) = &self.what;
        row.u64(self.tick);
        row.u64(self.position);
        row.i32(id.pid);
        row.u64(id.start.0);
        row.u64(kinds.torch_shared);
        row.u64(kinds.files);
        row.u64(kinds.sockets);
        row.u64(kinds.pipes);
        row.u64(kinds.other);
        let most = kinds.most_files.as_deref();
        row.optional_text(most.map(|most| most.folder.as_str()));
        row.optional_u64(most.map(|most| most.count));
        row.optional_text(most.map(|most| most.example.as_str()));
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (tick, position) = (row.u64()?, row.u64()?);
        let id = read_id(row)?;
        let mut kinds = DescriptorKinds {
            torch_shared: row.u64()?,
            files: row.u64()?,
            sockets: row.u64()?,
            pipes: row.u64()?,
            other: row.u64()?,
            most_files: None,
        };
        // Null where they are everywhere, and in a recording of a version that did not know these columns.
        if let (Some(folder), Some(count), Some(example)) =
            (row.optional_text(), row.optional_u64(), row.optional_text())
        {
            kinds.most_files =
                Some(Box::new(FilesIn { folder: folder.to_owned(), count, example: example.to_owned() }));
        }
        Ok(Placed { tick, position, what: (id, kinds) })
    }
}
