//! Links of `/proc/PID`: its namespaces, its working directory (namespaces(7)).
//!
//! ```text
//! ns/mnt -> mnt:[4026531832]
//! ```

use crate::error::KernelError;
use crate::root::ProcessDir;
use crate::scan::number;

/// Parses a namespace link: the inode that names it.
pub fn parse_namespace_link(bytes: &[u8]) -> Option<u64> {
    let open = bytes.iter().position(|&byte| byte == b'[')?;
    number(bytes[open + 1..].strip_suffix(b"]")?)
}

impl ProcessDir {
    /// Number of a namespace (`mnt`, `pid`, `cgroup`, …); needs the right to ptrace.
    pub fn namespace(&self, kind: &str) -> Result<Option<u64>, KernelError> {
        Ok(parse_namespace_link(self.link(&format!("ns/{kind}"))?.as_bytes()))
    }

    /// The working directory, as the process sees it from its own root.
    pub fn working_directory(&self) -> Result<String, KernelError> {
        self.link("cwd")
    }

    fn link(&self, name: &str) -> Result<String, KernelError> {
        let target = rustix::fs::readlinkat(self.dir(), name, Vec::new()).map_err(|e| self.error(name, e))?;
        Ok(target.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_stands_in_brackets() {
        assert_eq!(parse_namespace_link(b"mnt:[4026531832]"), Some(4026531832));
        assert_eq!(parse_namespace_link(b"mnt:[x]"), None);
        assert_eq!(parse_namespace_link(b"]["), None);
    }
}
