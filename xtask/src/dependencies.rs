//! Does each crate depend only on what the table allows? Asked of `cargo metadata`, so that renamed and
//! target-specific dependencies are seen too. Dev-dependencies are free: they do not ship.

use crate::rules::Rules;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// One crate of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    /// Folder below the root: `crates/observe/model`.
    pub(crate) folder: String,
    /// Names of what it ships with.
    pub(crate) dependencies: Vec<String>,
    /// Roots of its library and programs, below the root of the repository.
    pub(crate) roots: Vec<String>,
}

pub(crate) fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    parse(&metadata, root)
}

fn parse(metadata: &Value, root: &Path) -> Result<Vec<Package>, String> {
    let below = |value: &Value| -> Option<String> {
        Some(Path::new(value.as_str()?).strip_prefix(root).ok()?.to_string_lossy().into_owned())
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let manifest = below(&package["manifest_path"]).ok_or("a crate outside of the repository")?;
            let ships = |kind: &Value| kind.as_str() != Some("dev");
            let program = |target: &Value| {
                list(&target["kind"])
                    .iter()
                    .any(|k| ["lib", "bin", "cdylib"].contains(&k.as_str().unwrap_or("")))
            };
            Ok(Package {
                folder: manifest.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned(),
                dependencies: list(&package["dependencies"])
                    .iter()
                    .filter(|dependency| ships(&dependency["kind"]))
                    .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
                    .collect(),
                roots: list(&package["targets"])
                    .iter()
                    .filter(|target| program(target))
                    .filter_map(|target| below(&target["src_path"]))
                    .collect(),
            })
        })
        .collect()
}

/// Dependencies that are not allowed, crates that are not in the table, rows that have no crate.
pub(crate) fn check(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in packages {
        let folder = &package.folder;
        let Some(allowed) = rules.allowed.get(folder) else {
            problems.push(format!("{folder} is not in the table of ARCHITECTURE.md"));
            continue;
        };
        for name in package.dependencies.iter().filter(|name| !allowed.contains(name)) {
            problems.push(format!("{folder} may not depend on {name}: ARCHITECTURE.md does not allow it"));
        }
    }
    for folder in rules.allowed.keys().filter(|folder| !packages.iter().any(|p| p.folder == **folder)) {
        problems.push(format!("ARCHITECTURE.md allows dependencies of {folder}, which is no crate"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata() -> Value {
        json!({"packages": [
            {"manifest_path": "/r/crates/a/Cargo.toml",
             "dependencies": [{"name": "serde", "kind": null}, {"name": "insta", "kind": "dev"}],
             "targets": [{"kind": ["lib"], "src_path": "/r/crates/a/src/lib.rs"},
                         {"kind": ["test"], "src_path": "/r/crates/a/tests/t.rs"}]},
            {"manifest_path": "/r/crates/b/Cargo.toml",
             "dependencies": [{"name": "ullage-a", "kind": null}], "targets": []},
        ]})
    }

    fn problems(metadata: &Value) -> Vec<String> {
        let rules = Rules::parse(crate::rules::tests::TEXT).expect("rules");
        check(&rules, &parse(metadata, Path::new("/r")).expect("packages"))
    }

    #[test]
    fn what_the_table_allows_passes() {
        assert_eq!(problems(&metadata()), Vec::<String>::new());
        let packages = parse(&metadata(), Path::new("/r")).expect("packages");
        assert_eq!(packages[0].roots, ["crates/a/src/lib.rs"]);
    }

    #[test]
    fn each_breach_is_named() {
        let mut wrong = metadata();
        wrong["packages"][0]["dependencies"][0]["name"] = json!("rustix");
        assert!(problems(&wrong)[0].contains("crates/a may not depend on rustix"));
        let mut build = metadata();
        build["packages"][0]["dependencies"][1]["kind"] = json!("build");
        assert!(problems(&build)[0].contains("may not depend on insta"));
        let mut unknown = metadata();
        unknown["packages"][1]["manifest_path"] = json!("/r/crates/c/Cargo.toml");
        let found = problems(&unknown);
        assert!(found[0].contains("crates/c is not in the table"));
        assert!(found[1].contains("crates/b, which is no crate"));
    }
}
