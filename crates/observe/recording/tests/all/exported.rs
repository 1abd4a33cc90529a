//! What is exported is what a replay shows, a file a table, whatever state the recording is in.

use crate::common::{image, replayed, run, samples, write};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs::File;
use std::path::Path;
use ullage_model::{At, Event, EventKind, Measured, ProcessReading, Role, Sample};
use ullage_recording::{repair, ExportError, Recording, TableFormat, Writer};

/// Every table, with how many rows the samples of `write` make.
const TABLES: [(&str, u64); 9] = [
    ("ticks", 40),
    ("pages", 0),
    ("segments", 0),
    ("cgroups", 40),
    ("filesystems", 40),
    ("descriptors", 70),
    ("mappings", 100),
    ("processes", 200),
    ("events", 14),
];

fn lines(dir: &Path, table: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(dir.join(format!("{table}.csv"))).unwrap();
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// tick, position, pid, comm, minor faults, anonymous bytes: of Parquet and of CSV.
type Row = (u64, u64, i32, String, u64, Option<u64>);

fn of_csv(dir: &Path) -> Vec<Row> {
    let lines = lines(dir, "processes");
    let column = |name: &str| lines[0].iter().position(|column| column == name).unwrap();
    let row = |line: &Vec<String>| {
        let number = |name| line[column(name)].parse().unwrap();
        let anonymous = line[column("anonymous_bytes")].parse().ok();
        let pid = line[column("pid")].parse().unwrap();
        (
            number("tick"),
            number("position"),
            pid,
            line[column("comm")].clone(),
            number("minor_faults"),
            anonymous,
        )
    };
    lines[1..].iter().map(row).collect()
}

fn of_parquet(dir: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(dir.join("processes.parquet")).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let column = |name: &str| schema.iter().position(|field| field.name() == name).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| {
        let number = |name| row.get_ulong(column(name)).unwrap();
        let anonymous = row.get_ulong(column("anonymous_bytes")).ok();
        let pid = row.get_int(column("pid")).unwrap();
        let comm = row.get_string(column("comm")).unwrap().clone();
        (number("tick"), number("position"), pid, comm, number("minor_faults"), anonymous)
    })
    .collect()
}

fn of_samples(samples: &[(u64, Sample)]) -> Vec<Row> {
    let row = |tick: u64, position: u64, process: &ProcessReading| {
        let anonymous = match process.memory {
            Measured::Known(memory) => Some(memory.anonymous.0),
            Measured::Missing(_) => None,
        };
        (tick, position, process.id.pid, process.comm.clone(), process.minor_faults, anonymous)
    };
    let rows = |(tick, sample): &(u64, Sample)| {
        (0..)
            .zip(&sample.processes)
            .map(|(position, process)| row(*tick, position, process))
            .collect::<Vec<_>>()
    };
    samples.iter().flat_map(rows).collect()
}

fn numbered(samples: Vec<Sample>) -> Vec<(u64, Sample)> {
    samples.into_iter().map(|sample| (sample.at.0 / 1_000_000_000, sample)).collect()
}

#[test]
fn every_row_is_exported_once_and_in_order_of_time() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    write(&dir, 40, 5, 20_000, false);
    // Live, torn (a part and the tail have the same rows), and closed.
    for state in ["live", "torn", "closed"] {
        if state != "live" {
            let tails: Vec<_> =
                image(&dir).into_iter().filter(|(name, _)| name.ends_with(".arrows")).collect();
            repair(&dir, |_| false).unwrap();
            if state == "torn" {
                tails.iter().for_each(|(name, bytes)| std::fs::write(dir.join(name), bytes).unwrap());
            }
        }
        let recording = Recording::open(&dir).unwrap();
        let expected = of_samples(&numbered(samples(&replayed(&recording))));
        assert_eq!(expected.len(), 200);
        let out = home.path().join(state);
        let exported = recording.export(&out, TableFormat::Csv, false).unwrap();
        assert_eq!(exported.damage, []);
        recording.export(&out, TableFormat::Parquet, false).unwrap();
        assert_eq!(of_csv(&out), expected, "{state}");
        assert_eq!(of_parquet(&out), expected, "{state}");
        let rows: Vec<_> = exported.files.iter().map(|(_, rows)| *rows).collect();
        assert_eq!(rows, TABLES.map(|(_, rows)| rows), "{state}");
        assert_eq!(lines(&out, "events").len(), 15);
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 2 * TABLES.len());
    }
}

