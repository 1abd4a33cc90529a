//! What does each Python file import of this repository? By its import statements, those inside of functions too.
//!
//! `from package import name` leads to the file that defines the name: a module of the package (of a compiled one its
//! `.pyi`), or what its `__init__.py` imports it from. In the agent `import _ullage_name` and `load("name")` lead to the
//! part that the command writes under that name; `_in("name", …)` is a `load` that waits. Any other module that is found by its name at run time
//! (`sys.modules`) is not seen.

use super::circle::Graph;
use crate::tree::File;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static FROM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)").ok()
});
static IMPORT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^[ \t]*import[ \t]+([^\n]+)").ok());
static LOAD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?:\b|_)(?:load|in)\("(\w+)""#).ok());
static COMMENT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"#[^\n]*").ok());

/// Where the agent's parts lie, and what each is called in a job.
const AGENT: &str = "python/ullage/agent/";
const PART: &str = "_ullage_";

struct Module {
    file: String,
    /// The folder that its absolute imports begin in.
    root: String,
    /// By which it imports its neighbours.
    package: Vec<String>,
    /// Path as written (dots first), name, and what it is called here.
    names: Vec<(String, String, String)>,
    modules: Vec<String>,
}

type Modules<'m> = BTreeMap<(String, Vec<String>), &'m Module>;

/// Adds the Python files, and what each imports.
pub(super) fn imports(files: &[File], graph: &mut Graph) {
    let is_python = |file: &&File| [".py", ".pyi"].iter().any(|end| file.path.ends_with(end));
    let python: Vec<&File> = files.iter().filter(is_python).collect();
    let is_package = |folder: &str| python.iter().any(|file| file.path == format!("{folder}/__init__.py"));
    let modules: Vec<(Vec<String>, Module)> = python.iter().map(|file| module(file, &is_package)).collect();
    let by_name: Modules =
        modules.iter().map(|(name, module)| ((module.root.clone(), name.clone()), module)).collect();
    for (_, module) in &modules {
        let mut to: Vec<String> = Vec::new();
        for (from, name, _) in &module.names {
            to.extend(file_of(module, from, name, &by_name, 0));
        }
        for name in &module.modules {
            let part = name.strip_prefix(PART).map(|part| format!("{AGENT}{part}.py"));
            to.extend(part.filter(|part| python.iter().any(|file| file.path == *part)));
            to.extend(find(module, &parts(name), &by_name).map(|found| found.file.clone()));
        }
        let edges = graph.entry(module.file.clone()).or_default();
        edges.extend(to.into_iter().filter(|file| *file != module.file));
    }
}

fn parts(name: &str) -> Vec<String> {
    name.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn module(file: &File, is_package: &dyn Fn(&str) -> bool) -> (Vec<String>, Module) {
    let (folder, base) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let mut root = folder;
    let mut package = Vec::new();
    while is_package(root) {
        let (above, last) = root.rsplit_once('/').unwrap_or(("", root));
        package.insert(0, last.to_owned());
        root = above;
    }
    let mut name = package.clone();
    if base != "__init__.py" {
        name.push(base.trim_end_matches('i').trim_end_matches(".py").to_owned());
    }
    let text = COMMENT.as_ref().map_or(file.text.clone(), |regex| regex.replace_all(&file.text, "").into());
    let mut names = Vec::new();
    for found in FROM.iter().flat_map(|regex| regex.captures_iter(&text)) {
        let (Some(from), Some(list)) = (found.get(1), found.get(2)) else { continue };
        for one in
            list.as_str().trim_matches(['(', ')']).split(',').map(str::trim).filter(|one| !one.is_empty())
        {
            let (name, alias) = one.split_once(" as ").unwrap_or((one, one));
            names.push((from.as_str().to_owned(), name.trim().to_owned(), alias.trim().to_owned()));
        }
    }
    let mut modules = Vec::new();
    for found in IMPORT.iter().flat_map(|regex| regex.captures_iter(&text)).filter_map(|found| found.get(1)) {
        let list =
            found.as_str().split(',').map(|one| one.split(" as ").next().unwrap_or(one).trim().to_owned());
        modules.extend(list);
    }
    if file.path.starts_with(AGENT) {
        let loaded = LOAD.iter().flat_map(|regex| regex.captures_iter(&text));
        modules.extend(loaded.filter_map(|found| Some(format!("{PART}{}", found.get(1)?.as_str()))));
    }
    (name, Module { file: file.path.clone(), root: root.to_owned(), package, names, modules })
}

/// A module by its absolute name: beside the file that asks, or a package of `python/`.
fn find<'m>(asking: &Module, name: &[String], all: &Modules<'m>) -> Option<&'m Module> {
    let at = |root: &str| all.get(&(root.to_owned(), name.to_vec())).copied();
    at(&asking.root).or_else(|| at("python"))
}

