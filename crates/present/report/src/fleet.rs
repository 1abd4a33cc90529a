//! How does a fleet's answer look to programs, and how do its parts read? For the screen, the page and the JSON alike.

use crate::comparison::value;
use crate::format;
use ullage_model::{
    FailureKind, FleetAnswer, FleetCandidate, FleetDifference, FleetOutlier, FleetPlace, FleetRow,
};

/// The answer as JSON, schema 1 (docs/schema/fleet-1.json): indented, one newline at the end.
pub fn json(answer: &FleetAnswer) -> String {
    // Written from the types: as values in memory, thousands of rows would take many times their text.
    match serde_json::to_string_pretty(answer) {
        Ok(text) => format::clean_json(&(text + "\n")),
        Err(error) => {
            crate::json::text(&serde_json::json!({"schema": answer.schema, "error": error.to_string()}))
        }
    }
}

/// `rank 517 (n064)`, `n064`, or the folder where neither is known.
pub fn place(place: &FleetPlace) -> String {
    let node = place.node.as_deref().map(format::clean);
    match (place.rank, node) {
        (Some(rank), Some(node)) => format!("rank {rank} ({node})"),
        (Some(rank), None) => format!("rank {rank}"),
        (None, Some(node)) => node,
        (None, None) => format::clean(&place.path),
    }
}

/// A wall clock in UTC: `12:03:44.2 UTC`.
pub fn wall_clock(unix: f64) -> String {
    let tenths = (unix.max(0.0) * 10.0).round() as u64;
    let seconds = tenths / 10;
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{} UTC", seconds % 60, tenths % 10)
}

/// `±0.05 s`.
pub fn error(seconds: f64) -> String {
    match seconds {
        small if small < 10.0 => format!("±{} s", format::number((small * 100.0).ceil() / 100.0)),
        large => format!("±{}", format::duration(large)),
    }
}

/// Where and of what: `n064, rank 517, loader worker 2: The cgroup ran out of memory`.
pub fn candidate(one: &FleetCandidate) -> String {
    let rank = one.place.rank.map(|rank| format!("rank {rank}"));
    let role = one.role.as_deref().map(format::clean).filter(|role| Some(role) != rank.as_ref());
    let node = one.place.node.as_deref().map(format::clean);
    let named: Vec<String> = [node, rank, role].into_iter().flatten().collect();
    let place = if named.is_empty() { format::clean(&one.place.path) } else { named.join(", ") };
    format!("{place}: {}", format::clean(&one.sentence))
}

/// `size of /dev/shm 64 MiB (others 8 GiB)`.
pub fn difference(one: &FleetDifference) -> String {
    let change = &one.difference.change;
    let unit = &one.difference.unit;
    format!(
        "{} {} (others {})",
        format::clean(&one.difference.title),
        value(&change.bad, unit),
        value(&change.good, unit)
    )
}

/// `rank 517 (n064): growth 684 KiB a second (median 5 KiB a second)`.
pub fn outlier(one: &FleetOutlier) -> String {
    let figure = |value: f64| match one.figure.as_str() {
        "growth" => format::rate(value, "bytes"),
        "mappings" => format::amount(value, "mappings"),
        "descriptors" => format::amount(value, "descriptors"),
        _ => format::bytes(value.max(0.0) as u64),
    };
    let name = match one.figure.as_str() {
        "growth" => "growth".to_owned(),
        "memory" => "memory at its peak".to_owned(),
        "shm_bytes" => "/dev/shm".to_owned(),
        "mappings" | "descriptors" => "at most".to_owned(),
        other => match other.strip_prefix("each ") {
            Some(role) => format!("private memory of each {}", format::clean(role)),
            None => format::clean(other),
        },
    };
    format!("{}: {name} {} (median {})", place(&one.place), figure(one.value), figure(one.median))
}

