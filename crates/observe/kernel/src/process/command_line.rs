//! `/proc/PID/cmdline` and the few variables of `environ` that tell a process's place in the job.
//!
//! ```text
//! python\0train.py\0--lr\00.1\0        cmdline: each argument ends with NUL; empty for a zombie
//! RANK=3\0WORLD_SIZE=8\0               environ, as it was at exec; needs the right to ptrace
//! ```
//! The surprise: a program may overwrite its cmdline (setproctitle), so it is text without guarantee.

use crate::error::KernelError;
use crate::root::ProcessDir;
use rustix::io::Errno;

/// Arguments kept of a process, and bytes kept of each.
const ARGUMENTS: usize = 64;
const ARGUMENT_BYTES: usize = 256;

/// Parses `cmdline`: at most 64 arguments of at most 256 bytes each.
pub fn parse_command_line(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes
        .split(|&byte| byte == 0)
        .take(ARGUMENTS)
        .map(|argument| String::from_utf8_lossy(&argument[..argument.len().min(ARGUMENT_BYTES)]).into_owned())
        .collect()
}

/// The value of one variable of `environ`.
pub fn parse_environment_variable<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    bytes
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

impl ProcessDir {
    /// Reads the beginning of `cmdline`.
    pub fn command_line(&self, buffer: &mut Vec<u8>) -> Result<Vec<String>, KernelError> {
        // An argument list may have megabytes; what is kept fits into this.
        let file = self.open("cmdline")?;
        buffer.resize(buffer.capacity().max(ARGUMENTS * 128), 0);
        loop {
            match rustix::io::read(&file, &mut buffer[..]) {
                Ok(count) => return Ok(parse_command_line(&buffer[..count])),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("cmdline", errno)),
            }
        }
    }

    /// The environment that the program was started with, into `buffer`.
    pub fn environment(&self, buffer: &mut Vec<u8>) -> Result<(), KernelError> {
        self.read("environ", buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_are_cut_at_nul() {
        assert_eq!(parse_command_line(b"sh\0-c\0\0x y\0"), ["sh", "-c", "", "x y"]);
        assert!(parse_command_line(b"").is_empty());
        assert_eq!(parse_command_line(b"nginx: worker"), ["nginx: worker"], "setproctitle leaves no NUL");
        assert_eq!(parse_command_line(&[b'x'; 1000])[0].len(), 256);
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environ = b"LOCAL_RANK=1\0RANK=3\0";
        assert_eq!(parse_environment_variable(environ, "RANK"), Some(&b"3"[..]));
        assert_eq!(parse_environment_variable(environ, "RAN"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            parse_command_line(&bytes);
            parse_environment_variable(&bytes, "RANK");
        }
    }
}
