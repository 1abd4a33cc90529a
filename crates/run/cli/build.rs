//! Compiles `python/agent`, the library that the command writes beside the agent's Python files.
//!
//! With rustc alone: it depends on nothing but std, and cargo has no stable way to put one package's library into
//! another's binary. The surprise: it is optimised in every profile, because what is put into jobs must be small.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = Path::new("../../../python/agent/src");
    println!("cargo::rerun-if-changed={}", source.display());
    let rustc = std::env::var_os("RUSTC").expect("cargo sets RUSTC");
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    let library = out.join("ullage_native.so");
    let mut command = Command::new(rustc);
    command.args([
        "--edition",
        "2021",
        "--crate-type",
        "cdylib",
        "--crate-name",
        "ullage_native",
        "--target",
        &target,
    ]);
    command.args(["-C", "opt-level=s", "-C", "lto=fat", "-C", "codegen-units=1", "-C", "strip=symbols"]);
    // A start does not pay for another library, where the linker has it.
    command.args(["-C", "link-arg=-static-libgcc"]);
    // Two builds of one commit are alike, wherever they are made.
    command.args(["--remap-path-prefix", &format!("{}=agent", source.display())]);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        command.arg("-C").arg(format!("linker={}", linker.to_string_lossy()));
    }
    command.arg("-o").arg(&library).arg(source.join("lib.rs"));
    let status = command.status().unwrap_or_else(|error| panic!("rustc cannot be run: {error}"));
    assert!(status.success(), "python/agent does not compile");
}
