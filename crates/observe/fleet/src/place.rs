//! Which job, node, rank and attempt is a recording of, as its folder says?
//!
//! ```text
//! DIR/job=4711/node=n064/rank=3/attempt=0/
//! ```
//! `-` stands for none. Values are percent-encoded where they hold what a path or SQL would read otherwise.

/// What the names of the folders say; none where no folder says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderNames {
    /// `job=`; within, none for `-`.
    pub job: Option<Option<String>>,
    /// `node=`.
    pub node: Option<Option<String>>,
    /// `rank=`.
    pub rank: Option<Option<u32>>,
    /// `attempt=`.
    pub attempt: Option<u32>,
}

/// Reads the parts of a path, the last of a name counts.
pub fn of_path(path: &str) -> FolderNames {
    let mut names = FolderNames::default();
    for (name, value) in path.split('/').filter_map(|part| part.split_once('=')) {
        let value = decoded(value);
        let known = (value != "-").then_some(value.as_str());
        match name {
            "job" => names.job = Some(known.map(str::to_owned)),
            "node" => names.node = Some(known.map(str::to_owned)),
            "rank" => names.rank = Some(known.and_then(|text| text.parse().ok())),
            "attempt" => names.attempt = value.parse().ok(),
            _ => {}
        }
    }
    names
}

fn decoded(value: &str) -> String {
    let bytes = value.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_say_where_a_recording_belongs() {
        let names = of_path("/mnt/u/job=a%2Fb/node=n%3D1/rank=-/attempt=2");
        assert_eq!(names.job, Some(Some("a/b".into())));
        assert_eq!(names.node, Some(Some("n=1".into())));
        assert_eq!((names.rank, names.attempt), (Some(None), Some(2)));
        assert_eq!(of_path("runs/20261126-015335-train-7"), FolderNames::default());
    }

    #[test]
    fn what_is_no_code_stays() {
        assert_eq!(of_path("node=50%/x").node, Some(Some("50%".into())));
        assert_eq!(of_path("node=%zz").node, Some(Some("%zz".into())));
        assert_eq!(of_path("rank=x").rank, Some(None));
    }
}
