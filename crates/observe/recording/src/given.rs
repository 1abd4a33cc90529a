//! How far was a recording given to a reader that comes again?

use crate::table::{Table, EVENTS};

/// Numbers that were given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) tick: Option<u64>,
    pub(crate) event: Option<u64>,
}

impl Given {
    pub(crate) fn of(&self, table: &'static Table) -> Option<u64> {
        if std::ptr::eq(table, &EVENTS) {
            self.event
        } else {
            self.tick
        }
    }
}
