//! Which fact changes what, how, and which command settles it? Data only: rows by subject, one file each, and
//! the causes, which name the facts in their folders. A fact
//! that no row names changes nothing that is known, and is counted, not ranked.
//!
//! The first row that names a fact counts, so that an exact name stands before a pattern that takes it too.

mod causes;
mod kernel;
mod limits;
mod python;
mod row;
mod settings;

pub(crate) use row::{Effect, Row};

/// The row of a fact.
pub(crate) fn row(fact: &str) -> Option<&'static Row> {
    all().find(|row| matches(row.fact, fact))
}

pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    limits::ROWS.iter().chain(kernel::ROWS).chain(settings::ROWS).chain(python::ROWS)
}

/// Whether a name, or the beginning of one with `*`, means this fact.
pub(crate) fn matches(pattern: &str, fact: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => fact.starts_with(beginning),
        None => pattern == fact,
    }
}

impl Row {
    /// Causes that a difference in the fact can bring about.
    pub(crate) fn causes(&self) -> &'static [&'static str] {
        named(causes::OF_FACT, self.fact)
    }
}

/// The figures that a cause is about.
pub(crate) fn stake(cause: &str) -> &'static [&'static str] {
    named(causes::FIGURES, cause)
}

fn named(table: &[(&str, &'static [&'static str])], name: &str) -> &'static [&'static str] {
    table.iter().find(|(known, _)| *known == name).map_or(&[], |(_, names)| names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole_and_an_exact_name_is_not_hidden_by_a_pattern() {
        for (at, one) in all().enumerate() {
            assert!(one.mechanism.ends_with('.') && !one.title.is_empty(), "{}", one.fact);
            assert!(!one.test.is_empty() && (0.0..=0.4).contains(&one.base), "{}", one.fact);
            let hidden = all().take(at).any(|earlier| matches(earlier.fact, one.fact));
            assert!(!hidden, "{} comes too late", one.fact);
        }
    }

    #[test]
    fn patterns_take_beginnings() {
        assert!(matches("env.MALLOC_*", "env.MALLOC_ARENA_MAX") && matches("a", "a") && !matches("a", "ab"));
        assert_eq!(row("limit.nofile.soft").unwrap().title, "soft limit of open files");
        assert!(row("kernel.hostname").is_none());
    }
}
