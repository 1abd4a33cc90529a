//! What the catalogue promises: every id exists, every example matches its own pattern, every rule has a page.

use crate::catalogue::{cause_page, cause_title, causes, patterns, similar_cause};
use crate::{explain_log, rules};
use regex::Regex;

#[test]
fn every_cause_of_a_message_is_in_the_catalogue() {
    assert!(causes().len() > 100 && patterns().len() > 100);
    for pattern in patterns() {
        for id in &pattern.causes {
            assert!(cause_title(id).is_some(), "{}: {id}", pattern.id);
        }
    }
}

#[test]
fn every_rule_is_in_the_catalogue_under_the_same_title() {
    for rule in rules() {
        assert_eq!(cause_title(rule.id), Some(rule.title), "{}", rule.id);
    }
}

#[test]
fn every_example_matches_its_own_pattern_and_explain_says_so() {
    for pattern in patterns() {
        let regex = Regex::new(&pattern.regex).unwrap();
        assert!(regex.is_match(&pattern.example), "{}", pattern.id);
        let verdict = explain_log(pattern.example.as_bytes()).unwrap();
        assert!(
            verdict.matches.iter().any(|found| found.pattern == pattern.id),
            "{}: {:?}",
            pattern.id,
            verdict.matches
        );
        assert_eq!(verdict.findings.is_empty(), pattern.causes.is_empty(), "{}", pattern.id);
    }
}

#[test]
fn every_cause_has_a_page_that_begins_with_its_id() {
    for id in causes().iter().map(|cause| cause.id.as_str()) {
        let page = cause_page(id).unwrap();
        assert!(page.starts_with(&format!("# {id}\n")), "{page}");
        assert!(page.contains("## Why it happens"), "{id} has neither a rule nor an entry of its own");
    }
    assert_eq!(cause_page("no-such-cause"), None);
    assert_eq!(similar_cause("max-map-count"), Some("max-map-count-exhausted"));
    assert_eq!(similar_cause("memcgoom-kill"), Some("memcg-oom-kill"));
    assert_eq!(similar_cause("zzz"), None);
    for rule in rules() {
        let page = rule.page();
        for section in [
            "What it does",
            "Why it happens",
            "How it is told apart",
            "Known problems",
            "Example",
            "Remedy",
            "References",
        ] {
            assert!(page.contains(&format!("## {section}")), "{}: {section}", rule.id);
        }
    }
}
