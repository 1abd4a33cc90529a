//! The catalogue of causes: titles, pages, and message patterns. Parsed once, when first asked for; judging a
//! recording never needs it.

use crate::policy::log::NAMES_ALIKE;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// An entry of causes.yaml: id and title where a rule has the page, everything otherwise. `happened` is for
/// docs/reference/causes.md.
#[derive(Debug, Deserialize)]
pub struct Cause {
    /// Stable kebab-case id.
    pub id: String,
    /// One line.
    pub title: String,
    #[serde(default)]
    mechanism: String,
    #[serde(default)]
    symptoms: Vec<String>,
    #[serde(default)]
    outside_evidence: Vec<String>,
    #[serde(default)]
    inside_evidence: Vec<String>,
    #[serde(default)]
    discriminate: String,
    #[serde(default)]
    pub(crate) fixes: Vec<String>,
    #[serde(default)]
    machine_difference: String,
    #[serde(default)]
    sources: Vec<Reference>,
}

/// An address, or a kind with a title (`forum thread: …`, which YAML reads as a map).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Reference {
    Address(String),
    Titled(BTreeMap<String, String>),
}

impl Reference {
    fn text(&self) -> String {
        match self {
            Reference::Address(address) => address.clone(),
            Reference::Titled(map) => {
                map.iter().map(|(kind, title)| format!("{kind}: {title}")).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// An entry of errors.yaml: one message.
#[derive(Debug, Deserialize)]
pub(crate) struct Pattern {
    pub(crate) id: String,
    pub(crate) emitter: String,
    pub(crate) regex: String,
    pub(crate) causes: Vec<String>,
    /// A message as it was seen, which the pattern matches.
    #[cfg_attr(not(test), expect(dead_code, reason = "what the tests match the pattern against"))]
    pub(crate) example: String,
    #[serde(default)]
    pub(crate) hint: Option<String>,
}

/// Every cause of the catalogue, in its order.
pub fn causes() -> &'static [Cause] {
    static CAUSES: OnceLock<Vec<Cause>> = OnceLock::new();
    CAUSES.get_or_init(|| {
        serde_yaml_ng::from_str(include_str!("../catalogue/causes.yaml"))
            .expect("the embedded catalogue is parsed by the tests")
    })
}

/// Every message pattern.
pub(crate) fn patterns() -> &'static [Pattern] {
    static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        serde_yaml_ng::from_str(include_str!("../catalogue/errors.yaml"))
            .expect("the embedded patterns are parsed by the tests")
    })
}

pub(crate) fn cause(id: &str) -> Option<&'static Cause> {
    causes().iter().find(|cause| cause.id == id)
}

/// The cause that somebody may have meant by `typed`: one that shares most of its letter pairs.
pub fn similar_cause(typed: &str) -> Option<&'static str> {
    let pairs = |text: &str| -> Vec<(char, char)> {
        let letters: Vec<char> = text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
        letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let wanted = pairs(typed);
    let alike = |id: &str| {
        let mut left = pairs(id);
        let all = (left.len() + wanted.len()).max(1);
        let both = wanted.iter().filter(|pair| match left.iter().position(|other| other == *pair) {
            Some(index) => {
                left.swap_remove(index);
                true
            }
            None => false,
        });
        2.0 * both.count() as f64 / all as f64
    };
    causes()
        .iter()
        .map(|cause| (alike(&cause.id), cause.id.as_str()))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness >= NAMES_ALIKE)
        .map(|(_, id)| id)
}

/// The title of a cause, one line.
pub fn cause_title(id: &str) -> Option<&'static str> {
    cause(id).map(|cause| cause.title.as_str())
}

/// The page of a cause in Markdown: the rule's manual, or, for a cause that is only told from messages, the
/// catalogue's entry. None for an id that does not exist.
pub fn cause_page(id: &str) -> Option<String> {
    if let Some(rule) = crate::causes::rule(id) {
        return Some(rule.page());
    }
    let cause = cause(id)?;
    let mut page = format!("# {}\n\n{}\n\n", cause.id, cause.title);
    section(&mut page, "Why it happens", std::slice::from_ref(&cause.mechanism), "");
    section(&mut page, "What is seen", &cause.symptoms, "- ");
    section(&mut page, "From outside", &cause.outside_evidence, "- ");
    section(&mut page, "From inside", &cause.inside_evidence, "- ");
    section(&mut page, "How it is told apart", std::slice::from_ref(&cause.discriminate), "");
    section(&mut page, "Remedy", &cause.fixes, "- ");
    section(&mut page, "Why only on that machine", std::slice::from_ref(&cause.machine_difference), "");
    let references: Vec<String> = cause.sources.iter().map(Reference::text).collect();
    section(&mut page, "References", &references, "- ");
    page.push_str("\nNo rule judges recordings for this cause yet: it is known from messages only.\n");
    Some(page)
}

fn section(page: &mut String, title: &str, lines: &[String], bullet: &str) {
    if lines.iter().all(String::is_empty) {
        return;
    }
    page.push_str(&format!("## {title}\n"));
    for line in lines {
        page.push_str(&format!("{bullet}{line}\n"));
    }
    page.push('\n');
}
