//! Reads a snapshot that was written on another machine: foreign bytes of any size and age.

use anyhow::Context;
use std::io::Read;
use std::path::Path;
use ullage_model::Snapshot;

/// No snapshot of ours comes near this, bytes.
const MOST: u64 = 16 << 20;

/// The snapshot in a file.
pub fn read(path: &Path) -> anyhow::Result<Snapshot> {
    let name = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("{name} cannot be opened"))?;
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text).with_context(|| format!("{name} cannot be read"))?;
    let schema = serde_json::from_slice::<serde_json::Value>(&text)
        .ok()
        .and_then(|value| value.get("facts").and(value.get("schema")).and_then(serde_json::Value::as_u64));
    match schema {
        Some(schema) if schema > u64::from(Snapshot::SCHEMA) => {
            anyhow::bail!("{name} was written by a newer ullage (schema {schema}); update this one")
        }
        Some(_) => serde_json::from_slice(&text).with_context(|| format!("{name} is damaged")),
        None => anyhow::bail!("{name} is no snapshot; write one with: ullage snapshot -o FILE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_snapshot_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        let said = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path).map(|snapshot| snapshot.facts.len()).map_err(|error| error.to_string())
        };
        assert!(said("{}").unwrap_err().contains("ullage snapshot -o"));
        assert!(said("\u{0}\u{1}").unwrap_err().contains("no snapshot"));
        assert!(said(r#"{"schema": 9, "facts": {}}"#).unwrap_err().contains("newer"));
        assert!(said(r#"{"schema": 1, "facts": 3}"#).unwrap_err().contains("damaged"));
        let good = r#"{"schema":1,"ullage":"0.1.0","taken_unix":1.5,"redacted":true,"facts":{"a":1}}"#;
        assert_eq!(said(good), Ok(1));
    }
}
