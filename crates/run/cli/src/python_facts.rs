//! What does a Python on this machine say of itself? Asked of a child that prints what it knows line by line
//! (python/ullage/agent/facts.py), and not waited for beyond a deadline: importing torch from a cold disk takes many
//! seconds.

use crate::agent_files::FACTS;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::Instant;
use ullage_model::{Fact, Facts};

/// What the second line brings, at most.
const BY_IMPORTING: &[&str] = &[
    "loaded.blas",
    "loaded.openmp",
    "numpy.blas",
    "numpy.version",
    "torch.build.BLAS_INFO",
    "torch.cpu_capability",
    "torch.mkl",
    "torch.onednn",
    "torch.openmp",
    "torch.sharing_strategy",
    "torch.threads",
];

/// A Python that is being asked.
#[derive(Debug)]
pub struct Asked {
    python: PathBuf,
    child: Result<(Child, Receiver<Facts>), std::io::Error>,
}

/// Starts to ask this Python.
pub fn ask(python: &Path) -> Asked {
    let child = Command::new(python)
        .args(["-c", FACTS])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let child = child.map(|mut child| {
        let (sender, receiver) = channel();
        if let Some(output) = child.stdout.take() {
            let listen = move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let Ok(facts) = serde_json::from_str(&line) else { continue };
                    if sender.send(facts).is_err() {
                        return;
                    }
                }
            };
            // Where no thread is to be had, nobody listens, and the answer is the same as of a Python that ended.
            let _ = std::thread::Builder::new().spawn(listen);
        }
        (child, receiver)
    });
    Asked { python: python.to_owned(), child }
}

/// The same; a Python that was named by the user and cannot be started is an error.
pub fn ask_named(named: Option<&Path>) -> anyhow::Result<Asked> {
    let asked = ask(named.unwrap_or(Path::new("python3")));
    match (named, asked.refused()) {
        (Some(python), Some(error)) => {
            anyhow::bail!(
                "{} cannot be started: {error}; give --python the path of the job's Python",
                python.display()
            )
        }
        _ => Ok(asked),
    }
}

impl Asked {
    /// What kept it from being started.
    pub fn refused(&self) -> Option<&std::io::Error> {
        self.child.as_ref().err()
    }

    /// What it has said by then; what it has not is missing.
    pub fn answer(self, deadline: Instant) -> Facts {
        self.lines(2, deadline)
    }

    /// What it knows without importing torch and numpy; not waited for longer than that takes.
    pub fn without_importing(self, deadline: Instant) -> Facts {
        let mut facts = self.lines(1, deadline);
        facts.retain(|name, fact| !(fact.is_missing() && BY_IMPORTING.contains(&name.as_str())));
        facts
    }

    fn lines(self, count: usize, deadline: Instant) -> Facts {
        let mut facts =
            Facts::from([("python.path".to_owned(), self.python.to_string_lossy().as_ref().into())]);
        let (mut child, lines) = match self.child {
            Ok(child) => child,
            Err(error) => {
                facts.insert(
                    "python.version".into(),
                    Fact::missing(format!("it could not be started: {error}")),
                );
                return facts;
            }
        };
        let mut late = None;
        for _ in 0..count {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(more) => facts.extend(more),
                Err(RecvTimeoutError::Timeout) => late = Some("Python did not answer in time (--deadline)"),
                Err(RecvTimeoutError::Disconnected) => late = Some("Python exited before it answered"),
            }
        }
        // Both may have happened already; then there is nothing to end.
        let _ = child.kill();
        let _ = child.wait();
        if let Some(why) = late {
            for name in std::iter::once("python.version").chain(BY_IMPORTING.iter().copied()) {
                facts.entry(name.to_owned()).or_insert_with(|| Fact::missing(why));
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn python(script: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python");
        crate::test_programs::write(&path, &format!("#!/bin/sh\n{script}\n"));
        (folder, path)
    }

    #[test]
    fn what_came_in_time_is_used_and_the_rest_says_why_it_is_not() {
        // What it says comes long before the time is over, and it would say more only hours later.
        let (_folder, path) = python("echo '{\"python.version\":\"3.11.7\"}'\nexec sleep 36000");
        let facts = ask(&path).answer(Instant::now() + Duration::from_secs(5));
        assert_eq!(facts["python.version"], "3.11.7".into());
        assert!(facts["torch.mkl"].is_missing());
    }

    #[test]
    fn the_first_line_is_enough_where_nothing_is_to_be_imported() {
        // A test that waited for more would take hours.
        let (_folder, path) = python("echo '{\"python.version\":\"3.11.7\"}'\nexec sleep 36000");
        let facts = ask(&path).without_importing(Instant::now() + Duration::from_secs(36000));
        assert_eq!(facts["python.version"], "3.11.7".into());
        assert!(!facts.contains_key("torch.mkl"), "it was not asked for");
    }

    #[test]
    fn a_python_that_was_named_must_be_there() {
        let error = ask_named(Some(Path::new("/no/such/python"))).unwrap_err().to_string();
        assert!(error.starts_with("/no/such/python cannot be started: No such file"), "{error}");
        let (_folder, path) = python("echo '{}'");
        assert!(ask_named(Some(&path)).is_ok());
    }

    #[test]
    fn a_python_that_is_not_there_says_so() {
        let asked = ask(Path::new("/no/such/python"));
        assert_eq!(asked.refused().map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
        let facts = asked.answer(Instant::now());
        assert!(facts["python.version"].is_missing());
    }
}
