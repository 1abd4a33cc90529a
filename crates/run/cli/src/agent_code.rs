//! Which byte code of the agent is there already? That of the package that is installed beside this command, so that not
//! even the first Python of a job compiles it (20 ms of its CPU time; of what a census needs 100 ms, and a megabyte of memory
//! in each worker that compiles it at the same time).
//!
//! Taken only where the installed source is the one that this command carries, and the byte code is the source's as
//! CPython judges that (size and time, importlib's `_validate_timestamp_pyc`). Never from a place that a job writes to.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The first file: `AT_START` and `KEPT` of start.py.
const FIRST: [&str; 8] = ["start", "common", "agent", "safe_points", "hooks", "counts", "failure", "kinds"];
/// The second: `SOON` there.
const SOON: [&str; 5] = ["processes", "loaders", "facts", "memory", "tensors"];
const SITE: &str = "sitecustomize";

/// Magic number, flags, time and size of the source (PEP 552).
const HEADER: usize = 16;

/// For one version of Python.
#[derive(Debug)]
pub struct Code {
    /// The names of two files, and what `joined` made for each. sitecustomize.py asks for the magic number, start.py for
    /// that and `.soon`.
    pub files: [(String, Vec<u8>); 2],
    /// Every other part, and sitecustomize.py.
    pub cached: Vec<Cached>,
}

/// A file of `__pycache__`.
#[derive(Debug)]
pub struct Cached {
    /// What its source is called in the agent's folder.
    pub source: String,
    /// What it is called itself.
    pub name: String,
    /// The header is for its source in the package.
    pub content: Vec<u8>,
}

/// Of each version of Python that has the package beside this command.
pub fn installed(command: &Path, sources: &[(&str, &[u8])]) -> Vec<Code> {
    let prefix = command.parent().and_then(Path::parent);
    let libraries = prefix.into_iter().flat_map(|prefix| ["lib", "lib64"].map(|name| prefix.join(name)));
    let mut found: Vec<Code> = Vec::new();
    for entry in libraries.filter_map(|library| library.read_dir().ok()).flatten().flatten() {
        let version = entry.file_name().into_string().unwrap_or_default();
        let Some(version) = version.strip_prefix("python3.") else { continue };
        for packages in ["site-packages", "dist-packages"] {
            let folder = entry.path().join(packages).join("ullage/agent");
            let code = of_package(&folder, &format!("cpython-3{version}"), sources);
            found.extend(code.filter(|code| found.iter().all(|other| other.files[0].0 != code.files[0].0)));
        }
    }
    found
}

fn of_package(folder: &Path, tag: &str, sources: &[(&str, &[u8])]) -> Option<Code> {
    let (magic, _) = byte_code(folder, SITE, tag, sources)?;
    let parts = |names: &[&str]| -> Option<Vec<u8>> {
        let mut codes = Vec::new();
        for name in names {
            let (same, code) = byte_code(folder, name, tag, sources)?;
            if same != magic {
                return None;
            }
            codes.push((*name, code));
        }
        joined(&codes)
    };
    let name: String = magic.iter().map(|byte| format!("{byte:02x}")).collect();
    let soon = (format!("{name}.soon"), parts(&SOON)?);
    let sources_of_parts = sources.iter().filter_map(|(source, _)| source.strip_suffix(".py"));
    let others = sources_of_parts.filter_map(|source| {
        let part = source.strip_prefix("ullage_").unwrap_or(source);
        if FIRST.contains(&part) || SOON.contains(&part) {
            return None;
        }
        let (_, content) = byte_code(folder, part, tag, sources).filter(|(same, _)| *same == magic)?;
        let name = format!("{source}.{tag}.pyc");
        Some(Cached { source: format!("{source}.py"), name, content })
    });
    Some(Code { files: [(name, parts(&FIRST)?), soon], cached: others.collect() })
}

/// `marshal`'s form of a dict from the parts' names to (bytes from the file's end at which its byte code begins, bytes of
/// it); behind it the byte code of each, which counts its references from its own beginning.
fn joined(codes: &[(&str, Vec<u8>)]) -> Option<Vec<u8>> {
    let number = |count: usize| i32::try_from(count).ok().map(i32::to_le_bytes);
    let code = |whole: &Vec<u8>| whole.len() - HEADER;
    let mut from_end: usize = codes.iter().map(|(_, whole)| code(whole)).sum();
    let mut file = vec![b'{'];
    for (name, whole) in codes {
        // A short text of ASCII, and a short tuple of two numbers.
        file.extend([b'z', u8::try_from(name.len()).ok()?]);
        file.extend(name.as_bytes());
        file.extend(b")\x02i");
        file.extend(number(from_end)?);
        file.push(b'i');
        file.extend(number(code(whole))?);
        from_end -= code(whole);
    }
    file.push(b'0');
    codes.iter().for_each(|(_, whole)| file.extend(&whole[HEADER..]));
    Some(file)
}

