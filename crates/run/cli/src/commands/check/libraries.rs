//! Which Python, torch and allocator would a job get, and is one of the versions known to leak? From the Python that
//! is asked, which imports nothing of torch: its first answer has the versions of all that is installed.

use super::checked::Check;
use std::path::Path;
use ullage_comparison::known_bad;
use ullage_model::{Fact, Facts};

/// `kernel` is its release.
pub(super) fn checks(python: &Path, mut facts: Facts, kernel: &str) -> Vec<Check> {
    facts.insert("kernel.release".into(), kernel.into());
    let name = python.display();
    let version = match facts.get("python.version") {
        Some(Fact::Text(version)) => version,
        Some(Fact::Missing { missing }) => {
            return vec![Check::unknown("python", format!("{name}: {missing}"))];
        }
        _ => return vec![Check::unknown("python", format!("{name}: it did not report its version"))],
    };
    let method = text(&facts, "python.start_method").map(|method| format!(", starts processes by {method}"));
    let mut checks = vec![Check::fine("python", format!("{version} ({name}){}", method.unwrap_or_default()))];
    checks.push(match text(&facts, "torch.version") {
        Some(version) => Check::fine("torch", format!("{version} in {name}")),
        None => Check::unknown(
            "torch",
            format!("{name} has none; name the Python of the job: ullage check --python PATH"),
        ),
    });
    checks.push(allocator(&facts));
    checks.extend(facts.iter().filter_map(|(fact, value)| known(fact, value)));
    checks
}

fn text<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.get(name).and_then(Fact::text)
}

fn allocator(facts: &Facts) -> Check {
    const NAME: &str = "allocator";
    let used = text(facts, "loaded.allocator").unwrap_or("not known");
    let Some(preloaded) = text(facts, "loaded.preload") else {
        return Check::fine(NAME, used.into());
    };
    let check = Check::fine(NAME, format!("{used}; LD_PRELOAD: {preloaded}"));
    if !preloaded.contains("(not found)") {
        return check;
    }
    check.careful(
        "The loader skips a library that it cannot find, so the job runs without that allocator.",
        "unset LD_PRELOAD",
    )
}

fn known(fact: &str, value: &Fact) -> Option<Check> {
    let version = value.text()?;
    let what = known_bad(fact, version)?;
    let name = fact.strip_prefix("package.").or_else(|| fact.strip_suffix(".version")).unwrap_or(fact);
    let fix = match fact.split_once('.') {
        Some(("package", package)) => format!("pip install -U {package}"),
        Some(("torch", _)) => "pip install -U torch".into(),
        _ => String::new(),
    };
    Some(Check::fine(name, version.into()).careful(format!("Known: {what}."), fix))
}
