//! One fuzzer for all entries: which one, `ULLAGE_FUZZ_TARGET` says. One binary, because each more would be linked
//! with all of Arrow and Parquet again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static ENTRY: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let entry = ENTRY.get_or_init(|| {
        let name = std::env::var("ULLAGE_FUZZ_TARGET").unwrap_or_default();
        match ullage_fuzzing::target(&name) {
            Some(entry) => entry,
            None => {
                let known: Vec<&str> = ullage_fuzzing::TARGETS.iter().map(|(name, _)| *name).collect();
                eprintln!("ULLAGE_FUZZ_TARGET must be one of: {}", known.join(" "));
                std::process::exit(2);
            }
        }
    });
    entry(data);
});
