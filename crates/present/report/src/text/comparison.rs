//! A comparison of machines on a screen: what went wrong, and the differences in the order in which to try them.

use super::layout::Screen;
use super::style::{Ink, Style};
use crate::comparison::{because, change, symptom, value};
use crate::format;
use ullage_model::{Against, Comparison, Difference, Strength};

/// Differences shown whole; the others are named in a line each.
const WHOLE: usize = 4;
/// Changes named that come with another, or change nothing.
const NAMED: usize = 6;

/// Every other machine against the good one; ends with a newline.
pub fn comparison(comparison: &Comparison, style: &Style) -> String {
    comparison
        .others
        .iter()
        .map(|against| one(&comparison.good, against, style))
        .collect::<Vec<_>>()
        .join("\n")
}

fn one(good: &str, against: &Against, style: &Style) -> String {
    let mut screen = Screen::new(*style);
    screen.section("Compared", Ink::Strong);
    screen.prose(0, 2, &format!("{} (good) and {}", format::clean(good), format::clean(&against.name)));
    screen.section("Symptom", Ink::Bad);
    for one in &against.symptoms {
        screen.prose(0, 2, &symptom(one));
    }
    screen.section("Differs", Ink::Strong);
    if against.differences.is_empty() {
        screen.prose(0, 2, "No difference that matters.");
    }
    for difference in against.differences.iter().take(WHOLE) {
        whole(&mut screen, difference, style);
    }
    for difference in against.differences.iter().skip(WHOLE) {
        screen.prose(0, 3, &line(difference));
    }
    screen.section("Same", Ink::Quiet);
    let mut rest = match against.same {
        1 => "1 fact is the same".to_owned(),
        n => format!("{} facts are the same", format::count(n)),
    };
    match against.unimportant.len() {
        0 => rest.push('.'),
        n => {
            let names: Vec<&str> =
                against.unimportant.iter().take(NAMED).map(|one| one.fact.as_str()).collect();
            let more = if n > NAMED { ", …" } else { "" };
            rest.push_str(&format!(
                "; {} {} nothing that is known ({}{more}).",
                format::count(n as u64),
                if n == 1 { "differs and changes" } else { "differ and change" },
                names.join(", ")
            ));
        }
    }
    let unknown = against.not_compared.iter().filter(|one| one.good != one.bad).count();
    if unknown > 0 {
        let verb = if unknown == 1 { "is" } else { "are" };
        rest.push_str(&format!(" {} {verb} known on one side only.", format::count(unknown as u64)));
    }
    screen.prose(0, 2, &format::clean(&rest));
    screen.finish()
}

fn line(one: &Difference) -> String {
    format!(
        "{}. {}: {} against {} ({}).",
        one.rank,
        one.title,
        value(&one.change.good, &one.unit),
        value(&one.change.bad, &one.unit),
        one.change.fact
    )
}

fn whole(screen: &mut Screen, one: &Difference, style: &Style) {
    let strength = match one.strength {
        Strength::Explains => style.paint(Ink::Bad, "explains it"),
        Strength::Likely => style.paint(Ink::Warn, "likely"),
        Strength::Possible => style.paint(Ink::Quiet, "possible"),
    };
    screen.prose(0, 3, &format!("{} {strength}", line(one)));
    screen.prose(3, 0, &because(one));
    screen.prose(3, 0, &one.mechanism);
    screen.prose(3, 0, "To settle it:");
    screen.paste(5, &one.test);
    if !one.with.is_empty() {
        let named: Vec<String> = one.with.iter().take(NAMED).map(change).collect();
        let more = one.with.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        screen.prose(3, 2, &format!("With it: {}{more}.", named.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::{Change, Fact, Symptom, Tie};

    fn against() -> Against {
        let change = |fact: &str, good, bad| Change {
            fact: fact.into(),
            good: Fact::Number(good),
            bad: Fact::Number(bad),
        };
        Against {
            name: "node7".into(),
            symptoms: vec![Symptom::Finding {
                cause: "shm-full-bytes".into(),
                title: "/dev/shm is full".into(),
            }],
            differences: vec![Difference {
                rank: 1,
                change: change("shm.size", 8 << 30, 64 << 20),
                title: "size of /dev/shm".into(),
                unit: "bytes".into(),
                score: 0.98,
                strength: Strength::Explains,
                ties: vec![Tie::Met { figure: "shm_bytes".into(), used: 64 << 20, limit: 64 << 20 }],
                mechanism: "Batches are files there.".into(),
                test: "mount -o remount,size=8589934592 /dev/shm".into(),
                causes: vec!["shm-full-bytes".into()],
                with: vec![change("shm.inodes", 7, 5)],
            }],
            unimportant: vec![change("shm.used", 1, 2)],
            same: 1200,
            not_compared: vec![],
        }
    }

    #[test]
    fn the_screen_says_what_differs_why_and_how_to_settle_it() {
        let whole = Comparison { schema: 1, good: "a.json".into(), others: vec![against()] };
        let text = comparison(&whole, &Style::plain(80));
        for part in [
            "8 GiB against 64 MiB",
            "explains it",
            "64 MiB of 64 MiB",
            "remount,size=8589934592",
            "1,200 facts",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }

    #[test]
    fn nothing_that_matters_is_one_line() {
        let empty = Against { symptoms: vec![], differences: vec![], unimportant: vec![], ..against() };
        let text =
            comparison(&Comparison { schema: 1, good: "a".into(), others: vec![empty] }, &Style::plain(80));
        assert!(text.contains("No difference that matters.") && text.lines().count() < 8, "{text}");
    }
}
