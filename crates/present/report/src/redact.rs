//! What of a machine's facts is nobody else's business? Folders, host and user names. The names of files stay:
//! which library was preloaded is the point.

use ullage_model::{Fact, Facts};

/// What must not be told.
#[derive(Clone, Debug, Default)]
pub struct Private {
    /// The user's home.
    pub home: Option<String>,
    /// Names of users and hosts.
    pub names: Vec<String>,
}

/// Names that say nothing of anybody.
const COMMON: &[&str] = &["root", "localhost", "user", "none", "linux"];
/// Folders that every machine has.
const PUBLIC: &[&str] =
    &["/dev/", "/tmp/", "/usr/", "/lib/", "/lib64/", "/proc/", "/sys/", "/etc/", "/var/tmp/"];

/// The same facts without them.
pub fn redact(facts: Facts, private: &Private) -> Facts {
    let names: Vec<&str> = private
        .names
        .iter()
        .map(String::as_str)
        .filter(|name| name.len() > 2 && !COMMON.contains(name))
        .collect();
    facts
        .into_iter()
        .map(|(name, fact)| {
            let fact = match fact {
                // Paths of groups carry names of containers, sessions and users.
                Fact::Text(text) if name.starts_with("cgroup.") && name.ends_with(".path") => {
                    Fact::Text(if text == "/" { text } else { "…".into() })
                }
                Fact::Text(text) => Fact::Text(words(&text, private.home.as_deref(), &names)),
                fact => fact,
            };
            (name, fact)
        })
        .collect()
}

/// Each path of a text shortened, each name replaced.
fn words(text: &str, home: Option<&str>, names: &[&str]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_whitespace() || ":,;='\"".contains(c) {
            out.push_str(&path(&word, home));
            out.push(c);
            word.clear();
        } else {
            word.push(c);
        }
    }
    out.pop();
    names.iter().fold(out, |text, name| text.replace(name, "…"))
}

fn path(word: &str, home: Option<&str>) -> String {
    if !word.starts_with('/') || word.len() < 2 {
        return word.to_owned();
    }
    let at_home = home.is_some_and(|home| home.len() > 1 && word.starts_with(home));
    if !at_home
        && PUBLIC.iter().any(|public| word.starts_with(public) || word == public.trim_end_matches('/'))
    {
        return word.to_owned();
    }
    let name = word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    match word.ends_with('/') || !name.contains('.') {
        true => "…".into(),
        false => format!("…/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(name: &str, value: &str) -> String {
        let private =
            Private { home: Some("/people/ada".into()), names: vec!["ada".into(), "lovelace01".into()] };
        let facts = redact(Facts::from([(name.to_owned(), value.into())]), &private);
        facts[name].text().unwrap().to_owned()
    }

    #[test]
    fn folders_and_names_go_and_what_matters_stays() {
        assert_eq!(redacted("env.LD_PRELOAD", "/people/ada/lib/libjemalloc.so.2"), "…/libjemalloc.so.2");
        assert_eq!(redacted("env.LD_PRELOAD", "/usr/lib/libjemalloc.so.2"), "/usr/lib/libjemalloc.so.2");
        assert_eq!(redacted("env.LD_LIBRARY_PATH", "/opt/secret/lib:/usr/lib/x"), "…:/usr/lib/x");
        assert_eq!(redacted("env.TMPDIR", "/scratch/ada"), "…");
        assert_eq!(redacted("env.NCCL_HOSTID", "lovelace01"), "…");
        assert_eq!(redacted("cgroup.0.path", "/user.slice/user-1000.slice"), "…");
        assert_eq!(redacted("torch.version", "2.13.0+cu130"), "2.13.0+cu130");
        assert_eq!(redacted("env.MALLOC_CONF", "thp:never,narenas:4"), "thp:never,narenas:4");
    }
}
