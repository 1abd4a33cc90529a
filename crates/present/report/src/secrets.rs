//! Which words of a command or a message are secrets? Values of names that say so, user names and passwords in
//! addresses, and tokens whose first letters say who issued them. They are replaced before anything is stored.
//!
//! The trap: a language model's job is full of tokens that are none (`--max-tokens 512`, `--pad-token X`).

use std::ops::Range;
use ullage_model::{AgentMessage, EventKind};

/// What stands in a secret's place.
pub const REDACTED: &str = "[redacted]";

/// A name is one of a secret when it has one of these words,
const SECRET_WORDS: [&str; 9] =
    ["password", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials", "apikey"];
/// when it is one of these,
const SECRET_NAMES: [&str; 5] = ["pass", "token", "auth", "authorization", "cookie"];
/// or when it ends in `token` behind one of these,
const OF_TOKENS: [&str; 16] = [
    "access", "api", "auth", "bearer", "bot", "github", "gitlab", "hf", "hub", "id", "login", "refresh",
    "session", "slack", "user", "wandb",
];
/// or in `key` behind one of these.
const OF_KEYS: [&str; 10] =
    ["access", "account", "api", "auth", "encryption", "master", "private", "secret", "signing", "ssh"];
/// What an issuer's tokens begin with, and how long the rest is at least.
const ISSUED: [(&str, usize); 9] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("hf_", 20),
    ("sk-", 20),
    ("AKIA", 16),
    ("xoxb-", 16),
];

/// The words of a command, with their secrets replaced.
pub fn arguments(words: &[String]) -> Vec<String> {
    let mut follows = false;
    words
        .iter()
        .map(|word| {
            let value = std::mem::replace(&mut follows, is_secret_flag(word));
            // Where another flag comes next, the first one stood alone.
            if value && !word.starts_with("--") {
                REDACTED.to_owned()
            } else {
                text(word)
            }
        })
        .collect()
}

/// Any text, with its secrets replaced.
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for secret in secrets(text) {
        if secret.start < done {
            continue;
        }
        out.push_str(&text[done..secret.start]);
        out.push_str(REDACTED);
        done = secret.end;
    }
    out.push_str(&text[done..]);
    out
}

/// An event, with the secrets of command lines and messages replaced.
pub fn event(what: &mut EventKind) {
    match what {
        EventKind::ProcessSeen { facts } => facts.command_line = arguments(&facts.command_line),
        EventKind::NotSeen { text: words } | EventKind::Mark { text: words, .. } => *words = text(words),
        EventKind::Agent { message: AgentMessage::Exception(report), .. } => {
            report.text = text(&report.text);
            report.chain.iter_mut().for_each(|cause| *cause = text(cause));
        }
        _ => {}
    }
}

/// Where they stand, in order.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> =
        text.match_indices("://").filter_map(|(at, _)| user_of_address(text, at + 3)).collect();
    found.extend(text.match_indices(['=', ':', ' ']).filter_map(|(at, sign)| value(text, at, sign)));
    found.extend(["Bearer ", "bearer "].into_iter().flat_map(|scheme| {
        text.match_indices(scheme).filter_map(move |(at, _)| {
            let word = word_at(text, at + scheme.len());
            (word.len() >= 8).then_some(word)
        })
    }));
    found.extend(ISSUED.into_iter().flat_map(|(prefix, least)| {
        text.match_indices(prefix).filter_map(move |(at, _)| {
            let begins = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let rest =
                text[at + prefix.len()..].find(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c));
            let end = rest.map_or(text.len(), |rest| at + prefix.len() + rest);
            (begins && end - at - prefix.len() >= least).then_some(at..end)
        })
    }));
    found.sort_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    found
}

/// `user:password` of `user:password@host`, where an address goes on at `from`.
fn user_of_address(text: &str, from: usize) -> Option<Range<usize>> {
    let end = text[from..]
        .find(|c: char| c.is_whitespace() || "/?#'\"<>".contains(c))
        .map_or(text.len(), |n| from + n);
    let user = from..from + text[from..end].rfind('@')?;
    (!user.is_empty()).then_some(user)
}

/// The value of a secret's name that ends before `at`, where `sign` stands.
fn value(text: &str, at: usize, sign: &str) -> Option<Range<usize>> {
    let before = text[..at].trim_end_matches(['\'', '"']);
    let begin = before.rfind(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c));
    let name =
        &before[begin.map_or(0, |begin| begin + before[begin..].chars().next().map_or(1, char::len_utf8))..];
    let is_secret = if sign == " " { is_secret_flag(name) } else { is_secret_name(name) };
    if !is_secret {
        return None;
    }
    let rest = &text[at + 1..];
    let from = at + 1 + rest.len() - rest.trim_start_matches(' ').len();
    let mut value = word_at(text, from);
    if ["bearer", "basic", "token"].contains(&text[value.clone()].to_ascii_lowercase().as_str()) {
        value = value.start..word_at(text, (value.end + 1).min(text.len())).end;
    }
    // `--token --verbose` has no value, `token: [redacted]` has none any more.
    let none = sign == " " && text[value.clone()].starts_with('-');
    (!value.is_empty() && !none).then_some(value)
}

