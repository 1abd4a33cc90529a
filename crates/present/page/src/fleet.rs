//! A fleet's answer as one HTML file: the answer in the words of the text, and tables of what stands behind it. It has no script
//! and asks for nothing.

use crate::page::{STYLE, STYLE_HASH};
use askama::Template;
use std::collections::BTreeSet;
use ullage_model::{FailureKind, FleetAnswer, FleetRow};
use ullage_report::{comparison, fleet, format, text};

/// Recordings that are listed: all that say something of their own come first.
const MOST_ROWS: usize = 500;

#[derive(Template)]
#[template(path = "fleet.html")]
struct Page<'a> {
    policy: String,
    style: &'static str,
    headline: String,
    ink: &'static str,
    text: String,
    tables: Vec<Table>,
    version: &'a str,
}

struct Table {
    title: &'static str,
    caption: String,
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// The page of an answer. `version`: of ullage, as it stands at the bottom.
pub fn render_fleet(answer: &FleetAnswer, version: &str) -> String {
    let tables = [candidates(answer), cascade(answer), differences(answer), outliers(answer), rows(answer)];
    let page = Page {
        policy: format!(
            "default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
        ),
        style: STYLE,
        headline: fleet::headline(answer),
        ink: if answer.first.is_some() { "bad" } else { "good" },
        text: text::fleet(answer, &text::Style::plain(text::Style::MAX_WIDTH)),
        tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
        version,
    };
    // Every field is a string: rendering into a string has nothing that could fail.
    page.render().unwrap_or_else(|error| format!("<!DOCTYPE html><title>ullage</title><p>{error}</p>"))
}

fn candidates(answer: &FleetAnswer) -> Table {
    let first = answer.first.as_ref();
    let determined = first.is_some_and(|first| first.determined);
    Table {
        title: "First",
        caption: if determined { "It failed first" } else { "The intervals of these failures overlap" }
            .to_owned(),
        heads: vec!["time", "±", "where and of what", "cause", "failure"],
        rows: first
            .map_or(&[][..], |first| first.candidates.as_slice())
            .iter()
            .map(|one| {
                vec![
                    fleet::wall_clock(one.at_unix),
                    fleet::error(one.error_s),
                    fleet::candidate(one),
                    one.cause.as_deref().map(format::clean).unwrap_or_default(),
                    one.failure.word().to_owned(),
                ]
            })
            .collect(),
    }
}

fn cascade(answer: &FleetAnswer) -> Table {
    let within = |seconds: Option<f64>| seconds.map(format::duration).unwrap_or_default();
    Table {
        title: "Then",
        caption: "Failures after the first, by how they ended".to_owned(),
        heads: vec!["ending", "recordings", "failure", "within"],
        rows: (answer.cascade.iter())
            .map(|step| {
                vec![
                    format::clean(&step.ending),
                    format::count(step.recordings as u64),
                    step.failure.word().to_owned(),
                    within(step.within_s),
                ]
            })
            .collect(),
    }
}

fn differences(answer: &FleetAnswer) -> Table {
    let of_node = answer.differs.iter().flat_map(|node| node.differences.iter().map(move |one| (node, one)));
    Table {
        title: "Differs",
        caption: "What is different about a node, what can explain it first".to_owned(),
        heads: vec!["node", "fact", "here", "most others", "others alike", "because"],
        rows: of_node
            .map(|(node, one)| {
                let change = &one.difference.change;
                let unit = &one.difference.unit;
                vec![
                    format::clean(&node.node),
                    format::clean(&change.fact),
                    comparison::value(&change.bad, unit),
                    comparison::value(&change.good, unit),
                    format::count(one.same as u64),
                    format::clean(&comparison::because(&one.difference)),
                ]
            })
            .collect(),
    }
}

fn outliers(answer: &FleetAnswer) -> Table {
    Table {
        title: "Outliers",
        caption: "Recordings far above the median of their peers".to_owned(),
        heads: vec!["recording"],
        rows: answer.outliers.iter().map(|one| vec![fleet::outlier(one)]).collect(),
    }
}

fn rows(answer: &FleetAnswer) -> Table {
    let standing_out: BTreeSet<&str> = answer.outliers.iter().map(|one| one.place.path.as_str()).collect();
    let weight = |row: &FleetRow| match row.failure {
        Some(FailureKind::Own) => 0,
        _ if row.problem.is_some() => 1,
        _ if !row.closed => 2,
        _ if standing_out.contains(row.path.as_str()) => 3,
        Some(FailureKind::Unclear) => 4,
        _ => 5,
    };
    let mut sorted: Vec<&FleetRow> = answer.rows.iter().collect();
    sorted.sort_by_key(|row| weight(row));
    let more = sorted.len().saturating_sub(MOST_ROWS);
    Table {
        title: "Recordings",
        caption: match more {
            0 => "All recordings; what failed of its own stands first".to_owned(),
            more => format!(
                "What failed of its own stands first; {} more: ullage fleet --json",
                format::count(more as u64)
            ),
        },
        heads: vec!["node", "rank", "attempt", "ended", "headline", "peak"],
        rows: sorted.into_iter().take(MOST_ROWS).map(row).collect(),
    }
}

fn row(row: &FleetRow) -> Vec<String> {
    let headline = row.problem.as_deref().unwrap_or(&row.headline);
    vec![
        row.node.as_deref().map(format::clean).unwrap_or_default(),
        row.rank.map(|rank| rank.to_string()).unwrap_or_default(),
        row.attempt.to_string(),
        row.ended_unix.map(fleet::wall_clock).unwrap_or_default(),
        format::clean(headline),
        row.peak_bytes.map(format::bytes).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_no_markup_and_nothing_is_asked_for() {
        let hostile = "<script>alert(1)</script>\u{1b}[2J\"'&";
        let row = FleetRow {
            path: hostile.into(),
            node: Some(hostile.into()),
            headline: hostile.into(),
            problem: Some(hostile.into()),
            ..FleetRow::default()
        };
        let mut fleet = ullage_fleet::Fleet::default();
        fleet.push(row, &ullage_model::Facts::new());
        let page = render_fleet(&fleet.answer(None), "0");
        assert!(!page.contains("<script") && !page.contains('\u{1b}') && !page.contains("http:"), "{page}");
        assert!(!page.contains("https:") && !page.contains("url("));
        assert!(page.contains("default-src") && !page.contains("script-src"));
    }
}
