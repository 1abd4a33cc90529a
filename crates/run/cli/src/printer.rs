//! The only place that writes to the terminal. Standard output carries what was asked for; standard error
//! carries what ullage itself has to say, so that a job's own output stays clean.

use std::io::{IsTerminal, Write};
use ullage_report::format;
use ullage_report::text::Style;

/// Writes to standard output, colours and all, and nothing else that steers a terminal. A reader that went away (`| head`) is an error that [`is_broken_pipe`] knows.
pub fn out(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(format::clean_screen(text).as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Writes to standard error; one that is closed or full is no reason to fail.
pub fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(format::clean_screen(text).as_bytes());
}

/// An error of ullage's own, with its causes.
pub fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// A remark; what it quotes sets no colours.
pub fn note(text: &str) {
    say(&format!("ullage: {}\n", format::clean_lines(text)));
}

/// True where the reader of our standard output has gone.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

/// How to write to standard output.
pub fn stdout_style() -> Style {
    style(std::io::stdout().is_terminal(), rustix::stdio::stdout())
}

/// How to write to standard error.
pub fn stderr_style() -> Style {
    style(std::io::stderr().is_terminal(), rustix::stdio::stderr())
}

fn style(terminal: bool, stream: rustix::fd::BorrowedFd<'_>) -> Style {
    let columns = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    let variable = |name| std::env::var(name).ok();
    Style::decide(
        variable("NO_COLOR").as_deref(),
        variable("CLICOLOR_FORCE").as_deref(),
        terminal,
        columns.filter(|columns| *columns >= 20),
    )
}
