//! One trait for the live machine, a recording and a fixture: whatever comes next.

use crate::{Event, Sample};

/// What a source yields.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A tick.
    Sample(Box<Sample>),
    /// Something that happened.
    Event(Event),
}

/// Why a source could not go on.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// A stream of samples and events in order of time.
pub trait Source {
    /// The next item; `None` at the end.
    fn next_item(&mut self) -> Result<Option<Item>, SourceError>;
}

impl<I: Iterator<Item = Item>> Source for I {
    fn next_item(&mut self) -> Result<Option<Item>, SourceError> {
        Ok(self.next())
    }
}
