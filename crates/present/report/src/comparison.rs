//! How does a comparison of machines read, in sentences? For the screen and for the JSON alike.

use crate::format;
use serde_json::{json, Value};
use ullage_model::{Against, Change, Comparison, Difference, Fact, Strength, Symptom, Tie};

/// As a JSON value (`ullage compare --json`), schema 1.
pub fn json(comparison: &Comparison) -> Value {
    json!({
        "schema": comparison.schema,
        "good": comparison.good,
        "others": comparison.others.iter().map(other).collect::<Vec<_>>(),
    })
}

fn other(against: &Against) -> Value {
    json!({
        "name": against.name,
        "matters": !against.differences.is_empty(),
        "symptoms": against.symptoms.iter().map(symptom).collect::<Vec<_>>(),
        "differences": against.differences.iter().map(difference).collect::<Vec<_>>(),
        "unimportant": against.unimportant,
        "same": against.same,
        "not_compared": against.not_compared,
    })
}

fn difference(one: &Difference) -> Value {
    json!({
        "rank": one.rank,
        "fact": one.change.fact,
        "title": one.title,
        "good": one.change.good,
        "bad": one.change.bad,
        "unit": one.unit,
        "score": one.score,
        "strength": one.strength,
        "because": because(one),
        "mechanism": one.mechanism,
        "test": one.test,
        "causes": one.causes,
        "with": one.with,
    })
}

/// A value as it is shown.
pub fn value(fact: &Fact, unit: &str) -> String {
    match fact {
        Fact::Number(n) if unit == "bytes" => format::bytes(*n),
        Fact::Number(n) if unit.is_empty() => format::count(*n),
        Fact::Number(n) => format!("{} {unit}", format::count(*n)),
        Fact::Flag(flag) => if *flag { "yes" } else { "no" }.into(),
        Fact::Text(text) if text.is_empty() => "nothing".into(),
        Fact::Text(text) => format::clean(text),
        Fact::Unlimited(_) => "unlimited".into(),
        Fact::Missing { missing } => format!("({})", format::clean(missing)),
    }
}

/// `limit.nofile.hard 4,096 against 1,024`.
pub fn change(change: &Change) -> String {
    format!("{}: {} against {}", format::clean(&change.fact), value(&change.good, ""), value(&change.bad, ""))
}

/// What went wrong, or differs.
pub fn symptom(symptom: &Symptom) -> String {
    match symptom {
        Symptom::Finding { cause, title } => format!("{} ({cause}).", format::clean(title)),
        Symptom::Failed { outcome } => {
            format!("{} No cause was found.", crate::text::outcome(outcome, None))
        }
        Symptom::Figure { figure, good, bad } => {
            let name = figure_name(figure);
            format!(
                "{} at most: {} in the good run, {} in this one.",
                capital(name),
                amount(figure, *good),
                amount(figure, *bad)
            )
        }
    }
}

/// Why it stands where it stands: one or more sentences.
pub fn because(one: &Difference) -> String {
    let sentences: Vec<String> = one.ties.iter().map(tie).collect();
    match (sentences.is_empty(), one.strength) {
        (true, _) => "No reading points to it.".into(),
        (false, Strength::Possible) => format!("{} Nothing else points to it.", sentences.join(" ")),
        (false, _) => sentences.join(" "),
    }
}

fn tie(tie: &Tie) -> String {
    match tie {
        Tie::Found { cause } => format!("It explains the finding {cause}."),
        Tie::Met { figure, used, limit } => format!(
            "The run reached the limit: {} of {} {}.",
            amount(figure, *used),
            amount(figure, *limit),
            figure_name(figure)
        ),
        Tie::Wanted { figure, used, limit } => format!(
            "The good run used {} {}; here only {} are allowed.",
            amount(figure, *used),
            figure_name(figure),
            amount(figure, *limit)
        ),
        Tie::Far { figure, used, limit } => format!(
            "No run came near it: {} of {} {} at most.",
            amount(figure, *used),
            amount(figure, *limit),
            figure_name(figure)
        ),
        Tie::Moved { figure, good, bad } => format!(
            "It moves {}: {} in the good run, {} here.",
            figure_name(figure),
            amount(figure, *good),
            amount(figure, *bad)
        ),
        Tie::AtStake { cause } => format!("It affects the subject of {cause}."),
        Tie::KnownBad { what } => format!("{}.", capital(what)),
        Tie::Looser => "There is more room here than on the good machine.".into(),
    }
}

fn amount(figure: &str, n: u64) -> String {
    match figure {
        "seconds" => format::duration(n as f64),
        "memory" | "memory_late" | "cgroup_memory" | "host_memory" | "address_space" | "locked"
        | "shm_bytes" | "tmp_bytes" | "committed" | "commit_limit" | "swap" => format::bytes(n),
        _ => format::count(n),
    }
}

fn figure_name(figure: &str) -> &str {
    match figure {
        "memory" => "memory of the job",
        "memory_late" => "memory of the job in its last quarter",
        "cgroup_memory" => "memory of the cgroup",
        "host_memory" => "memory of the machine",
        "address_space" => "address space of a process",
        "locked" => "locked memory",
        "shm_bytes" => "bytes in /dev/shm",
        "shm_inodes" => "inodes in /dev/shm",
        "tmp_bytes" => "bytes of temporary files",
        "descriptors" => "descriptors of a process",
        "mappings" => "mappings of a process",
        "threads" => "threads of a process",
        "tasks" => "threads of the job",
        "cgroup_tasks" => "tasks of the cgroup",
        "processes" => "processes",
        "seconds" => "time",
        other => other,
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
