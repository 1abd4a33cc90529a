//! Compiles `python/agent`, the library that the command writes beside the agent's Python files, lists these files, and
//! says what `--version` does of this build.
//!
//! With rustc alone: it depends on nothing but std, and cargo has no stable way to put one package's library into
//! another's binary. The surprise: it is optimised in every profile, because what is put into jobs must be small.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    library(&out);
    std::fs::write(out.join("agent_parts.rs"), parts()).expect("OUT_DIR can be written");
    println!("cargo::rustc-env=ULLAGE_VERSION={}", version());
}

/// The number, the commit where this is a clone, and what it was built for.
fn version() -> String {
    let number = std::env::var("CARGO_PKG_VERSION").expect("cargo sets CARGO_PKG_VERSION");
    let profile = std::env::var("PROFILE").expect("cargo sets PROFILE");
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    let commit = commit().unwrap_or_else(|| "no commit known".into());
    format!("{number} ({commit}, {profile}, {target})")
}

/// Of this clone alone: an unpacked archive may lie in a repository of something else.
fn commit() -> Option<String> {
    let root = Path::new("../../..");
    if !root.join(".git").exists() {
        return None;
    }
    let asked = |arguments: &[&str]| {
        let said =
            Command::new("git").arg("-C").arg(root).args(arguments).env_remove("GIT_DIR").output().ok()?;
        said.status
            .success()
            .then(|| String::from_utf8(said.stdout).ok().map(|text| text.trim().to_owned()))?
    };
    // Grows with each commit and each checkout.
    if let Some(log) = asked(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={}", root.join(log).display());
    }
    asked(&["log", "-1", "--abbrev=12", "--format=%h of %cs"])
}

/// `PARTS`: what each file of the folder is called in a job, where it shadows no module of the program, and its content.
fn parts() -> String {
    let folder = Path::new("../../../python/ullage/agent");
    println!("cargo::rerun-if-changed={}", folder.display());
    let folder = folder.canonicalize().expect("the agent's files are there");
    let files =
        folder.read_dir().expect("the agent's files can be listed").map(|file| file.map(|file| file.path()));
    let mut files: Vec<PathBuf> = files.collect::<Result<_, _>>().expect("the agent's files can be listed");
    files.retain(|file| file.extension().is_some_and(|extension| extension == "py"));
    files.sort();
    let mut text = "const PARTS: &[(&str, &[u8])] = &[\n".to_owned();
    for file in files {
        let name =
            file.file_name().and_then(|name| name.to_str()).expect("names of the agent's files are text");
        // Python looks for this one by its name.
        let prefix = if name == "sitecustomize.py" { "" } else { "ullage_" };
        writeln!(
            text,
            "    (\"{prefix}{name}\", include_bytes!({:?}).as_slice()),",
            file.display().to_string()
        )
        .expect("a String takes all");
    }
    text + "];\n"
}

/// python/agent.
fn library(out: &Path) {
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
    // Two builds of one commit are alike, wherever they are made.
    command.args(["--remap-path-prefix", &format!("{}=agent", source.display())]);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        command.arg("-C").arg(format!("linker={}", linker.to_string_lossy()));
    }
    let unwinder = unwinder(out);
    if let Some(folder) = &unwinder {
        command.arg("-L").arg(folder);
    }
    command.arg("-o").arg(&library).arg(source.join("lib.rs"));
    let status = command.status().unwrap_or_else(|error| panic!("rustc cannot be run: {error}"));
    assert!(status.success(), "python/agent does not compile");
}

/// A folder in which the linker finds gcc's unwinder to be linked in: to load libgcc_s beside the library was a fifth of
/// what the agent costs each Python (0.3 ms). None where gcc does not have it: std's own choice is as good, but slower.
fn unwinder(out: &Path) -> Option<PathBuf> {
    // zig, with which wheels are made, brings one of its own; and this machine's serves no other kind of machine.
    if std::env::var_os("RUSTC_LINKER").is_some() || std::env::var_os("TARGET") != std::env::var_os("HOST") {
        return None;
    }
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let archive = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    if !archive.is_absolute() {
        return None;
    }
    let folder = out.join("unwinder");
    std::fs::create_dir_all(&folder).ok()?;
    // A linker takes a text of this name for a script.
    std::fs::write(folder.join("libgcc_s.so"), format!("INPUT(\"{}\")\n", archive.display())).ok()?;
    Some(folder)
}
