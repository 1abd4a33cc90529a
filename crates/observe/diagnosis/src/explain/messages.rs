//! Which messages are known? Those of each cause's cause.yaml, and those that speak of no cause (`unrelated/messages.yaml`).
//! Parsed once, when a log is first explained; judging a recording never needs them.

use crate::causes::causes;
use serde::de::DeserializeOwned;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What a message says about the failure that it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// It is the failure itself.
    #[default]
    Failure,
    /// It reports the failure of another process, or an end without a reason.
    Echo,
    /// The job goes on: a warning of what may come, or what a kernel tells beside.
    Notice,
}

/// A known message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) emitter: String,
    pub(crate) regex: String,
    #[serde(default)]
    pub(crate) kind: Kind,
    /// The cause in whose folder it stands, then those that it may mean as well, likeliest first.
    #[serde(default, rename = "may_also_be")]
    pub(crate) causes: Vec<String>,
    /// A message as it was seen, which the expression matches.
    #[cfg_attr(not(test), expect(dead_code, reason = "what the tests match the expression against"))]
    pub(crate) example: String,
    #[serde(default)]
    pub(crate) hint: Option<String>,
}

/// What of a cause.yaml the registry does not have.
#[derive(Deserialize)]
struct Facts {
    settle: Option<String>,
    #[serde(default)]
    messages: Vec<Message>,
}

struct Known {
    messages: Vec<Message>,
    settle: BTreeMap<&'static str, String>,
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut known = Known { messages: Vec::new(), settle: BTreeMap::new() };
        for cause in causes() {
            let facts: Facts = parse(cause.facts);
            known.settle.extend(facts.settle.map(|command| (cause.id, command)));
            known.messages.extend(facts.messages.into_iter().map(|mut message| {
                message.causes.insert(0, cause.id.to_owned());
                message
            }));
        }
        known.messages.extend(parse::<Vec<Message>>(include_str!("../../unrelated/messages.yaml")));
        known
    })
}

fn parse<T: DeserializeOwned>(text: &str) -> T {
    serde_yaml_ng::from_str(text).expect("the embedded files are parsed by the tests")
}

/// Every known message.
pub(crate) fn messages() -> &'static [Message] {
    &known().messages
}

/// The command that tells a cause from its look-alikes.
pub(crate) fn settles(id: &str) -> &'static str {
    known().settle.get(id).map_or("ullage run -- python train.py", String::as_str)
}
