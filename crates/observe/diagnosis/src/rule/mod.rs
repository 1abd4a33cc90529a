//! What a cause and a rule are, and what several rules have in common. The causes themselves are in `causes`.

pub(crate) mod allocators;
pub(crate) mod descriptors;
pub(crate) mod finding;
pub(crate) mod retainers;
pub(crate) mod sharing;

use crate::analysis::{Analysis, RemedyContext};
use ullage_model::{Finding, Fix};

/// What a rule says of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Judgement {
    /// The cause is there; more than one finding where it struck in unrelated places.
    Found(Vec<Finding>),
    /// It is not there.
    Nothing,
    /// It can be neither found nor ruled out.
    Undetermined {
        /// What could not be read.
        because: String,
    },
}

impl Judgement {
    pub(crate) fn one(finding: Finding) -> Judgement {
        Judgement::Found(vec![finding])
    }

    pub(crate) fn undetermined(because: impl Into<String>) -> Judgement {
        Judgement::Undetermined { because: because.into() }
    }
}

/// Of the first evidence: the most telling reading, in words.
fn first_sentence(finding: &Finding) -> Option<&str> {
    let sentence = finding.evidence.first()?.first_sentence();
    (!sentence.is_empty()).then_some(sentence)
}

/// How a cause is told from a recording.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    /// Judges a run.
    pub(crate) judge: fn(&Analysis) -> Judgement,
    /// What removes the cause, best first.
    pub(crate) fixes: fn(&RemedyContext) -> Vec<Fix>,
}

/// A cause: what its folder says of it.
pub struct Cause {
    /// The name of its folder.
    pub id: &'static str,
    /// One sentence that a person would say.
    pub title: &'static str,
    /// Heading of the causes that it is listed with: one of [`families`](crate::families).
    pub family: &'static str,
    /// What several causes are: `private-growth`, `refused-work`.
    pub(crate) group: Option<&'static str>,
    /// Causes whose findings come of this one, wherever both are found.
    pub(crate) explains: &'static [&'static str],
    /// Text of page.md.
    pub(crate) page: &'static str,
    /// Text of cause.yaml.
    pub(crate) facts: &'static str,
    /// None where it is not detected in a recording.
    pub(crate) rule: Option<Rule>,
}

impl Cause {
    /// Judges a run.
    pub(crate) fn judge(&self, analysis: &Analysis) -> Judgement {
        let mut judgement = self.rule.map_or(Judgement::Nothing, |rule| (rule.judge)(analysis));
        if let Judgement::Found(findings) = &mut judgement {
            for finding in findings {
                finding.cause = self.id.into();
                // A rule that has the figures may say more.
                if finding.title.is_empty() {
                    finding.headline = first_sentence(finding).unwrap_or(self.title).to_owned();
                    finding.title = self.title.into();
                } else {
                    finding.headline = finding.title.clone();
                }
                finding.explains.extend(self.explains.iter().map(|id| (*id).to_owned()));
            }
        }
        judgement
    }

    /// What removes it, as far as that is known without a recording: the rule's remedies, or those that its page lists.
    pub(crate) fn fixes(&self) -> Vec<Fix> {
        if let Some(rule) = self.rule {
            return (rule.fixes)(&RemedyContext::default());
        }
        let listed = self.page.lines().skip_while(|line| *line != "## Remedy").skip(1);
        listed
            .map_while(|line| line.strip_prefix("- "))
            .map(|title| Fix::new(title, format!("ullage explain {}", self.id)))
            .collect()
    }

    /// Whether no rule judges a recording for it: it has a page, and at most messages in logs.
    pub fn is_undetected(&self) -> bool {
        self.rule.is_none()
    }

    /// The manual page, in Markdown.
    pub fn page(&self) -> String {
        let known = match self.rule {
            Some(_) => "",
            None => "\n\nullage does not detect this cause in a recording.\n",
        };
        format!("{}{known}", self.page)
    }
}
