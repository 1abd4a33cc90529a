//! `ullage check`: is this machine or container fit for a multi-process PyTorch job? Reads limits as a job
//! started from here would meet them; changes nothing.
//!
//! The surprise: what is tight here is what ullage itself runs under, so that a thread or a child that cannot be had
//! has to be an answer, and no end of the check.

mod checked;
mod libraries;
mod limits;
mod memory;
mod shared;

use self::checked::Check;
use crate::arguments::CheckArguments;
use crate::{printer, python_facts};
use std::time::{Duration, Instant};
use ullage_kernel::KernelRoot;
use ullage_model::MachineFacts;
use ullage_report::text::{self, CheckRow};

/// How long a Python may take to say what it is, without importing torch.
const PYTHON: Duration = Duration::from_millis(1200);

/// Prints the table; ends with 0 even where something is tight: the check itself went well.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<u8> {
    if arguments.clean {
        return super::clean::run(arguments);
    }
    let deadline = Instant::now() + PYTHON;
    let python = arguments.python.clone().unwrap_or_else(|| "python3".into());
    let asked = python_facts::ask_named(arguments.python.as_deref())?;
    let root = KernelRoot::live();
    let machine = root.machine_facts();
    let mut checks = of_machine(&root, &machine);
    checks.extend(libraries::checks(&python, asked.without_importing(deadline), &machine.kernel));
    if arguments.json {
        let list: Vec<_> = checks.iter().map(Check::json).collect();
        let whole = serde_json::json!({"schema": 1, "checks": list});
        printer::out(&ullage_report::json::text(&whole))?;
    } else {
        let rows: Vec<CheckRow> = checks.into_iter().map(|check| check.row).collect();
        printer::out(&text::check(&rows, &printer::stdout_style()))?;
    }
    Ok(0)
}

fn of_machine(root: &KernelRoot, machine: &MachineFacts) -> Vec<Check> {
    let mut buffer = Vec::new();
    let host = root.host(&mut buffer);
    let mut checks = vec![limits::map_count(machine)];
    match root.process(i32::try_from(std::process::id()).unwrap_or(0)) {
        Ok(own) => {
            checks.extend(limits::of_process(root, &own, &mut buffer));
            checks.extend(shared::checks(root, &own));
            checks.push(shared::temporary(&own));
            checks.extend(memory::groups(root, &own, machine, &mut buffer));
        }
        Err(error) => checks.push(Check::unknown("/proc", error.to_string())),
    }
    checks.push(memory::of_host(&host));
    checks.push(memory::overcommit(machine, &host));
    checks
}
