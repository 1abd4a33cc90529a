//! Do the documents hold together: does each link to a file of the repository lead somewhere, and is the
//! output pasted into the README marked with the command that it came from?

use crate::tree::File;
use regex::Regex;
use std::path::Path;

/// Before a fenced block of true output: which command gave it.
const MARK: &str = "<!-- output of: ";

/// How many links were followed, and which lead nowhere.
pub(crate) fn links(root: &Path, pages: &[&File]) -> (usize, Vec<String>) {
    let Ok(link) = Regex::new(r"\]\(([^)\s#]+)(#[^)]*)?\)") else {
        return (0, vec!["the pattern of links does not compile".into()]);
    };
    let mut count = 0;
    let mut problems = Vec::new();
    for page in pages {
        let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
        for target in link.captures_iter(&page.text).filter_map(|hit| hit.get(1)) {
            let target = target.as_str();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            count += 1;
            if !root.join(folder).join(target).exists() {
                problems.push(format!("{}: the link to {target} leads nowhere", page.path));
            }
        }
    }
    (count, problems)
}

/// The README must say which command each pasted output came from, and must have one at least.
pub(crate) fn pasted_output(readme: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let parts: Vec<&str> = readme.split(MARK).skip(1).collect();
    if parts.is_empty() {
        problems.push(format!("README.md: no output is marked with \"{MARK}COMMAND -->\""));
    }
    for part in parts {
        let (command, rest) = part.split_once("-->").unwrap_or((part.lines().next().unwrap_or(""), ""));
        let block = rest.trim_start().strip_prefix("```").and_then(|b| b.split_once('\n')).map(|(_, b)| b);
        let text = block.and_then(|b| b.split_once("```")).map_or("", |(text, _)| text.trim());
        if text.is_empty() {
            problems.push(format!("README.md: no output stands below the mark of {}", command.trim()));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_followed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "[a](src/main.rs) [b](src/gone.rs#x) [c](https://example.org) [d](#here)";
        let page = File { path: "x.md".into(), text: text.into() };
        let (count, problems) = links(root, &[&page]);
        assert_eq!(count, 2);
        assert_eq!(problems, ["x.md: the link to src/gone.rs leads nowhere"]);
    }

    #[test]
    fn pasted_output_has_a_mark_and_a_text() {
        assert_eq!(
            pasted_output("<!-- output of: make demo -->\n```text\nVerdict\n```\n"),
            Vec::<String>::new()
        );
        assert_eq!(pasted_output("nothing").len(), 1);
        assert_eq!(pasted_output("<!-- output of: make demo -->\n```text\n```\n").len(), 1);
        assert_eq!(pasted_output("<!-- output of: make demo").len(), 1);
    }
}
