//! What people, jobs and logs write: messages of the agent, sizes, pages, logs.

use std::hint::black_box;
use ullage_model::AgentMessage;
use ullage_report::text::Style;

/// A message that was understood says the same after a round trip.
pub(crate) fn agent_message(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<AgentMessage>(bytes) else { return };
    let Ok(text) = serde_json::to_string(&message) else { return };
    // A float that overflowed to infinity is written as null, which is no float.
    if let Ok(again) = serde_json::from_str::<AgentMessage>(&text) {
        black_box(again);
    }
}

/// A page never lets an escape sequence through.
pub(crate) fn page(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for width in [0, 1, 20, 80] {
        let page = ullage_report::text::page(&text, &Style::plain(width));
        assert!(!page.contains('\u{1b}'));
    }
}
