//! What the folders of causes promise: their files are read as they are meant, every example matches its own message, every cause
//! has a page.

use crate::causes::similar::similar_cause;
use crate::causes::{cause, causes, explains_growth, families};
use crate::explain::messages::{messages, settles};
use crate::explain_log;
use regex::Regex;
use serde::Deserialize;

/// A title is the headline of a screen, and stands there on two lines at most.
const LONGEST_TITLE: usize = 84;

/// All that a cause.yaml may say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    title: String,
    #[serde(rename = "family")]
    _family: String,
    #[serde(rename = "place")]
    _place: Option<u32>,
    group: Option<String>,
    #[serde(default)]
    explains: Vec<String>,
    settle: Option<String>,
    #[serde(rename = "facts", default)]
    _facts: Vec<String>,
    #[serde(rename = "figures", default)]
    _figures: Vec<String>,
    #[serde(rename = "messages", default)]
    _messages: Vec<serde_yaml_ng::Value>,
}

#[test]
fn every_file_of_facts_is_read_as_it_is_meant() {
    assert!(causes().len() > 100);
    for cause in causes() {
        let facts: Facts =
            serde_yaml_ng::from_str(cause.facts).unwrap_or_else(|error| panic!("{}: {error}", cause.id));
        assert_eq!(facts.title, cause.title);
        assert_eq!(facts.group.as_deref(), cause.group, "{}", cause.id);
        assert!(families().contains(&cause.family), "{}", cause.id);
        assert!(cause.title.len() <= LONGEST_TITLE && !cause.title.ends_with('.'), "{}", cause.title);
        for name in &facts.explains {
            let named: Vec<_> =
                causes().iter().filter(|other| other.id == name || other.group == Some(name)).collect();
            assert!(
                !named.is_empty() && named.iter().all(|other| cause.explains.contains(&other.id)),
                "{}",
                cause.id
            );
        }
        assert!(facts.settle.is_none_or(|command| command == settles(cause.id)), "{}", cause.id);
    }
    assert!(explains_growth("unbounded-caches") && !explains_growth("unnamed-growth"));
    assert!(cause("max-map-count-exhausted").unwrap().explains.contains(&"pil-image-decode"));
}

#[test]
fn what_a_message_means_is_said_in_sentences() {
    let hints: Vec<&str> = messages().iter().filter_map(|message| message.hint.as_deref()).collect();
    assert!(hints.len() > 40);
    for hint in hints {
        let begins = hint.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || "`\"(".contains(c));
        assert!(begins && hint.ends_with('.') && hint.contains(' '), "{hint}");
    }
}

#[test]
fn every_cause_of_a_message_is_there() {
    assert!(messages().len() > 100);
    for message in messages() {
        for id in &message.causes {
            assert!(cause(id).is_some(), "{}: {id}", message.id);
        }
    }
}

#[test]
fn every_example_matches_its_own_message_and_explain_says_so() {
    for message in messages() {
        let regex = Regex::new(&message.regex).unwrap();
        assert!(regex.is_match(&message.example), "{}", message.id);
        let verdict = explain_log(message.example.as_bytes()).unwrap();
        assert!(
            verdict.matches.iter().any(|found| found.pattern == message.id),
            "{}: {:?}",
            message.id,
            verdict.matches
        );
        assert_eq!(verdict.findings.is_empty(), message.causes.is_empty(), "{}", message.id);
    }
}

#[test]
fn every_cause_has_a_page_that_begins_with_its_id_and_a_remedy() {
    for cause in causes() {
        let (id, page) = (cause.id, cause.page());
        assert!(page.starts_with(&format!("# {id}\n")), "{page}");
        let everywhere = cause.fixes().iter().filter(|fix| fix.place.is_none()).count();
        assert!(everywhere > 0, "{id} has no remedy for a job outside of containers, Slurm and loaders");
        let sections: &[&str] = match cause.rule {
            Some(_) => &[
                "What it does",
                "Why it happens",
                "How to tell it apart",
                "Known problems",
                "Example",
                "Remedy",
                "References",
            ],
            None => &["Why it happens", "Remedy"],
        };
        for section in sections {
            assert!(page.contains(&format!("\n## {section}\n")), "{id}: {section}");
        }
    }
    assert!(cause("no-such-cause").is_none());
}

#[test]
fn a_mistyped_cause_is_suggested() {
    assert_eq!(similar_cause("max-map-count"), Some("max-map-count-exhausted"));
    assert_eq!(similar_cause("memcgoom-kill"), Some("memcg-oom-kill"));
    assert_eq!(similar_cause("zzz"), None);
}
