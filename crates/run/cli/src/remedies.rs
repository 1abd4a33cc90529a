//! Which remedies does `--fix` apply, and how? Each says in one sentence what it does.
//!
//! The surprise: ullage raises its own soft limit, because a limit is what a child inherits; it changes nothing in
//! the shell that started it. The arena itself is the job's: the agent asks the `ullage` package for it there.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::fmt;
use ullage_model::AskedRemedy;

/// A remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Tensors travel through one shared-memory arena.
    Arena,
    /// Loader workers are forked from one process that takes over the dataset once; with the arena.
    Zygote,
    /// The soft limit of open files becomes the hard one.
    Nofile,
}

/// All that there are.
pub const EVERY: [Remedy; 3] = [Remedy::Arena, Remedy::Zygote, Remedy::Nofile];
/// Not the zygote: it needs datasets that can be pickled, and holds one more copy of each.
const ALL: [Remedy; 2] = [Remedy::Arena, Remedy::Nofile];

impl Remedy {
    /// As it is named on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Remedy::Arena => "arena",
            Remedy::Zygote => "zygote",
            Remedy::Nofile => "nofile",
        }
    }
}

/// What `--fix` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedies(pub Vec<Remedy>);

impl fmt::Display for Remedies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|remedy| remedy.name()).collect();
        f.write_str(&names.join(","))
    }
}

/// Reads a list: names to apply, or names with a dash in front to leave out of all.
pub fn parse_remedies(text: &str) -> Result<Remedies, String> {
    let mut chosen = Vec::new();
    let mut left_out = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        if word == "all" || word == "1" || word == "true" {
            chosen.extend(ALL);
            continue;
        }
        let name = word.strip_prefix('-').unwrap_or(word);
        let Some(remedy) = EVERY.into_iter().find(|remedy| remedy.name() == name) else {
            return Err(format!(
                "there is no remedy {name:?}; there are: {}; -NAME leaves one out",
                Remedies(EVERY.to_vec())
            ));
        };
        if word.starts_with('-') { &mut left_out } else { &mut chosen }.push(remedy);
    }
    if chosen.is_empty() {
        chosen.extend(ALL);
    }
    let enabled = EVERY.into_iter().filter(|remedy| chosen.contains(remedy) && !left_out.contains(remedy));
    Ok(Remedies(enabled.collect()))
}

/// Applies what can be applied from outside, and says of each what became of it.
pub fn apply(remedies: &Remedies, agent: bool) -> Vec<AskedRemedy> {
    let outcome = |remedy: &Remedy| {
        match remedy {
        Remedy::Arena | Remedy::Zygote if !agent => {
            Err("it needs the agent (--no-agent, or ULLAGE_DISABLE)".to_owned())
        }
        Remedy::Arena => Ok("every DataLoader with workers sends its batches through one shared arena".to_owned()),
        Remedy::Zygote => Ok("loader workers are forked from one process that loads the dataset once, except where a DataLoader asks for fork by name".to_owned()),
        Remedy::Nofile => raise_open_files(),
    }
    };
    remedies
        .0
        .iter()
        .map(|remedy| {
            let outcome = outcome(remedy);
            AskedRemedy {
                name: remedy.name().to_owned(),
                applied: outcome.is_ok(),
                sentence: outcome.unwrap_or_else(|because| format!("not applied, because {because}")),
            }
        })
        .collect()
}

fn raise_open_files() -> Result<String, String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let words = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    if current == maximum {
        return Ok(format!("the limit of open files is already at its maximum ({})", words(current)));
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => {
            Ok(format!("soft limit of open files raised from {} to {}", words(current), words(maximum)))
        }
        Err(error) => Err(format!("the limit of open files could not be raised: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_can_be_named_alone_or_left_out() {
        let parsed = |text: &str| parse_remedies(text).map(|remedies| remedies.to_string());
        assert_eq!(parsed("all").as_deref(), Ok("arena,nofile"));
        assert_eq!(parsed("").as_deref(), Ok("arena,nofile"));
        assert_eq!(parsed("nofile").as_deref(), Ok("nofile"));
        assert_eq!(parsed("-nofile").as_deref(), Ok("arena"));
        assert_eq!(parsed("nofile, arena").as_deref(), Ok("arena,nofile"));
        assert_eq!(parsed("zygote").as_deref(), Ok("zygote"));
        assert_eq!(parsed("all,zygote").as_deref(), Ok("arena,zygote,nofile"));
        assert!(parsed("arean").unwrap_err().contains("there are: arena,zygote,nofile"));
    }
}
