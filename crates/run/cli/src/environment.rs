//! Which environment variables are kept, in recordings and snapshots? Those that change how memory behaves and hold
//! no secrets. The same rule stands in python/ullage/agent/facts.py, for what the job itself has.

use std::collections::BTreeMap;

const PREFIXES: &[&str] = &[
    "MALLOC_",
    "OMP_",
    "GOMP_",
    "MKL_",
    "KMP_",
    "PYTORCH_",
    "TORCH",
    "PYTHON",
    "ONEDNN_",
    "DNNL_",
    "OPENBLAS_",
    "NUMEXPR_",
    "NCCL_",
    "CUDA_",
    "TCMALLOC_",
    "MIMALLOC_",
    "JE_ARROW_",
    "ARROW_",
    "RAYON_",
    "LRU_CACHE_",
    "ULLAGE_FIX",
];
const NAMES: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "GLIBC_TUNABLES",
    "TMPDIR",
    "VECLIB_MAXIMUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_CPUS_ON_NODE",
];
const SECRET: &[&str] = &["TOKEN_", "_TOKEN", "KEY", "SECRET", "PASSW", "CREDENTIAL"];
/// Paths: they differ everywhere and change nothing.
const OWN: &[&str] = &["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHON_HISTORY"];
/// Said of a run by launchers.
const RANKS: &[&str] = &[
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_JOB_NUM_NODES",
];
/// Characters kept of a value.
const MOST: usize = 300;

/// True where a variable of this name is kept.
pub fn is_recorded(name: &str) -> bool {
    if NAMES.contains(&name) || RANKS.contains(&name) {
        return true;
    }
    !OWN.contains(&name)
        && PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !SECRET.iter().any(|word| name.contains(word))
}

/// Those of this process.
pub fn recorded() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| is_recorded(name))
        .map(|(name, value)| (name, value.chars().take(MOST).collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_recorded_and_secrets_are_not() {
        for recorded in ["MALLOC_ARENA_MAX", "LD_PRELOAD", "PYTHONMALLOC", "RANK", "TOKENIZERS_PARALLELISM"] {
            assert!(is_recorded(recorded), "{recorded}");
        }
        for left_out in
            ["HOME", "PYTHONPATH", "PYTHON_KEYRING_PASSWORD", "PYTORCH_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY"]
        {
            assert!(!is_recorded(left_out), "{left_out}");
        }
    }

    #[test]
    fn the_agent_records_the_same() {
        let list = |name: &str| {
            let (_, rest) = crate::agent_files::FACTS.split_once(&format!("\n{name} = (")).unwrap();
            let (body, _) = rest.split_once(')').unwrap();
            body.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(list("PREFIXES"), PREFIXES);
        assert_eq!(list("NAMES"), NAMES);
        assert_eq!(list("SECRET"), SECRET);
        assert_eq!(list("OWN"), OWN);
    }
}
