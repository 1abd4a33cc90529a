//! What does each file of a crate import of the same crate? By the paths that its code names.
//!
//! A path is followed to the file that defines its item, through every `use` that hands it on. A `use` counts wherever it
//! stands, `pub use` too; the declaration `mod x;` alone imports nothing. A call of a method names no file, and is not seen.

use super::circle::Graph;
use super::text::Text;
use crate::tree::File;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static MODULE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\bmod\s+([a-z_][a-z0-9_]*)\s*([;{])").ok());
/// A module whose file lies elsewhere.
static PLACED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"#\[path = "([^"]+)"\]\s*mod\s+(\w+)"#).ok());
static USE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\buse\s+([^;]+);").ok());
static PATH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+").ok());
static ITEM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(?:mut\s+)?([A-Za-z_]\w*)")
        .ok()
});

/// A module, by its path below the crate: `["analysis", "oom"]`.
type Name = Vec<String>;

#[derive(Default)]
struct Module {
    file: String,
    code: String,
    /// What `use` brings in: name, and the path that was written.
    brought: Vec<(String, Name)>,
    /// Paths of `use x::*`.
    globs: Vec<Name>,
}

struct Crate {
    modules: BTreeMap<Name, Module>,
}

/// Adds the files of the crate with this root, and what each imports.
pub(super) fn imports(root: &str, files: &[File], graph: &mut Graph) {
    let texts: BTreeMap<&str, &str> =
        files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let Some(text) = texts.get(root) else { return };
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut all = Crate { modules: BTreeMap::new() };
    read(&mut all, Vec::new(), root, folder, Text::code(text), &texts);
    for (name, module) in &all.modules {
        let edges = graph.entry(module.file.clone()).or_default();
        let used = module.brought.iter().map(|(_, path)| path).chain(&module.globs);
        let mut paths: Vec<Name> = used.cloned().collect();
        let code =
            USE.as_ref().map_or(module.code.clone(), |regex| regex.replace_all(&module.code, " ").into());
        let named = PATH.iter().flat_map(|regex| regex.find_iter(&code));
        paths.extend(named.map(|path| path.as_str().split("::").map(str::to_owned).collect::<Name>()));
        for path in paths {
            let to = all.file_of(name, &path, 0).filter(|to| *to != module.file);
            edges.extend(to);
        }
    }
    for module in all.modules.values() {
        graph.entry(module.file.clone()).or_default();
    }
}

/// `folder`: where the files of its child modules lie.
fn read(all: &mut Crate, name: Name, file: &str, folder: &str, code: String, texts: &BTreeMap<&str, &str>) {
    let mut own = String::new();
    let mut from = 0;
    while let Some(found) = MODULE.as_ref().and_then(|regex| regex.captures_at(&code, from)) {
        let (Some(whole), Some(child)) = (found.get(0), found.get(1)) else { break };
        own.push_str(&code[from..whole.start()]);
        let mut below = name.clone();
        below.push(child.as_str().to_owned());
        let inner = format!("{folder}/{}", child.as_str());
        from = whole.end();
        if whole.as_str().ends_with('{') {
            let (block, end) = Text::block(&code, whole.end() - 1);
            read(all, below, file, &inner, block.to_owned(), texts);
            from = end;
            continue;
        }
        let placed = placed(file, texts.get(file), child.as_str());
        for path in placed.into_iter().chain([format!("{inner}.rs"), format!("{inner}/mod.rs")]) {
            if let Some(text) = texts.get(path.as_str()) {
                read(all, below.clone(), &path, &inner, Text::code(text), texts);
            }
        }
    }
    own.push_str(&code[from..]);
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    for tree in USE.iter().flat_map(|regex| regex.captures_iter(&own)).filter_map(|found| found.get(1)) {
        for (path, alias) in leaves(tree.as_str()) {
            match path.last().map(String::as_str) {
                Some("*") => module.globs.push(path[..path.len() - 1].to_vec()),
                Some(last) => module.brought.push((alias.unwrap_or_else(|| last.to_owned()), path)),
                None => {}
            }
        }
    }
    module.code = own;
    all.modules.insert(name, module);
}

/// Where a module's file lies that its declaration in `file` places elsewhere.
fn placed(file: &str, text: Option<&&str>, module: &str) -> Option<String> {
    let mut all = PLACED.as_ref()?.captures_iter(text?);
    let path = all.find(|found| &found[2] == module)?;
    let mut folders: Vec<&str> = file.split('/').collect();
    folders.pop();
    for part in path[1].split('/') {
        match part {
            ".." => drop(folders.pop()),
            part => folders.push(part),
        }
    }
    Some(folders.join("/"))
}

