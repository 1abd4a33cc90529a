//! Where do a recording's files come from: a directory, or bytes in memory (tests, fuzzing, an archive)?

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The files of one recording, by name.
#[derive(Debug)]
pub(crate) enum Store {
    Directory(PathBuf),
    /// The copy of a recording, whose tails lie in one file; here unpacked.
    Copy {
        dir: PathBuf,
        tails: BTreeMap<String, Vec<u8>>,
    },
    Image(BTreeMap<String, Vec<u8>>),
}

impl Store {
    /// Names of the files; those that are not UTF-8 are not ours.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        match self {
            Store::Directory(dir) => names_in(dir),
            Store::Copy { dir, tails } => {
                let mut names = names_in(dir)?;
                names.extend(tails.keys().cloned());
                Ok(names)
            }
            Store::Image(files) => Ok(files.keys().cloned().collect()),
        }
    }

    /// A whole file, refused where it is larger than `most` bytes.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidData, "it is larger than such a file can be");
        match self {
            Store::Copy { tails: files, .. } | Store::Image(files) if files.contains_key(name) => {
                match files.get(name) {
                    Some(bytes) if bytes.len() as u64 <= most => Ok(bytes.clone()),
                    _ => Err(too_large()),
                }
            }
            Store::Image(_) => Err(io::ErrorKind::NotFound.into()),
            Store::Directory(dir) | Store::Copy { dir, .. } => {
                let file = open(&dir.join(name))?;
                let mut bytes = Vec::new();
                file.take(most + 1).read_to_end(&mut bytes)?;
                if bytes.len() as u64 > most {
                    return Err(too_large());
                }
                Ok(bytes)
            }
        }
    }
}

fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    std::fs::read_dir(dir)?
        .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
        .collect()
}

/// O_NONBLOCK of open(2) on Linux, x86-64.
const NONBLOCK: i32 = 0o4000;

/// A file to read: to open a FIFO would wait for ever for somebody who writes into it, and a device has no end.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"))
    }
}
