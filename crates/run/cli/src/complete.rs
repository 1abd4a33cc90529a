//! What does <TAB> offer? Names of recordings, ids of causes, remedies, programs; and the script that a shell loads for it.
//!
//! The script asks the command itself at each <TAB>, through the variable [`ENV_COMPLETE`]: what is offered is never older
//! than the command. Whatever cannot be read offers nothing.

use crate::{home, machine, remedies};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::CompleteEnv;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;

/// Names the shell that asks. Not `COMPLETE`, which is clap's own default: a job's environment may hold that.
const ENV_COMPLETE: &str = "_ULLAGE_COMPLETE";

/// Answers a shell that asks what may come next; false where none does.
pub fn answered(command: fn() -> clap::Command) -> bool {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(command).var(ENV_COMPLETE);
    // A shell that is not known, or does not read on: there is nobody to tell.
    asked.try_complete(std::env::args_os(), here.as_deref()).unwrap_or(true)
}

/// What `shell` loads; none where it is not known.
pub fn script(shell: &str) -> Option<String> {
    let mut text = Vec::new();
    Shells::builtins()
        .completer(shell)?
        .write_registration(ENV_COMPLETE, "ullage", "ullage", "ullage", &mut text)
        .ok()?;
    Some(String::from_utf8_lossy(&text).trim().to_owned() + "\n")
}

/// Names of recordings, the newest first, each with its command; and directories, where a path is typed.
pub fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut all = named_runs(typed);
        if typed.as_encoded_bytes().contains(&b'/') {
            all.extend(PathCompleter::dir().complete(typed));
        }
        all
    })
}

/// The same, and snapshot files.
pub fn runs_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut all = named_runs(typed);
        all.extend(PathCompleter::any().complete(typed));
        all
    })
}

fn named_runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let alive = |id: &ullage_model::ProcessId| machine::is_alive(*id);
    let runs = home::home().ok().and_then(|home| ullage_recording::list_runs(&home, alive).ok());
    let begins = |name: &str| {
        name.starts_with(typed) || ullage_recording::time_of(name).is_some_and(|time| time.starts_with(typed))
    };
    let mut all = Vec::new();
    for (order, run) in runs.unwrap_or_default().into_iter().enumerate().filter(|(_, run)| begins(&run.name))
    {
        // A shell puts in what begins as what was typed does.
        let time = ullage_recording::time_of(&run.name).filter(|_| !run.name.starts_with(typed));
        let command =
            run.facts.map(|facts| ullage_report::format::command(&facts.command)).unwrap_or_default();
        let value = time.unwrap_or(&run.name).to_owned();
        all.push(CompletionCandidate::new(value).help(Some(command.into())).display_order(Some(order)));
    }
    all
}

/// Ids of causes, each with its title; and files.
pub fn causes_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let begins = |id: &str| typed.to_str().is_some_and(|typed| id.starts_with(typed));
        let causes = ullage_diagnosis::causes().iter().filter(|cause| begins(cause.id));
        let mut all: Vec<_> =
            causes.map(|cause| CompletionCandidate::new(cause.id).help(Some(cause.title.into()))).collect();
        if all.is_empty() || !typed.is_empty() {
            all.extend(PathCompleter::file().stdio().complete(typed));
        }
        all
    })
}

/// A list of remedies: what may follow its last comma.
pub fn remedies() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let Some(typed) = typed.to_str() else { return Vec::new() };
        let (before, last) = typed.rsplit_once(',').map_or(("", typed), |(before, last)| (before, last));
        let comma = if typed.contains(',') { "," } else { "" };
        let chosen: Vec<&str> = before.split(',').collect();
        let names = std::iter::once("all").chain(remedies::EVERY.into_iter().map(remedies::Remedy::name));
        names
            .flat_map(|name| [name.to_owned(), format!("-{name}")])
            .filter(|name| name != "-all" && name.starts_with(last) && !chosen.contains(&name.as_str()))
            .filter(|name| last.starts_with('-') || !name.starts_with('-'))
            .map(|name| CompletionCandidate::new(format!("{before}{comma}{name}")))
            .collect()
    })
}

/// The job: a program, then files.
pub fn job() -> ArgValueCompleter {
    ArgValueCompleter::new(Job)
}

struct Job;

impl ValueCompleter for Job {
    fn complete(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        PathCompleter::any().complete(typed)
    }

    fn complete_at(&self, index: usize, typed: &OsStr) -> Vec<CompletionCandidate> {
        let is_path = typed.as_encoded_bytes().contains(&b'/');
        match (index, typed.to_str()) {
            (0, Some(typed)) if !typed.is_empty() && !is_path => programs(typed),
            _ => self.complete(typed),
        }
    }
}

/// Programs on $PATH whose name begins so.
fn programs(typed: &str) -> Vec<CompletionCandidate> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter_map(|folder| std::fs::read_dir(folder).ok());
    let runs = |entry: &std::fs::DirEntry| {
        // Through a link: the program is what it leads to.
        std::fs::metadata(entry.path()).is_ok_and(|is| is.is_file() && is.permissions().mode() & 0o111 != 0)
    };
    let mut names: Vec<String> = folders
        .flat_map(Iterator::flatten)
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(typed)) && runs(entry))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(completer: &ArgValueCompleter, typed: &str) -> Vec<String> {
        let candidates = completer.complete(OsStr::new(typed));
        candidates.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn each_shell_has_a_script_that_asks_the_command() {
        for shell in ["bash", "zsh", "fish"] {
            let script = script(shell).unwrap();
            assert!(script.contains(ENV_COMPLETE) && script.contains("ullage"), "{shell}: {script}");
        }
        assert_eq!(script("tcsh"), None);
    }

    #[test]
    fn remedies_follow_the_last_comma() {
        let remedies = remedies();
        assert_eq!(offered(&remedies, ""), ["all", "arena", "zygote", "nofile"]);
        assert_eq!(offered(&remedies, "all,z"), ["all,zygote"]);
        assert_eq!(offered(&remedies, "arena,a"), ["arena,all"]);
        assert_eq!(offered(&remedies, "-n"), ["-nofile"]);
    }

    #[test]
    fn a_cause_is_offered_by_its_beginning() {
        assert_eq!(offered(&causes_and_files(), "max-map"), ["max-map-count-exhausted"]);
        assert!(offered(&causes_and_files(), "").len() > 80);
    }

    #[test]
    fn a_program_is_offered_from_the_path() {
        assert!(programs("s").iter().any(|one| one.get_value() == "sh"));
        assert!(programs("no-program-is-named-so").is_empty());
    }
}
