//! Feeds every file of the kept corpus and every regression to its entry. A panic names the file.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Bytes of every file in `folder`, with its path.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("a directory that can be read").path());
    let mut files: Vec<_> =
        paths.map(|path| (path.clone(), std::fs::read(&path).expect("a file that can be read"))).collect();
    files.sort();
    files
}

#[test]
fn corpus_and_regressions_pass() {
    let (mut seeds, mut regressions) = (0, 0);
    for (name, target) in ullage_fuzzing::TARGETS {
        let corpus = files(&root().join("corpus").join(name));
        assert!(!corpus.is_empty(), "fuzz/corpus/{name} is empty: run fuzz/seed.py");
        seeds += corpus.len();
        let reproducers = files(&root().join("regressions").join(name));
        regressions += reproducers.len();
        for (path, bytes) in corpus.iter().chain(&reproducers) {
            let result = std::panic::catch_unwind(|| target(bytes));
            assert!(result.is_ok(), "{name} fails on {}", path.display());
            // A torn file is what a reader meets when its writer was killed.
            for part in 1..8 {
                let torn = &bytes[..bytes.len() * part / 8];
                let result = std::panic::catch_unwind(|| target(torn));
                assert!(result.is_ok(), "{name} fails on {part}/8 of {}", path.display());
            }
        }
    }
    println!(
        "replayed {seeds} seeds and {regressions} regressions of {} targets",
        ullage_fuzzing::TARGETS.len()
    );
}

#[test]
fn every_folder_belongs_to_an_entry() {
    for kind in ["corpus", "regressions"] {
        let Ok(entries) = std::fs::read_dir(root().join(kind)) else { continue };
        for entry in entries {
            let entry = entry.expect("a directory that can be read");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            let file = entry.file_type().expect("a type").is_file();
            assert!(
                file || ullage_fuzzing::target(&name).is_some(),
                "fuzz/{kind}/{name} belongs to no entry"
            );
        }
    }
}
