//! Do the modules of a crate import only what is below them? By the order that ARCHITECTURE.md states, lowest first.

use crate::imports::Graph;
use crate::rules::Rules;

/// Circles may have as many files, within one folder.
const MOST_IN_A_CIRCLE: usize = 3;

/// How many imports were held against the order, and which break it.
pub(crate) fn check(rules: &Rules, graph: &Graph) -> (usize, Vec<String>) {
    let mut checked = 0;
    let mut problems = Vec::new();
    for (folder, order) in &rules.layers {
        let (root, elsewhere) = (format!("{folder}/src/"), format!("{folder}/"));
        let layer = |file: &str| -> Option<String> {
            let below = file.strip_prefix(&root).or_else(|| file.strip_prefix(&elsewhere))?;
            let name = below.split('/').next()?.trim_end_matches(".rs").trim_end_matches(".py");
            (!["lib", "main", "tests"].contains(&name)).then(|| name.to_owned())
        };
        let rank = |name: &String| order.iter().position(|known| known == name);
        let mut seen: Vec<String> = Vec::new();
        for (file, imported) in graph {
            let Some(from) = layer(file) else { continue };
            if rank(&from).is_none() && !seen.contains(&from) {
                problems.push(format!("{folder}: the module {from} is not in the order of ARCHITECTURE.md"));
            }
            for to in imported.iter().filter_map(|to| Some((to, layer(to)?))) {
                checked += 1;
                if let (Some(own), Some(other)) = (rank(&from), rank(&to.1)) {
                    if other > own {
                        problems.push(format!("{file} may not import {}: {from} is below {}", to.0, to.1));
                    }
                }
            }
            seen.push(from);
        }
        for name in order.iter().filter(|name| !seen.contains(name)) {
            problems.push(format!("ARCHITECTURE.md orders {name} of {folder}, which is no module"));
        }
    }
    (checked, problems)
}

/// Circles that are too large, or that more than one folder is part of, where ARCHITECTURE.md does not list them; and what it
/// lists that is smaller by now. Those of Rust may not be listed.
pub(crate) fn too_large(rules: &Rules, circles: &[Vec<String>]) -> Vec<String> {
    let folder = |file: &String| file.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let small = |circle: &&Vec<String>| {
        circle.len() <= MOST_IN_A_CIRCLE && circle.iter().all(|file| folder(file) == folder(&circle[0]))
    };
    let mut left: Vec<&String> = rules.circles.keys().collect();
    let mut problems = Vec::new();
    for circle in circles.iter().filter(|circle| !small(circle)) {
        let files = circle.len();
        let lists =
            |folder: &str| circle.iter().all(|file| file.starts_with(folder) && !file.ends_with(".rs"));
        let listed =
            rules.circles.iter().filter(|(folder, _)| lists(folder)).max_by_key(|(folder, _)| folder.len());
        left.retain(|folder| listed.is_none_or(|(listed, _)| listed != *folder));
        match listed {
            Some((folder, most)) if files < *most => {
                problems.push(format!(
                    "the circle of {folder} has {files} files by now: ARCHITECTURE.md says {most}"
                ));
            }
            Some((_, most)) if files == *most => {}
            _ => problems.push(format!("{files} files import each other in a circle: {}", circle.join(", "))),
        }
    }
    let gone = |folder| format!("ARCHITECTURE.md lists a circle of {folder}, where none is left");
    problems.extend(left.into_iter().map(gone));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in edges {
            let path = |name: &str| format!("crates/a/src/{name}.rs");
            graph.entry(path(from)).or_default().insert(path(to));
            graph.entry(path(to)).or_default();
        }
        graph
    }

    fn rules() -> Rules {
        Rules::parse(crate::rules::tests::TEXT).expect("rules")
    }

    #[test]
    fn a_module_may_import_what_is_below_it() {
        let fine =
            graph(&[("high/mod", "low/x"), ("high/y", "high/mod"), ("lib", "high/mod"), ("low/x", "low/z")]);
        assert_eq!(check(&rules(), &fine), (3, vec![]));
    }

    #[test]
    fn each_breach_of_the_order_is_named() {
        let wrong = graph(&[("low/x", "high/mod")]);
        let (_, problems) = check(&rules(), &wrong);
        assert_eq!(
            problems,
            ["crates/a/src/low/x.rs may not import crates/a/src/high/mod.rs: low is below high"]
        );
        let (_, problems) = check(&rules(), &graph(&[("low", "other"), ("high", "low")]));
        assert_eq!(problems, ["crates/a: the module other is not in the order of ARCHITECTURE.md"]);
        let (_, problems) = check(&rules(), &graph(&[("low", "low/x")]));
        assert_eq!(problems, ["ARCHITECTURE.md orders high of crates/a, which is no module"]);
    }

    #[test]
    fn a_circle_is_small_and_within_one_folder() {
        let circle = |files: &[&str]| vec![files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>()];
        let rules = Rules::default();
        assert_eq!(too_large(&rules, &circle(&["a/x", "a/y", "a/z"])), Vec::<String>::new());
        assert_eq!(too_large(&rules, &circle(&["a/w", "a/x", "a/y", "a/z"])).len(), 1);
        assert_eq!(too_large(&rules, &circle(&["a/x", "b/y"])).len(), 1);
    }

    #[test]
    fn a_circle_of_rust_is_not_excused_by_the_list() {
        let of = |ending: &str| {
            vec![["w", "x", "y", "z"].map(|file| format!("crates/b/{file}.{ending}")).to_vec()]
        };
        assert_eq!(too_large(&rules(), &of("py")), Vec::<String>::new());
        assert!(too_large(&rules(), &of("rs"))[0].starts_with("4 files import"));
    }

    #[test]
    fn a_circle_that_is_listed_may_only_shrink_and_then_the_list_does() {
        let of =
            |files: &[&str]| vec![files.iter().map(|file| format!("crates/b/{file}")).collect::<Vec<_>>()];
        assert_eq!(too_large(&rules(), &of(&["w", "x", "y", "z"])), Vec::<String>::new());
        assert!(too_large(&rules(), &of(&["v", "w", "x", "y", "z"]))[0].starts_with("5 files import"));
        assert!(too_large(&rules(), &of(&["x", "c/y"]))[0].contains("2 files by now"));
        assert!(too_large(&rules(), &[])[0].contains("none is left"));
    }
}
