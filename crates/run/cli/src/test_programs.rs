//! How do tests write a program that they execute?
//!
//! By another process: a descriptor that is open for writing here is inherited by what other tests start just then, and
//! execve(2) refuses the file with ETXTBSY until those have executed.

use std::path::Path;
use std::process::Command;

/// An executable file of this text.
pub fn write(path: &Path, text: &str) {
    let script = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
    let written = Command::new("/bin/sh").args(["-c", script]).arg(path).arg(text).status();
    assert!(written.unwrap().success(), "{} could not be written", path.display());
}
