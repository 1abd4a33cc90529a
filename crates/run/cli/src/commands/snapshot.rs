//! `ullage snapshot`: the facts of this machine that change how memory behaves, as JSON, to be laid beside those of
//! another.

use crate::arguments::SnapshotArguments;
use crate::{environment, printer, python_facts};
use anyhow::Context;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ullage_kernel::KernelRoot;
use ullage_model::{Fact, Facts, MachineFacts, Snapshot};
use ullage_report::redact::{redact, Private};

/// Writes it to a file, or to standard output.
pub fn run(arguments: &SnapshotArguments) -> anyhow::Result<u8> {
    let deadline = Instant::now() + Duration::from_secs_f64(arguments.deadline);
    let asked = python_facts::ask_named(arguments.python.as_deref())?;
    let mut facts = machine(&KernelRoot::live()).by_name();
    facts.extend(
        environment::recorded().into_iter().map(|(name, value)| (format!("env.{name}"), value.into())),
    );
    facts.extend(asked.answer(deadline));
    if facts.get("torch.threads").is_some_and(Fact::is_missing) && facts.contains_key("torch.version") {
        printer::note("importing torch took too long, so its build is missing; --deadline 30s waits longer");
    }
    let snapshot = Snapshot {
        schema: Snapshot::SCHEMA,
        ullage: env!("CARGO_PKG_VERSION").into(),
        taken_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
        redacted: !arguments.full,
        facts: if arguments.full { facts } else { redact(facts, &private()) },
    };
    let text = ullage_report::json::text(&serde_json::to_value(&snapshot)?);
    match arguments.output.as_deref() {
        None => printer::out(&text)?,
        Some(path) if path == Path::new("-") => printer::out(&text)?,
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("the snapshot could not be written to {}", path.display()))?,
    }
    Ok(0)
}

/// What was read of the machine, for snapshots and recordings alike.
pub fn machine(root: &KernelRoot) -> MachineFacts {
    let others: Facts = root.facts(i32::try_from(std::process::id()).unwrap_or(0));
    MachineFacts { others, ..root.machine_facts() }
}

fn private() -> Private {
    let variable = |name: &str| std::env::var(name).ok();
    let host = std::fs::read_to_string("/etc/hostname").ok().map(|name| name.trim().to_owned());
    let uname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Private {
        home: variable("HOME"),
        names: [variable("USER"), variable("LOGNAME"), host, Some(uname)].into_iter().flatten().collect(),
    }
}
