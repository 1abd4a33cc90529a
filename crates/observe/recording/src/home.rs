//! Where do recordings live, and what is a new one called?

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use ullage_model::names::ENV_HOME;
use ullage_model::RunId;

/// Longest name of a command inside a run's name, bytes.
const MOST_NAME: usize = 40;

/// The directory of all recordings: `$ULLAGE_HOME`, else `$XDG_STATE_HOME/ullage`, else `~/.local/state/ullage`.
/// None where none of the three is set. Relative paths of the XDG variable are ignored, as its specification asks.
pub fn home(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = || path("XDG_STATE_HOME").filter(|path| path.is_absolute());
    path(ENV_HOME)
        .or_else(|| state().map(|state| state.join("ullage")))
        .or_else(|| path("HOME").map(|home| home.join(".local/state/ullage")))
}

/// The name of a run, which is that of its directory: `20261121-035512-train-4711`. The time is UTC, so that
/// names sort by time on machines of all zones; the number is ullage's own pid.
pub fn run_id(started_unix: f64, command: &[String], pid: u32) -> RunId {
    let seconds = started_unix.clamp(0.0, 253_402_300_799.0) as u64;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let name = sanitised(&command_name(command));
    RunId(format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{name}-{pid}"))
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar (years of 400-year cycles that begin
/// in March, so that the leap day is a year's last).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}

/// What a person calls this command: the script or module that a Python runs, else the program.
fn command_name(command: &[String]) -> String {
    let file = |path: &str| Path::new(path).file_name().map(|f| f.to_string_lossy().into_owned());
    let program = command.first().and_then(|program| file(program)).unwrap_or_default();
    if program.starts_with("python") || program == "torchrun" {
        let module = command.iter().position(|a| a == "-m").and_then(|at| command.get(at + 1));
        let script = command[1..].iter().find(|argument| argument.ends_with(".py"));
        if let Some(script) = script.and_then(|script| file(script)) {
            return script.trim_end_matches(".py").to_owned();
        }
        if let Some(module) = module {
            return module.rsplit('.').next().unwrap_or_default().to_owned();
        }
    }
    program
}

/// Only what needs no quoting in a shell, and never a leading dot.
fn sanitised(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).take(MOST_NAME).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() {
        "run".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_with(set: &[(&str, &str)]) -> Option<PathBuf> {
        home(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let all = [("ULLAGE_HOME", "/u"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(home_with(&all), Some("/u".into()));
        assert_eq!(home_with(&all[1..]), Some("/x/ullage".into()));
        assert_eq!(home_with(&all[2..]), Some("/h/.local/state/ullage".into()));
        assert_eq!(home_with(&[]), None);
        assert_eq!(home_with(&[("ULLAGE_HOME", ""), ("HOME", "/h")]), Some("/h/.local/state/ullage".into()));
        assert_eq!(
            home_with(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")]),
            Some("/h/.local/state/ullage".into())
        );
    }

    fn name(command: &[&str]) -> String {
        let command: Vec<String> = command.iter().map(|argument| (*argument).to_owned()).collect();
        run_id(1_795_233_312.9, &command, 4711).0
    }

    #[test]
    fn a_run_is_named_by_time_command_and_pid() {
        assert_eq!(name(&["python", "train.py", "--lr", "1"]), "20261121-035512-train-4711");
        assert_eq!(name(&["/usr/bin/python3.11", "-m", "pkg.fit"]), "20261121-035512-fit-4711");
        assert_eq!(name(&["./my job;rm"]), "20261121-035512-my_job_rm-4711");
        assert_eq!(name(&["python"]), "20261121-035512-python-4711");
        assert_eq!(name(&["../.hidden"]), "20261121-035512-hidden-4711");
        assert_eq!(name(&[]), "20261121-035512-run-4711");
        assert_eq!(name(&["日本"]), "20261121-035512-__-4711");
    }

    #[test]
    fn days_become_dates_also_around_leap_days() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(47_540), (2100, 2, 28));
        assert_eq!(civil(47_541), (2100, 3, 1));
        assert_eq!(run_id(f64::NAN, &[], 1).0, "19700101-000000-run-1");
        assert_eq!(run_id(1e300, &[], 1).0, "99991231-235959-run-1");
    }
}
