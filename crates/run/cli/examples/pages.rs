//! Writes manual pages and completions into a folder: `pages FOLDER [DATE]` makes `man1/` and a folder for each shell.
//!
//! DATE (2026-11-26) is when what they document was made. What clap_mangen writes is tidied: `mandoc -T lint` has no word to
//! say of it.
#![forbid(unsafe_code)]

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::Path;
use ullage_cli::arguments::Arguments;

/// Bytes of a line of text in a manual page.
const LONGEST: usize = 80;

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().ok_or_else(|| anyhow::anyhow!("usage: pages FOLDER [DATE]"))?;
    let date = words.next().unwrap_or_default();
    let folder = Path::new(&folder);
    let manuals = folder.join("man1");
    std::fs::create_dir_all(&manuals)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    write_manual(&command, &manuals, &date)?;
    for (shell, file) in
        [("bash", "bash-completion/ullage"), ("zsh", "zsh/_ullage"), ("fish", "fish/ullage.fish")]
    {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().unwrap_or(folder))?;
        let script = ullage_cli::complete::script(shell)
            .ok_or_else(|| anyhow::anyhow!("clap_complete knows no {shell}"))?;
        std::fs::write(file, script)?;
    }
    Ok(())
}

/// Of a command, and of each below it.
fn write_manual(command: &Command, folder: &Path, date: &str) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_manual(below, folder, date)?;
    }
    let man = Man::new(command.clone()).date(date).source(concat!("ullage ", env!("CARGO_PKG_VERSION")));
    let title = man.get_filename().trim_end_matches(".1").to_uppercase();
    let man = man.title(title);
    let mut text = Vec::new();
    man.render(&mut text)?;
    std::fs::write(folder.join(man.get_filename()), tidied(&String::from_utf8(text)?))?;
    Ok(())
}

/// Lines that end where their text does, no break beside a space, and no text longer than a screen.
fn tidied(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut tidy = String::new();
    for (at, line) in lines.iter().enumerate() {
        let beside = [at.checked_sub(1), Some(at + 1)].map(|at| at.and_then(|at| lines.get(at)).copied());
        // An empty line is a space too.
        if *line == ".br" && (beside.contains(&Some(".sp")) || beside.contains(&Some(""))) {
            continue;
        }
        let mut length = 0;
        for (word_at, word) in line.split(' ').enumerate() {
            let breaks = !line.starts_with('.') && !word.starts_with(['.', '\'']);
            if word_at > 0 {
                let too_long = length + 1 + word.len() > LONGEST && breaks;
                tidy.push(if too_long { '\n' } else { ' ' });
                length = if too_long { 0 } else { length + 1 };
            }
            tidy.push_str(word);
            length += word.len();
        }
        tidy.push('\n');
    }
    tidy
}
