//! What people, jobs and logs write: messages of the agent, sizes, pages, logs.

use std::hint::black_box;
use ullage_report::text::{LogView, Style};

/// A message that was understood is understood again as it is written into a recording.
pub(crate) fn agent_message(bytes: &[u8]) {
    let Some(message) = ullage_supervisor::parse_message(bytes) else { return };
    if let Ok(text) = serde_json::to_vec(&message) {
        black_box(ullage_supervisor::parse_message(&text));
    }
}

pub(crate) fn size(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(size) = ullage_cli::size::parse_size(text) {
            assert!(size > 0, "a size of nothing was accepted");
        }
        let _ = black_box(ullage_cli::size::parse_interval(text));
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

/// What a log tells can be shown, whatever the log holds.
pub(crate) fn log(bytes: &[u8]) {
    let Ok(verdict) = ullage_diagnosis::explain_log(bytes) else { return };
    let view = LogView {
        source: "x.log",
        lines: verdict.lines,
        findings: &verdict.findings,
        gpu_out_of_memory_line: verdict.gpu_out_of_memory_line,
        notes: &[],
    };
    let shown = ullage_report::text::log(&view, &Style::plain(80));
    assert!(!shown.contains('\u{1b}'));
}
