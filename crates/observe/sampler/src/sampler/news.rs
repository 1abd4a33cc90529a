//! What a tick has to tell: events in the order in which they were seen, and what is not seen, once.

use ullage_model::{At, Event, EventKind};

/// Told at the end of a tick.
#[derive(Debug, Default)]
pub(super) struct News {
    events: Vec<Event>,
    not_seen: Vec<String>,
}

impl News {
    pub(super) fn say(&mut self, at: At, what: EventKind) {
        self.events.push(Event { at, what });
    }

    pub(super) fn not_seen(&mut self, now: At, text: String) {
        if !self.not_seen.contains(&text) {
            self.not_seen.push(text.clone());
            self.say(now, EventKind::NotSeen { text });
        }
    }

    /// What was said since the last time.
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}