/// `one rank`, `1,023 recordings`: what the rows of a fleet are called.
pub fn counted(n: usize, rows: &[FleetRow]) -> String {
    let ranked = !rows.is_empty() && rows.iter().all(|row| row.rank.is_some());
    match ranked {
        true => format::plural(n as u64, "rank", "ranks"),
        false => format::plural(n as u64, "recording", "recordings"),
    }
}

/// `0–3, 9, 12`: ascending numbers, neighbours joined.
pub fn ranges(numbers: &[u32], most: usize) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(*number) => *end = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let one = |(from, to): &(u32, u32)| match to - from {
        0 => from.to_string(),
        1 => format!("{from}, {to}"),
        _ => format!("{from}–{to}"),
    };
    let mut shown: Vec<String> = ranges.iter().take(most).map(one).collect();
    if ranges.len() > most {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// The answer in one sentence without its full stop.
pub fn headline(answer: &FleetAnswer) -> String {
    let rows = &answer.rows;
    let nodes = match answer.nodes {
        0 => String::new(),
        n => format!(" on {}", format::plural(n as u64, "node", "nodes")),
    };
    let job = answer.job.as_deref().map_or(String::new(), |job| format!(", job {}", format::clean(job)));
    // A recording of a launcher holds several ranks.
    let ranks = match answer.ranks {
        n if n > answer.recordings => format!(" of {}", format::plural(n as u64, "rank", "ranks")),
        _ => String::new(),
    };
    let whole = format!("{}{ranks}{nodes}{job}", counted(answer.recordings, rows));
    let down = answer.states.failed + answer.states.lost;
    let Some(first) = &answer.first else {
        let states = [
            (answer.states.healthy, "healthy"),
            (answer.states.warned, "ended well with a warning"),
            (answer.states.running, "running"),
            (answer.states.unreadable, "unreadable"),
        ];
        let all = states.iter().find(|(count, _)| *count == answer.recordings && *count > 0);
        if let Some((_, state)) = all {
            return format!("{whole}: all {state}");
        }
        let parts = states.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> =
            parts.map(|(count, state)| format!("{} {state}", format::count(*count as u64))).collect();
        return format!(
            "{whole}: {}",
            if parts.is_empty() { "no recording".to_owned() } else { parts.join(", ") }
        );
    };
    match (first.determined, first.candidates.first(), &first.node) {
        (true, Some(one), _) if one.failure == FailureKind::Echo => {
            format!(
                "{whole}: {} failed, none of its own; {} was the earliest",
                counted(down, rows),
                place(&one.place)
            )
        }
        (true, Some(one), _) if down > 1 => {
            format!("{whole}: {} failed after {} did", counted(down - 1, rows), place(&one.place))
        }
        (true, Some(one), _) => format!("{whole}: {} failed alone", place(&one.place)),
        (_, _, Some(node)) => format!(
            "{whole}: {} failed, first on {}; which of {} there cannot be determined",
            counted(down, rows),
            format::clean(node),
            counted(first.candidates.len() + first.more, rows)
        ),
        _ => format!("{whole}: {} failed; the first cannot be determined", counted(down, rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clocks_and_errors_have_units() {
        assert_eq!(wall_clock(1_795_658_015.279), "01:53:35.3 UTC");
        assert_eq!(wall_clock(59.97), "00:01:00.0 UTC", "what is rounded up carries");
        assert_eq!(
            (error(0.05), error(1.204), error(61.0)),
            ("±0.05 s".into(), "±1.21 s".into(), "±1 min 1 s".into())
        );
    }

    #[test]
    fn neighbouring_numbers_are_joined() {
        assert_eq!(ranges(&[0, 1, 2, 3, 9, 12, 13], 8), "0–3, 9, 12, 13");
        assert_eq!(ranges(&[1, 3, 5], 2), "1, 3, …");
        assert_eq!(ranges(&[], 2), "");
    }

    #[test]
    fn names_that_steer_are_shown() {
        let hostile = FleetPlace { path: "x".into(), node: Some("n\u{1b}[2J".into()), rank: Some(3) };
        assert_eq!(place(&hostile), "rank 3 (n\u{fffd}[2J)");
    }
}
