//! Versions that are known to go wrong, and what they do. Sources stand with the causes in the catalogue.

/// From the first version (included) to the second (not included); an open end has no second.
struct Bad {
    fact: &'static str,
    from: &'static [u32],
    before: &'static [u32],
    what: &'static str,
}

const KNOWN: &[Bad] = &[
    Bad {
        fact: "python.version",
        from: &[3, 14, 0],
        before: &[3, 14, 5],
        what: "the incremental collector of CPython 3.14.0 to 3.14.4 lets garbage pile up",
    },
    Bad {
        fact: "package.h5py",
        from: &[3, 4, 0],
        before: &[3, 4, 1],
        what: "h5py 3.4.0 leaks with each read",
    },
    Bad {
        fact: "package.pyarrow",
        from: &[18],
        before: &[19],
        what: "pyarrow 18 leaks where tables are converted",
    },
    Bad {
        fact: "package.pyarrow",
        from: &[21, 0, 0],
        before: &[21, 0, 1],
        what: "pyarrow 21.0.0 leaks where tables are read",
    },
    Bad {
        fact: "kernel.release",
        from: &[6, 11, 0],
        before: &[6, 11, 7],
        what: "kernels 6.11.0 to 6.11.6 leak pinned host memory of NVIDIA's driver",
    },
    Bad {
        fact: "kernel.release",
        from: &[3, 10],
        before: &[3, 11],
        what: "the kernel of CentOS 7 leaks kernel memory of cgroups",
    },
    Bad {
        fact: "torch.cuda",
        from: &[11],
        before: &[12, 2],
        what: "CUDA before 12.2 leaks host memory in Linear layers (cuBLASLt)",
    },
    Bad { fact: "torch.version", from: &[2, 5], before: &[2, 6], what: "torch 2.5 leaks in ModuleTracker" },
    Bad {
        fact: "torch.version",
        from: &[2, 1, 2],
        before: &[2, 1, 3],
        what: "DataLoaders of torch 2.1.2 take four times the shared memory",
    },
    Bad {
        fact: "torch.version",
        from: &[1],
        before: &[1, 10],
        what: "persistent workers of torch before 1.10 leak",
    },
    Bad {
        fact: "torch.version",
        from: &[2, 0],
        before: &[2, 3, 1],
        what: "torch.compile before torch 2.3.1 leaks",
    },
];

/// What a version is known for; none for one that nothing is known of.
pub fn known_bad(fact: &str, version: &str) -> Option<&'static str> {
    let version = numbers(version);
    let bad =
        |one: &&Bad| one.fact == fact && one.from <= version.as_slice() && version.as_slice() < one.before;
    KNOWN.iter().find(bad).map(|one| one.what)
}

/// `2.13.0+cu130` as 2, 13, 0; `6.11.4-generic` as 6, 11, 4.
fn numbers(version: &str) -> Vec<u32> {
    let plain = version.split(['+', '-', ' ']).next().unwrap_or_default();
    plain.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(known_bad("python.version", "3.14.2").is_some());
        assert!(known_bad("python.version", "3.14.5").is_none());
        assert!(known_bad("kernel.release", "6.11.4-8-generic").is_some());
        assert!(known_bad("kernel.release", "6.18.44-fc").is_none());
        assert!(known_bad("torch.version", "2.13.0+cu130").is_none(), "13 is more than 5");
        assert!(known_bad("torch.cuda", "11.8").is_some() && known_bad("torch.cuda", "none").is_none());
    }
}
