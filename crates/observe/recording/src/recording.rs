//! How is a recording opened, and what is damaged in it?

use crate::error::{Damage, OpenError};
use crate::files::Files;
use crate::replay::Replay;
use crate::run_file;
use crate::store::Store;
use crate::tail_archive::store_of;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use ullage_model::RunFacts;

/// A recording, open for reading. It may still be running: then this is how far it was.
#[derive(Debug)]
pub struct Recording {
    /// Facts of the run.
    pub run: RunFacts,
    /// What is wrong with it as far as opening showed; [`Replay::damage`] adds what reading everything shows.
    pub damage: Vec<Damage>,
    pub(crate) files: Arc<Files>,
}

impl Recording {
    /// Opens the recording in `dir`. Damage inside it is no error: what is readable is returned, with
    /// [`Recording::damage`] saying what is not.
    ///
    /// # Errors
    /// Where there is no recording, it may not be read, or it is of a newer format.
    pub fn open(dir: impl AsRef<Path>) -> Result<Recording, OpenError> {
        let dir = dir.as_ref();
        match std::fs::metadata(dir) {
            Ok(what) if what.is_dir() => Recording::read(store_of(dir), dir),
            Ok(_) => Err(OpenError::NotARecording { path: dir.to_owned() }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(OpenError::NotFound { path: dir.to_owned() })
            }
            Err(source) => Err(OpenError::Unreadable { path: dir.to_owned(), source }),
        }
    }

    /// The same, from the bytes of the files by name. Never panics, whatever the bytes are.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn from_image(files: BTreeMap<String, Vec<u8>>) -> Result<Recording, OpenError> {
        Recording::read(Store::Image(files), &run_file::image_path())
    }

    /// Whether it was closed in order. If not, it still runs, or ullage was killed.
    pub fn is_closed(&self) -> bool {
        !self.files.live
    }

    /// Whether it is the copy of one that was not closed when it was copied.
    pub(crate) fn is_live_copy(&self) -> bool {
        matches!(self.files.store, Store::Copy { .. })
    }

    /// All samples and events, in order of time.
    pub fn replay(&self) -> Replay {
        Replay::new(Arc::clone(&self.files))
    }

    fn read(store: Store, path: &Path) -> Result<Recording, OpenError> {
        let (run, wrong) = run_file::read(&store, path)?;
        let run_is_damaged = wrong.is_some();
        let mut damage: Vec<Damage> = wrong.into_iter().collect();
        let files = Files::read(store, path, &mut damage)?;
        if run_is_damaged && files.are_empty() {
            return Err(OpenError::NotARecording { path: path.to_owned() });
        }
        damage.extend(files.unfinished_sample());
        Ok(Recording { run, damage, files: Arc::new(files) })
    }
}
