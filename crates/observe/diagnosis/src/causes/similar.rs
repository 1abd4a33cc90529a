//! Which cause may somebody have meant who typed a name that there is not?

use super::causes;
use crate::policy::log::NAMES_ALIKE;

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
        .map(|cause| (alike(cause.id), cause.id))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness >= NAMES_ALIKE)
        .map(|(_, id)| id)
}