#[test]
fn what_other_tools_would_join_for_is_in_each_row() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let items = write(&dir, 12, 3, 1_000_000, false);
    let worker = samples(&items)[0].processes[1].id;
    let mut writer = Writer::create(home.path().join("other"), &run()).unwrap();
    let role = EventKind::RoleKnown { id: worker, role: Role::LoaderWorker(Some(4)) };
    writer.event(&Event { at: At(5), what: role });
    samples(&items).iter().for_each(|sample| writer.sample(sample));
    drop(writer);
    let recording = Recording::open(home.path().join("other")).unwrap();
    recording.export(&home.path().join("out"), TableFormat::Csv, false).unwrap();
    let lines = lines(&home.path().join("out"), "processes");
    let value = |line: &[String], name: &str| {
        line[lines[0].iter().position(|column| column == name).unwrap()].clone()
    };
    let samples = numbered(samples(&replayed(&recording)));
    assert_eq!(samples.len(), 12);
    for line in &lines[1..] {
        let is_worker = value(line, "pid") == worker.pid.to_string();
        assert_eq!(value(line, "role"), if is_worker { "loader worker 4" } else { "" });
        let tick: u64 = value(line, "tick").parse().unwrap();
        let (_, sample) = samples.iter().find(|(number, _)| *number == tick).unwrap();
        assert_eq!(value(line, "seconds").parse::<f64>().unwrap(), sample.at.seconds());
        let part = |name: &str| value(line, name).parse::<u64>().ok();
        let rss = ["anonymous_bytes", "file_bytes", "shared_bytes"]
            .iter()
            .try_fold(0, |sum, name| Some(sum + part(name)?));
        assert_eq!(part("rss_bytes"), rss);
    }
}

#[test]
fn an_incomplete_sample_is_left_out_of_all_tables() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    write(&dir, 12, 3, 1_000_000, false);
    let mut damaged = std::fs::read(dir.join("processes.arrows")).unwrap();
    let middle = damaged.len() / 2 / 8 * 8;
    damaged[middle - 400..middle].fill(0xee);
    std::fs::write(dir.join("processes.arrows"), damaged).unwrap();
    let recording = Recording::open(&dir).unwrap();
    let left = numbered(samples(&replayed(&recording)));
    assert!((6..12).contains(&left.len()), "{} samples", left.len());
    let exported = recording.export(&home.path().join("out"), TableFormat::Csv, false).unwrap();
    assert!(exported.damage[0].what.contains("incomplete"), "{:?}", exported.damage);
    assert_eq!(of_csv(&home.path().join("out")), of_samples(&left));
    let ticks: Vec<u64> =
        lines(&home.path().join("out"), "ticks")[1..].iter().map(|line| line[0].parse().unwrap()).collect();
    assert_eq!(ticks, left.iter().map(|(tick, _)| *tick).collect::<Vec<_>>());
}

#[test]
fn a_table_without_rows_is_a_file_without_rows() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    drop(Writer::create(&dir, &run()).unwrap());
    let out = home.path().join("out");
    let recording = Recording::open(&dir).unwrap();
    recording.export(&out, TableFormat::Parquet, false).unwrap();
    recording.export(&out, TableFormat::Csv, false).unwrap();
    for (table, _) in TABLES {
        assert_eq!(lines(&out, table).len(), 1, "{table}");
        let file = File::open(out.join(format!("{table}.parquet"))).unwrap();
        assert_eq!(SerializedFileReader::new(file).unwrap().metadata().file_metadata().num_rows(), 0);
    }
}

#[test]
fn nothing_is_overwritten_unless_that_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    write(&dir, 3, 2, 1_000_000, true);
    let recording = Recording::open(&dir).unwrap();
    let out = home.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("events.csv"), "thesis").unwrap();
    let refused = recording.export(&out, TableFormat::Csv, false).unwrap_err();
    assert!(matches!(refused, ExportError::Exists { .. }) && refused.to_string().contains("--force"));
    assert_eq!(image(&out).len(), 1);
    assert_eq!(image(&out)["events.csv"], b"thesis");
    recording.export(&out, TableFormat::Csv, true).unwrap();
    assert_eq!(lines(&out, "events").len(), 2);
    let before = image(&dir);
    let refused = recording.export(&dir, TableFormat::Csv, true).unwrap_err();
    assert!(matches!(refused, ExportError::IntoRecording { .. }), "{refused}");
    assert_eq!(image(&dir), before);
}
