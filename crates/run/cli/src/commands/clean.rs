//! `ullage check --clean`: which shared memory did dead processes of this user leave, and which of it is to go? Asks
//! on a terminal; elsewhere it lists, and removes only with `--yes`.

use crate::arguments::CheckArguments;
use crate::printer;
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use ullage_kernel::KernelRoot;
use ullage_report::format;
use ullage_report::text::{self, LeftoverList, LeftoverRow};
use ullage_supervisor::leftovers::{survey, Leftover, Place, Remover, Survey};

const SHM: &str = "/dev/shm";

/// What became of those that were to go.
#[derive(Debug, Default)]
struct Removal {
    removed: Vec<String>,
    bytes: u64,
    refused: Vec<(String, String)>,
}

/// Lists, asks, removes. Ends with 0: what could not be removed after all is told.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<u8> {
    let (root, shm) = (KernelRoot::live(), Path::new(SHM));
    let found = survey(&root, shm);
    if arguments.json {
        let removal = arguments.yes.then(|| remove(&root, shm, found.orphans.iter()));
        printer::out(&ullage_report::json::text(&json(&found, removal.as_ref())))?;
        return Ok(0);
    }
    printer::out(&text::leftovers(&list(&found), &printer::stdout_style()))?;
    if found.orphans.is_empty() {
        return Ok(0);
    }
    let chosen = if arguments.yes {
        (0..found.orphans.len()).collect()
    } else if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        ask(&found.orphans)?
    } else {
        printer::note("nothing was removed: not a terminal, and no --yes");
        return Ok(0);
    };
    let removal = remove(&root, shm, chosen.iter().filter_map(|&at| found.orphans.get(at)));
    for (what, why) in &removal.refused {
        printer::note(&format!("kept {what}: {why}"));
    }
    let count = format::count(removal.removed.len() as u64);
    printer::note(&format!("removed {count} segments, {}", format::bytes(removal.bytes)));
    Ok(0)
}

/// Which ones, by the person in front of the terminal.
fn ask(orphans: &[Leftover]) -> anyhow::Result<BTreeSet<usize>> {
    let bytes = orphans.iter().map(|orphan| orphan.bytes).sum();
    printer::out(&format!(
        "\nRemove all {} ({})? y for all, numbers for some (1 3-5), anything else for none: ",
        format::count(orphans.len() as u64),
        format::bytes(bytes)
    ))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(choice(&answer, orphans.len()))
}

/// What an answer chooses, from 0: all of them, those that it names, or nothing, where a part of it is not understood.
fn choice(answer: &str, count: usize) -> BTreeSet<usize> {
    let answer = answer.trim();
    if matches!(answer, "y" | "Y" | "yes") {
        return (0..count).collect();
    }
    let mut chosen = BTreeSet::new();
    for word in answer.split([' ', ',']).filter(|word| !word.is_empty()) {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) if 1 <= first && first <= last && last <= count => {
                chosen.extend(first - 1..last);
            }
            _ => return BTreeSet::new(),
        }
    }
    chosen
}

fn remove<'a>(root: &KernelRoot, shm: &Path, orphans: impl Iterator<Item = &'a Leftover>) -> Removal {
    let mut remover = Remover::new(root, shm);
    let mut removal = Removal::default();
    for orphan in orphans {
        match remover.remove(orphan) {
            Ok(()) => {
                removal.removed.push(what(&orphan.place));
                removal.bytes = removal.bytes.saturating_add(orphan.bytes);
            }
            Err(refusal) => removal.refused.push((what(&orphan.place), refusal.to_string())),
        }
    }
    removal
}

/// Where it is, as a person would name it.
pub(super) fn what(place: &Place) -> String {
    match place {
        Place::File { path, .. } => path.display().to_string(),
        Place::Sysv { id, key } => format!("shmid {id} (key {key:#x})"),
    }
}

fn list(found: &Survey) -> LeftoverList {
    let rows = |leftovers: &[Leftover]| {
        leftovers
            .iter()
            .map(|leftover| LeftoverRow {
                what: what(&leftover.place),
                bytes: leftover.bytes,
                age_s: leftover.age_s,
                because: leftover.because.clone(),
            })
            .collect()
    };
    LeftoverList {
        orphans: rows(&found.orphans),
        retained: rows(&found.retained),
        alone: vec![
            (found.in_use.count, found.in_use.bytes, "your segments in use".into()),
            (
                found.unknown.count,
                found.unknown.bytes,
                "your files that no process has open, of a kind that is not known to be temporary".into(),
            ),
            (found.others.count, found.others.bytes, "segments of other users".into()),
        ],
        cannot_know: found.cannot_know.clone(),
    }
}

fn json(found: &Survey, removal: Option<&Removal>) -> serde_json::Value {
    let rows = |leftovers: &[Leftover]| -> Vec<serde_json::Value> {
        leftovers
            .iter()
            .map(|leftover| {
                serde_json::json!({
                    "what": what(&leftover.place),
                    "kind": match leftover.place { Place::File { .. } => "file", Place::Sysv { .. } => "sysv" },
                    "bytes": leftover.bytes,
                    "age_s": leftover.age_s,
                    "maker_pid": leftover.maker,
                    "because": leftover.because,
                })
            })
            .collect()
    };
    let amount = |amount: &ullage_supervisor::leftovers::Amount| serde_json::json!({"count": amount.count, "bytes": amount.bytes});
    let mut whole = serde_json::json!({
        "schema": 1,
        "orphans": rows(&found.orphans),
        "kept": rows(&found.retained),
        "in_use": amount(&found.in_use),
        "unknown": amount(&found.unknown),
        "other_users": amount(&found.others),
        "cannot_know": found.cannot_know,
    });
    if let Some(removal) = removal {
        whole["removed"] = serde_json::json!(removal.removed);
        let refused =
            removal.refused.iter().map(|(what, why)| serde_json::json!({"what": what, "because": why}));
        whole["refused"] = refused.collect();
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_chooses_all_some_or_nothing() {
        let some = |answer: &str| choice(answer, 5).into_iter().collect::<Vec<_>>();
        assert_eq!(some("y\n"), [0, 1, 2, 3, 4]);
        assert_eq!(some("1 3-4\n"), [0, 2, 3]);
        assert_eq!(some("5,5"), [4]);
        for nothing in ["", "\n", "n", "no", "0", "6", "2-9", "1 x", "4-2", "yy", "-", "1-", "٣"] {
            assert!(some(nothing).is_empty(), "{nothing:?}");
        }
    }
}