/// The word that begins at `from`; behind a quotation mark, up to the next.
fn word_at(text: &str, from: usize) -> Range<usize> {
    let Some(rest) = text.get(from..) else { return from..from };
    if let Some(quote) = rest.chars().next().filter(|c| "'\"".contains(*c)) {
        let end = rest[1..].find(quote).unwrap_or(rest.len() - 1);
        return from + 1..from + 1 + end;
    }
    let end = rest.find(|c: char| c.is_whitespace() || "'\"&,;)}]".contains(c)).unwrap_or(rest.len());
    from..from + end
}

fn is_secret_flag(word: &str) -> bool {
    word.starts_with('-') && is_secret_name(word)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
    let words: Vec<&str> = name.split('_').collect();
    let ends = |last: &str, before: &[&str]| matches!(words.as_slice(), [.., kind, end] if *end == last && before.contains(kind));
    SECRET_NAMES.contains(&name.as_str())
        || words.iter().any(|word| SECRET_WORDS.contains(word))
        || ends("token", &OF_TOKENS)
        || ends("key", &OF_KEYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> String {
        arguments(&command.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" ")
    }

    #[test]
    fn secrets_of_a_command_are_replaced() {
        let cases = [
            ("train.py --token abc --lr 1", "train.py --token [redacted] --lr 1"),
            ("x --password=hunter2", "x --password=[redacted]"),
            ("x --hf-token abc", "x --hf-token [redacted]"),
            ("x api_key=abc&page=2", "x api_key=[redacted]&page=2"),
            ("x trainer.wandb_api_key=abc", "x trainer.wandb_api_key=[redacted]"),
            ("env AWS_SECRET_ACCESS_KEY=a/b+c= python", "env AWS_SECRET_ACCESS_KEY=[redacted] python"),
            ("env AWS_ACCESS_KEY_ID=1 aws_access_key=x", "env AWS_ACCESS_KEY_ID=1 aws_access_key=[redacted]"),
            ("git clone https://ada:pw@host/x.git", "git clone https://[redacted]@host/x.git"),
            (
                "x s3://key@bucket/path postgres://u:p@h:5432/db?x=1",
                "x s3://[redacted]@bucket/path postgres://[redacted]@h:5432/db?x=1",
            ),
            ("x hf_abcdefghijklmnopqrstuvwx", "x [redacted]"),
            ("x --token --verbose", "x --token --verbose"),
        ];
        for (given, stored) in cases {
            assert_eq!(words(given), stored);
        }
    }

    #[test]
    fn settings_of_a_job_are_no_secrets() {
        for command in [
            "train.py --max-tokens 512 --tokenizer gpt2 --pad-token X --num_tokens=7 --sort-key name",
            "python -m pkg --author me --passes 3 forward_pass=2 key=1 tokens=5 monkey=2",
            "x https://host/a@b file://a/b?c=d@e a@b.c --bypass-cache 1 sk-learn hf_hub",
        ] {
            assert_eq!(words(command), command);
        }
    }

    #[test]
    fn secrets_of_a_message_are_replaced() {
        let cases = [
            ("401 for url: https://me:pw@hub/x", "401 for url: https://[redacted]@hub/x"),
            ("headers {'Authorization': 'Bearer abcdefghij'}", "headers {'Authorization': '[redacted]'}"),
            ("Authorization: Bearer abcdefghij next", "Authorization: [redacted] next"),
            ("got \"password\": \"p w\" there", "got \"password\": \"[redacted]\" there"),
            ("run with --api-key abc failed", "run with --api-key [redacted] failed"),
            (
                "unable to mmap 320 bytes from file </torch_1_2_3>: Cannot",
                "unable to mmap 320 bytes from file </torch_1_2_3>: Cannot",
            ),
            ("token", "token"),
            ("password=", "password="),
            ("ключ=1 пароль: x é password=ü", "ключ=1 пароль: x é password=[redacted]"),
        ];
        for (given, stored) in cases {
            assert_eq!(text(given), stored);
        }
    }

    mod any {
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn any_text_is_taken_and_a_secret_never_survives(
                before in "\\PC{0,20}",
                name in prop::sample::select(vec!["--password=", "api_key=", "AWS_SECRET_ACCESS_KEY=", "token: "]),
                secret in "[a-z0-9/+]{12,40}",
                after in "\\PC{0,20}",
            ) {
                let cleaned = super::text(&format!("{before} {name}{secret} {after}"));
                prop_assert!(!cleaned.contains(&secret) || before.contains(&secret) || after.contains(&secret), "{cleaned}");
                super::text(&before);
            }
        }
    }
}