/// The magic number and the whole file of a part, where both it and its source are what they should be.
fn byte_code(folder: &Path, name: &str, tag: &str, sources: &[(&str, &[u8])]) -> Option<([u8; 4], Vec<u8>)> {
    let file = PathBuf::from(format!("{name}.py"));
    let carried = if name == SITE { format!("{name}.py") } else { format!("ullage_{name}.py") };
    let (_, carried) = sources.iter().find(|(source, _)| *source == carried)?;
    let source = folder.join(file);
    if std::fs::read(&source).ok()? != *carried {
        return None;
    }
    let code = std::fs::read(folder.join(format!("__pycache__/{name}.{tag}.pyc"))).ok()?;
    let header = header(code.get(..4)?.try_into().ok()?, &source)?;
    (code.len() > HEADER && code[..HEADER] == header).then(|| ([code[0], code[1], code[2], code[3]], code))
}

/// That of byte code of this source: the time's lower 32 bits, and the size's.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn header(magic: [u8; 4], source: &Path) -> Option<[u8; HEADER]> {
    let facts = std::fs::metadata(source).ok()?;
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&magic);
    header[8..12].copy_from_slice(&(facts.mtime() as u32).to_le_bytes());
    header[12..].copy_from_slice(&(facts.len() as u32).to_le_bytes());
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: [u8; 4] = *b"\xa7\x0d\r\n";

    /// A package of a few bytes, and what a command of it carries.
    fn package(prefix: &Path) -> (PathBuf, Vec<(&'static str, &'static [u8])>) {
        let folder = prefix.join("lib/python3.11/site-packages/ullage/agent");
        std::fs::create_dir_all(folder.join("__pycache__")).unwrap();
        let mut carried: Vec<(&str, &[u8])> = Vec::new();
        for name in FIRST.into_iter().chain(SOON).chain([SITE, "census"]) {
            let source = folder.join(format!("{name}.py"));
            std::fs::write(&source, b"pass").unwrap();
            let code = [&header(MAGIC, &source).unwrap()[..], name.as_bytes()].concat();
            std::fs::write(folder.join(format!("__pycache__/{name}.cpython-311.pyc")), code).unwrap();
            let prefix = if name == SITE { "" } else { "ullage_" };
            carried.push((format!("{prefix}{name}.py").leak(), b"pass"));
        }
        (folder, carried)
    }

    #[test]
    fn the_parts_are_those_that_start_loads() {
        let start = include_str!("../../../../python/ullage/agent/start.py");
        let listed = |variable: &str| {
            let line = start.lines().find_map(|line| line.strip_prefix(variable)).unwrap();
            let list = line.split_once(" = (").unwrap().1.split_once(')').unwrap().0;
            list.split(", ").map(|name| name.trim_matches('"').to_owned()).collect::<Vec<_>>()
        };
        assert_eq!([listed("AT_START"), listed("KEPT")].concat(), FIRST);
        assert_eq!(listed("SOON"), SOON);
    }

    #[test]
    fn byte_code_of_the_installed_package_is_taken() {
        let prefix = tempfile::tempdir().unwrap();
        let (_, carried) = package(prefix.path());
        let code = installed(&prefix.path().join("bin/ullage"), &carried);
        assert_eq!(code.len(), 1);
        assert_eq!([&code[0].files[0].0, &code[0].files[1].0], ["a70d0d0a", "a70d0d0a.soon"]);
        let cached = code[0].cached.iter().map(|cached| (&cached.source[..], &cached.name[..]));
        assert_eq!(
            cached.collect::<Vec<_>>(),
            [
                ("sitecustomize.py", "sitecustomize.cpython-311.pyc"),
                ("ullage_census.py", "ullage_census.cpython-311.pyc")
            ]
        );
        let all: usize = FIRST.iter().map(|name| name.len()).sum();
        let first =
            [b"{z\x05start)\x02i", &[u8::try_from(all).unwrap(), 0, 0, 0][..], b"i\x05\0\0\0z\x06common"]
                .concat();
        assert!(code[0].files[0].1.starts_with(&first));
        assert!(code[0].files[0].1.ends_with(FIRST.concat().as_bytes()));
        assert!(code[0].files[1].1.ends_with(SOON.concat().as_bytes()));
    }

    #[test]
    fn byte_code_of_another_source_is_not_taken() {
        let prefix = tempfile::tempdir().unwrap();
        let command = prefix.path().join("bin/ullage");
        let (folder, carried) = package(prefix.path());
        let other: Vec<(&str, &[u8])> = carried.iter().map(|(name, _)| (*name, &b"other"[..])).collect();
        assert!(installed(&command, &other).is_empty(), "the command carries another one");
        let code = folder.join("__pycache__/hooks.cpython-311.pyc");
        std::fs::write(&code, [&MAGIC[..], &[0; 12], b"hooks"].concat()).unwrap();
        assert!(installed(&command, &carried).is_empty(), "it was compiled of an older one");
        std::fs::write(&code, b"short").unwrap();
        assert!(installed(&command, &carried).is_empty());
        std::fs::remove_file(&code).unwrap();
        assert!(installed(&command, &carried).is_empty());
        assert!(installed(Path::new("ullage"), &carried).is_empty());
    }
}
