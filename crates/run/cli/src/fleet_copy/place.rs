//! Where on the shared disk does a recording go? `DIR/job=4711/node=n064/rank=3/attempt=0`: folders as engines of SQL read them
//! (Hive's), with `-` for none.
//!
//! The last folder belongs to one recording: making it is how a copier takes it, and one that another recording has is
//! passed over for the next number. What was recorded is private, so that folder is; those above it are as the user makes folders.

use anyhow::Context;
use serde_json::Value;
use std::fmt::Write;
use std::fs::DirBuilder;
use std::hash::{DefaultHasher, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use ullage_model::names::FILE_RUN;
use ullage_model::RunFacts;

/// A name of a file has 255 bytes at most; the longest beginning here is `attempt=`.
const MOST_VALUE: usize = 200;
/// Recordings of one place.
const MOST_ATTEMPTS: u32 = 100_000;

/// The folder of the recording in `from`, below `dir`: the one that it has, else a new one. `host` is the node where the facts
/// name none.
///
/// # Errors
/// Where the recording cannot be read, or nothing can be made there.
pub(super) fn claim(dir: &Path, from: &Path, host: &str) -> anyhow::Result<PathBuf> {
    let file = from.join(FILE_RUN);
    let text = std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let facts: RunFacts =
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", file.display()))?;
    let own = identity(&serde_json::from_slice(&text)?);
    let above = dir.join(folders(&facts, host));
    std::fs::create_dir_all(&above).with_context(|| format!("{} cannot be made", above.display()))?;
    let first = facts.attempt.unwrap_or(0);
    for attempt in first..first.saturating_add(MOST_ATTEMPTS) {
        let place = above.join(format!("attempt={attempt}"));
        match DirBuilder::new().mode(0o700).create(&place) {
            Ok(()) => return Ok(place),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if recorded_in(&place).is_some_and(|there| there == own) {
                    return Ok(place);
                }
            }
            Err(error) => return Err(error).with_context(|| format!("{} cannot be made", place.display())),
        }
    }
    anyhow::bail!("{} holds {MOST_ATTEMPTS} recordings", above.display())
}

/// `job=4711/node=n064/rank=3`.
fn folders(facts: &RunFacts, host: &str) -> PathBuf {
    let rank = facts.rank.map(|rank| rank.to_string());
    let values = [
        ("job", facts.job.as_deref()),
        ("node", facts.node.as_deref().or(Some(host))),
        ("rank", rank.as_deref()),
    ];
    values.into_iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect()
}

/// A value as it stands in the name of a folder: what a path or a reader of folders would take otherwise is percent-encoded.
fn encoded(value: Option<&str>) -> String {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return "-".to_owned() };
    if value == "-" {
        return "%2D".to_owned();
    }
    let mut text = String::new();
    for letter in value.chars() {
        let before = text.len();
        if letter.is_control() || "/=%".contains(letter) {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                let _ = write!(text, "%{byte:02X}");
            }
        } else {
            text.push(letter);
        }
        if text.len() > MOST_VALUE {
            // Two long names that begin alike stay two.
            let mut hash = DefaultHasher::new();
            hash.write(value.as_bytes());
            text.truncate(before);
            let _ = write!(text, "~{:016x}", hash.finish());
            return text;
        }
    }
    text
}

/// What makes a recording this one: no two have the same start, name and recorder.
fn identity(run: &Value) -> [Value; 3] {
    ["run", "started_unix", "recorder"].map(|name| run[name].clone())
}

fn recorded_in(place: &Path) -> Option<[Value; 3]> {
    let text = std::fs::read(place.join(FILE_RUN)).ok()?;
    Some(identity(&serde_json::from_slice(&text).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(home: &Path, name: &str, change: impl Fn(&mut Value)) -> PathBuf {
        let folder = home.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut run = serde_json::json!({
            "format": 1, "run": name, "command": ["x"], "started_unix": 7.25, "main": null, "recorder": null,
            "interval_s": 1.0, "agent": false, "node": null, "job": null, "rank": null, "environment": {},
            "machine": ullage_model::MachineFacts::default(), "outcome": null, "duration_s": null,
            "cost": null, "not_seen": [], "memory_max": null,
        });
        change(&mut run);
        std::fs::write(folder.join(FILE_RUN), run.to_string()).unwrap();
        folder
    }

    #[test]
    fn a_recording_has_one_folder_and_takes_no_other() {
        let home = tempfile::tempdir().unwrap();
        let fleet = home.path().join("fleet");
        let first = recording(home.path(), "a", |_| ());
        let second = recording(home.path(), "b", |_| ());
        let place = claim(&fleet, &first, "n1").unwrap();
        assert_eq!(place, fleet.join("job=-/node=n1/rank=-/attempt=0"));
        std::fs::copy(first.join(FILE_RUN), place.join(FILE_RUN)).unwrap();
        assert_eq!(claim(&fleet, &second, "n1").unwrap(), fleet.join("job=-/node=n1/rank=-/attempt=1"));
        assert_eq!(claim(&fleet, &first, "n1").unwrap(), place);
        let again = recording(home.path(), "c", |run| {
            run["attempt"] = 3.into();
            run["rank"] = 0.into();
            run["node"] = "n2".into();
        });
        assert_eq!(claim(&fleet, &again, "n1").unwrap(), fleet.join("job=-/node=n2/rank=0/attempt=3"));
        assert!(claim(&first.join(FILE_RUN), &second, "n1").is_err(), "a file is no folder");
        assert!(claim(&fleet, home.path(), "n1").is_err(), "no recording");
    }

    #[test]
    fn hostile_names_stay_one_folder_below_dir() {
        for (name, folder) in [
            ("4711_3", "job=4711_3"),
            ("../../etc", "job=..%2F..%2Fetc"),
            ("a=b%c", "job=a%3Db%25c"),
            ("x\ny\u{7f}\u{85}", "job=x%0Ay%7F%C2%85"),
            ("-", "job=%2D"),
            ("", "job=-"),
            ("Größe *?[", "job=Größe *?["),
        ] {
            let home = tempfile::tempdir().unwrap();
            let from = recording(home.path(), "r", |run| run["job"] = name.into());
            let fleet = home.path().join("f");
            let place = claim(&fleet, &from, "n").unwrap();
            assert_eq!(place, fleet.join(folder).join("node=n/rank=-/attempt=0"));
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let (one, other) = ("/".repeat(199) + "a", "/".repeat(199) + "b");
        let names = [&one, &other].map(|name| encoded(Some(name)));
        assert!(names.iter().all(|name| name.len() < 230 && name.contains('~')), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert!(encoded(Some(&"語".repeat(200))).len() < 230);
    }
}
