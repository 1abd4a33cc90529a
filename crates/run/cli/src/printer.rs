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

/// Writes to standard error, in a terminal from the beginning of a line: a progress bar of the job's may stand on this one.
///
/// So many spaces as the terminal is wide end on the next line where the cursor was within one, and on the same where it was
/// at its beginning: as zsh sets its prompt.
pub fn on_a_line_of_its_own(text: &str) {
    let stderr = std::io::stderr();
    let known = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    if known && stderr.is_terminal() {
        if let Some(columns) = columns(rustix::stdio::stderr()) {
            let _ = stderr.lock().write_all(format!("{}\r\x1b[K", " ".repeat(columns)).as_bytes());
        }
    }
    say(text);
}

/// Says something that nobody asked for, where a person sees it and nothing is disturbed: in a terminal that this job is in the
/// foreground of, and that no program has taken for itself, as an editor or a prompt does.
pub fn announce(text: &str) {
    let stderr = rustix::stdio::stderr();
    let ours = rustix::termios::tcgetpgrp(stderr).is_ok_and(|group| group == rustix::process::getpgrp());
    let in_lines = rustix::termios::tcgetattr(stderr)
        .is_ok_and(|terminal| terminal.local_modes.contains(rustix::termios::LocalModes::ICANON));
    if ours && in_lines {
        remark(text);
    }
}

/// An error of ullage's own, with its causes.
pub fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// A remark; what it quotes sets no colours.
pub fn note(text: &str) {
    say(&format!("ullage: {}\n", format::clean_lines(text)));
}

/// The same while the job runs, whose line stays whole.
pub fn remark(text: &str) {
    on_a_line_of_its_own(&format!("ullage: {}\n", format::clean_lines(text)));
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
    let variable = |name| std::env::var(name).ok();
    Style::decide(
        variable("NO_COLOR").as_deref(),
        variable("CLICOLOR_FORCE").as_deref(),
        terminal,
        columns(stream),
    )
}

/// The width of a terminal, where it has one that text fits into.
fn columns(stream: rustix::fd::BorrowedFd<'_>) -> Option<usize> {
    let columns = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    columns.filter(|columns| *columns >= 20)
}