/// `a::{b, c as d, self}` taken apart: paths, each with the name that it gets.
fn leaves(tree: &str) -> Vec<(Name, Option<String>)> {
    let tree = tree.trim();
    let Some((before, group)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
        let path: Name =
            path.trim().trim_start_matches("::").split("::").map(|part| part.trim().to_owned()).collect();
        return vec![(path, alias.map(|alias| alias.trim().to_owned()))];
    };
    let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
    let before: Name =
        before.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    let (mut depth, mut start, mut parts) = (0usize, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts
        .flat_map(leaves)
        .map(|(path, alias)| {
            let rest = if path == ["self"] { Vec::new() } else { path };
            (before.iter().cloned().chain(rest).collect(), alias)
        })
        .collect()
}

impl Crate {
    /// The file that defines what a path names in a module; none for what is of another crate, or local.
    fn file_of(&self, within: &Name, path: &[String], depth: usize) -> Option<String> {
        // Two modules may hand each other's names on.
        if depth > 16 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.descend(Vec::new(), rest, depth),
            "self" => self.descend(within.clone(), rest, depth),
            "super" => self.descend(within.split_last()?.1.to_vec(), rest, depth),
            name => {
                let mut child = within.clone();
                child.push(name.to_owned());
                if self.modules.contains_key(&child) {
                    return self.descend(child, rest, depth);
                }
                let (_, brought) =
                    self.modules.get(within)?.brought.iter().find(|(known, _)| known == name)?;
                let mut whole = brought.clone();
                // What a path of another crate brings in is named like that crate.
                if whole.first() == Some(first) {
                    return None;
                }
                whole.extend(rest.iter().cloned());
                self.file_of(within, &whole, depth + 1)
            }
        }
    }

    fn descend(&self, mut at: Name, path: &[String], depth: usize) -> Option<String> {
        let Some((first, rest)) = path.split_first() else {
            return self.modules.get(&at).map(|m| m.file.clone());
        };
        if first == "super" {
            at.pop();
            return self.descend(at, rest, depth);
        }
        let mut child = at.clone();
        child.push(first.clone());
        if self.modules.contains_key(&child) {
            return self.descend(child, rest, depth);
        }
        let module = self.modules.get(&at)?;
        let defines = ITEM.iter().flat_map(|regex| regex.captures_iter(&module.code));
        if defines.filter_map(|item| item.get(1)).any(|item| item.as_str() == first) {
            return Some(module.file.clone());
        }
        if let Some((_, brought)) = module.brought.iter().find(|(known, _)| known == first) {
            return self.file_of(&at, brought, depth + 1);
        }
        let by_glob = module.globs.iter().find_map(|glob| {
            let path: Name = glob.iter().chain([first]).cloned().collect();
            self.file_of(&at, &path, depth + 1)
        });
        by_glob.or_else(|| Some(module.file.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let files: Vec<File> =
            files.iter().map(|(path, text)| File { path: (*path).into(), text: (*text).into() }).collect();
        let mut graph = Graph::new();
        imports("a/src/lib.rs", &files, &mut graph);
        graph
    }

    fn of<'g>(graph: &'g Graph, file: &str) -> Vec<&'g str> {
        graph[&format!("a/src/{file}")].iter().filter_map(|path| path.strip_prefix("a/src/")).collect()
    }

    #[test]
    fn a_path_leads_to_the_file_that_defines_its_item() {
        let graph = graph(&[
            ("a/src/lib.rs", "mod high;\nmod low;\npub use low::Thing;\n"),
            ("a/src/low/mod.rs", "mod part;\npub use part::{Part as Piece, other};\npub struct Thing;\n"),
            ("a/src/low/part.rs", "pub struct Part; pub fn other() {}\n"),
            ("a/src/high.rs", "use crate::low::Piece;\nuse crate::{low, Thing};\nfn f() { low::other(); std::mem::drop(1) }\n"),
        ]);
        assert_eq!(of(&graph, "lib.rs"), ["low/mod.rs"]);
        assert_eq!(of(&graph, "low/mod.rs"), ["low/part.rs"]);
        assert_eq!(of(&graph, "high.rs"), ["low/mod.rs", "low/part.rs"]);
        assert_eq!(of(&graph, "low/part.rs"), Vec::<&str>::new());
    }

    #[test]
    fn a_declaration_alone_imports_nothing_and_super_is_the_parent() {
        let graph = graph(&[
            ("a/src/lib.rs", "mod x;\n"),
            (
                "a/src/x.rs",
                "mod y;\nstruct Base;\nmod inner { use super::Base; use super::super::x::y::F; }\n",
            ),
            ("a/src/x/y.rs", "use super::Base;\n#[cfg(test)]\nmod tests { use crate::x::Base; }\n"),
        ]);
        assert_eq!(of(&graph, "lib.rs"), Vec::<&str>::new());
        assert_eq!(of(&graph, "x.rs"), ["x/y.rs"], "what an inline module names counts for its file");
        assert_eq!(of(&graph, "x/y.rs"), ["x.rs"]);
    }

    #[test]
    fn a_module_may_lie_elsewhere() {
        let graph = graph(&[
            ("a/src/lib.rs", "mod x;\nmod y;\n"),
            ("a/src/x/mod.rs", "#[path = \"../../else/p-q/r.rs\"]\nmod p_q;\nfn f() { p_q::g() }\n"),
            ("a/src/y.rs", "pub fn h() {}\n"),
            ("a/else/p-q/r.rs", "use crate::y::h;\npub fn g() {}\n"),
        ]);
        assert!(graph["a/src/x/mod.rs"].contains("a/else/p-q/r.rs"));
        assert!(graph["a/else/p-q/r.rs"].contains("a/src/y.rs"));
    }

    #[test]
    fn names_that_lead_in_circles_end() {
        let graph = graph(&[
            ("a/src/lib.rs", "mod x;\nmod y;\n"),
            ("a/src/x.rs", "pub use super::y::Z;\n"),
            ("a/src/y.rs", "pub use super::x::Z;\n"),
        ]);
        assert_eq!(of(&graph, "x.rs"), Vec::<&str>::new());
    }
}
