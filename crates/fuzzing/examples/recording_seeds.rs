//! Seeds that only the writer of recordings can make, one JSON object a line: `{"entry": …, "hex": …}`.
//! Called by fuzz/seed.py. The recording is written twice: as a killed writer leaves it, and closed.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool of the developers: it may fail loudly")]

use std::collections::BTreeMap;
use ullage_model::{
    AgentMessage, At, ClockTicks, Ending, EndingSource, Event, EventKind, ExceptionReport, MachineFacts,
    Outcome, ProcessId, Role, RunFacts, RunId,
};
use ullage_recording::{Writer, FORMAT};
use ullage_testing::SampleBuilder;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let mut seeds: Vec<(&str, Vec<u8>)> = Vec::new();
    for closed in [false, true] {
        let dir = folder.path().join(if closed { "closed" } else { "killed" });
        let mut writer = Writer::create(&dir, &run()).unwrap();
        write(&mut writer);
        if closed {
            let ended = RunFacts {
                outcome: Some(Outcome::from_ending(Ending::Exited(1))),
                duration_s: Some(3.0),
                ..run()
            };
            writer.close(&ended).unwrap();
        } else {
            std::mem::forget(writer);
        }
        let files: BTreeMap<String, Vec<u8>> = std::fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
            .collect();
        for (name, bytes) in &files {
            match name.as_str() {
                "run.json" => seeds.push(("run-json", bytes.clone())),
                name if name.ends_with(".arrows") => seeds.push(("recording-tail", bytes.clone())),
                _ => {}
            }
        }
        seeds.push(("recording-image", ullage_fuzzing::pack(&files)));
    }
    for (entry, bytes) in seeds {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{}", serde_json::json!({"entry": entry, "hex": hex}));
    }
}

fn write(writer: &mut Writer) {
    let trainer = ProcessId { pid: 4712, start: ClockTicks(9000) };
    let event = |seconds, what| Event { at: At::from_seconds(seconds), what };
    writer.event(&event(0.0, EventKind::Machine { facts: Box::new(run().machine) }));
    for tick in 0..3u32 {
        let process = |pid| {
            ullage_testing::process(pid)
                .start(9000)
                .parent(4711)
                .mappings(1000 * u64::from(tick), 990)
                .fds(12)
        };
        let sample =
            SampleBuilder::at(f64::from(tick)).process(process(4712)).process(process(4713).zombie());
        writer.sample(&sample.build());
    }
    writer.event(&event(2.1, EventKind::RoleKnown { id: trainer, role: Role::Trainer }));
    let report = ExceptionReport {
        left: "process".into(),
        type_name: "RuntimeError".into(),
        text: "unable to mmap 320 bytes from file </torch_4712_1_2>: Cannot allocate memory (12)".into(),
        ..ExceptionReport::default()
    };
    let message = AgentMessage::Exception(Box::new(report));
    writer.event(&event(2.2, EventKind::Agent { id: Some(trainer), pid: 4712, message }));
    let ended =
        EventKind::ProcessEnded { id: trainer, ending: Ending::Exited(1), source: EndingSource::Wait };
    writer.event(&event(2.3, ended));
    writer.event(&event(2.4, EventKind::Finished { survivors: vec![] }));
}

fn run() -> RunFacts {
    RunFacts {
        format: FORMAT,
        run: RunId("20261121-035512-python-4711".into()),
        command: vec!["python".into(), "train.py".into()],
        started_unix: 1_795_233_312.25,
        main: Some(ProcessId { pid: 4712, start: ClockTicks(9000) }),
        recorder: Some(ProcessId { pid: 4711, start: ClockTicks(8990) }),
        interval_s: 1.0,
        agent: true,
        node: None,
        job: None,
        rank: None,
        environment: BTreeMap::new(),
        machine: MachineFacts { kernel: "6.12.0".into(), page_size: 4096, ..MachineFacts::default() },
        outcome: None,
        duration_s: None,
        cost: None,
        not_seen: vec!["Nothing.".into()],
        memory_max: None,
        node_rank: None,
        attempt: None,
        launcher: None,
        remedies: Vec::new(),
    }
}
