//! One fuzzer for all entries: which one, `ULLAGE_FUZZ_TARGET` says. One binary, because each more would be linked
//! with all of Arrow and Parquet again.
//!
//! The surprise: libfuzzer-sys ends the process in its panic hook, before a `catch_unwind` can work. The reader of
//! recordings catches panics of Arrow on damaged bytes by design; only one that leaves an entry is a failure here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::panic::{catch_unwind, set_hook};
use std::sync::OnceLock;

static ENTRY: OnceLock<fn(&[u8])> = OnceLock::new();

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fuzz_target!(|data: &[u8]| {
    let entry = *ENTRY.get_or_init(chosen);
    if catch_unwind(|| entry(data)).is_err() {
        LAST_PANIC.with(|last| eprintln!("{}", last.borrow()));
        std::process::abort();
    }
});

/// The entry that was asked for; told once, with the panic hook set.
fn chosen() -> fn(&[u8]) {
    set_hook(Box::new(|panic| {
        LAST_PANIC.with(|last| *last.borrow_mut() = panic.to_string());
    }));
    let name = std::env::var("ULLAGE_FUZZ_TARGET").unwrap_or_default();
    ullage_fuzzing::target(&name).unwrap_or_else(|| {
        let known: Vec<&str> = ullage_fuzzing::TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("ULLAGE_FUZZ_TARGET must be one of: {}", known.join(" "));
        std::process::abort();
    })
}
