//! Writes manual pages and completions into a folder: `pages FOLDER` makes `man1/` and a folder for each shell.
#![forbid(unsafe_code)]

use clap::CommandFactory;
use std::path::Path;
use ullage_cli::arguments::Arguments;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).ok_or_else(|| anyhow::anyhow!("usage: pages FOLDER"))?;
    let folder = Path::new(&folder);
    let man = folder.join("man1");
    std::fs::create_dir_all(&man)?;
    clap_mangen::generate_to(Arguments::command(), &man)?;
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