fn file_of(asking: &Module, from: &str, name: &str, all: &Modules, depth: usize) -> Option<String> {
    let dots = from.chars().take_while(|letter| *letter == '.').count();
    let mut path = parts(from);
    if dots > 0 {
        let up = asking.package.len().checked_sub(dots - 1)?;
        path = asking.package[..up].iter().cloned().chain(path).collect();
    }
    let below: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
    if let Some(found) = find(asking, &below, all) {
        return Some(found.file.clone());
    }
    let module = find(asking, &path, all)?;
    let handed_on = module.names.iter().find(|(_, _, alias)| alias == name).filter(|_| depth < 16);
    let further = handed_on.and_then(|(from, name, _)| file_of(module, from, name, all, depth + 1));
    further.or_else(|| Some(module.file.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_lead_to_the_file_that_defines_the_name() {
        let files = [
            ("python/p/__init__.py", "from ._core import (\n    Thing as Renamed,  # a, comment\n)\n"),
            (
                "python/p/_core.py",
                "import os\n\nclass Thing: ...\n\n\ndef late():\n    from . import _other\n",
            ),
            ("python/p/_other.py", "from p import _native\nfrom ._core import Thing\n"),
            ("python/p/_native.pyi", "class Thing: ...\n"),
            ("tests/run.py", "import p._other\nfrom p import Renamed\nimport helper\n"),
            ("tests/helper.py", "x = 1\n"),
        ];
        let files: Vec<File> = files.map(|(path, text)| File { path: path.into(), text: text.into() }).into();
        let mut graph = Graph::new();
        imports(&files, &mut graph);
        let of = |file: &str| graph[file].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(of("python/p/__init__.py"), ["python/p/_core.py"]);
        assert_eq!(of("python/p/_core.py"), ["python/p/_other.py"]);
        assert_eq!(of("python/p/_other.py"), ["python/p/_core.py", "python/p/_native.pyi"]);
        assert_eq!(of("tests/run.py"), ["python/p/_core.py", "python/p/_other.py", "tests/helper.py"]);
    }

    #[test]
    fn parts_of_the_agent_import_and_load_each_other_by_the_names_that_they_have_in_a_job() {
        let low = File { path: format!("{AGENT}low.py"), text: String::new() };
        let text =
            "import _ullage_low as low\n\ndef late():\n    return common.load(\"late\").x\n".to_owned();
        let high = File { path: format!("{AGENT}high.py"), text };
        let late = File { path: format!("{AGENT}late.py"), text: "import _ullage_native\n".into() };
        let mut graph = Graph::new();
        imports(&[low, high, late], &mut graph);
        let of = |name: &str| graph[&format!("{AGENT}{name}.py")].iter().cloned().collect::<Vec<_>>();
        assert_eq!(of("high"), [format!("{AGENT}late.py"), format!("{AGENT}low.py")]);
        assert_eq!((of("late"), of("low")), (vec![], vec![]));
    }
}
