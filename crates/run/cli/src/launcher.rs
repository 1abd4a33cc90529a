//! Which job is this run a part of? As launchers tell by variables of the environment; where several do, the innermost one that
//! counts ranks says the rank, and the one that a person looks the job up by says the job.
//!
//! Sources: torchrun, `torch/distributed/run.py`, "Environment Variables"; Slurm, sbatch(1) and srun(1), "OUTPUT ENVIRONMENT
//! VARIABLES"; Ray, `kEnvVarKeyJobId` in `src/ray/common/constants.h`, and `NODE_RANK` of Ray Train's torch backend; Kubernetes,
//! "Indexed Job for Parallel Processing" (JOB_COMPLETION_INDEX; the pod's host name ends in it) and "Accessing the Kubernetes API
//! from a Pod" (KUBERNETES_SERVICE_HOST). Kubernetes and Ray tell no attempt.

/// What launchers tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Whose variables tell the job.
    pub launcher: Option<&'static str>,
    /// Its id.
    pub job: Option<String>,
    /// Name of the node.
    pub node: Option<String>,
    /// Number of the node in the job.
    pub node_rank: Option<u32>,
    /// Number of the process in the job; none for a launcher of several.
    pub rank: Option<u32>,
    /// How often it was started again.
    pub attempt: Option<u32>,
}

/// Longer names are no names.
const MOST: usize = 200;

/// How often torchrun had started its workers again, this process among them.
pub fn restarts_by_torchrun(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    variable("TORCHELASTIC_RESTART_COUNT")?.parse().ok()
}

/// By these variables.
pub fn place(variable: impl Fn(&str) -> Option<String>) -> Place {
    let text = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(|value| value.chars().take(MOST).collect::<String>())
    };
    let number = |name: &str| text(name).and_then(|value| value.parse::<u32>().ok());
    let in_kubernetes = text("KUBERNETES_SERVICE_HOST").is_some();
    let index = if in_kubernetes { number("JOB_COMPLETION_INDEX") } else { None };

    let slurm = || {
        let array = text("SLURM_ARRAY_JOB_ID").zip(text("SLURM_ARRAY_TASK_ID"));
        array.map(|(job, task)| format!("{job}_{task}")).or_else(|| text("SLURM_JOB_ID"))
    };
    let kubernetes = || {
        let pod = text("HOSTNAME").filter(|_| in_kubernetes)?;
        let job = index.and_then(|index| pod.strip_suffix(&format!("-{index}")).map(str::to_owned));
        Some(job.unwrap_or(pod))
    };
    // Without --rdzv-id torchrun calls each job "none".
    let torchrun = || text("TORCHELASTIC_RUN_ID").filter(|id| id != "none");
    let (launcher, job) = [
        ("slurm", slurm()),
        ("ray", text("RAY_JOB_ID")),
        ("torchrun", torchrun()),
        ("kubernetes", kubernetes()),
    ]
    .into_iter()
    .find_map(|(launcher, job)| Some((launcher, job?)))
    .map_or((None, None), |(launcher, job)| (Some(launcher), Some(job)));
    // A task of srun that is alone on its node starts ranks, and is none.
    let tasks = number("SLURM_STEP_NUM_TASKS").zip(number("SLURM_STEP_NUM_NODES"));
    let task = tasks.filter(|(tasks, nodes)| tasks > nodes).and_then(|_| number("SLURM_PROCID"));
    Place {
        launcher: launcher.or_else(|| text("TORCHELASTIC_RUN_ID").map(|_| "torchrun")),
        job,
        node: text("SLURMD_NODENAME").or_else(|| text("NODE_NAME").filter(|_| in_kubernetes)),
        node_rank: (number("GROUP_RANK").or_else(|| number("SLURM_NODEID")))
            .or_else(|| number("NODE_RANK"))
            .or(index),
        rank: number("RANK").or(task),
        attempt: restarts_by_torchrun(&variable).or_else(|| number("SLURM_RESTART_COUNT")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Place {
        place(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_of_each_launcher_are_read() {
        assert_eq!(of(&[]), Place::default());
        let torchrun = [
            ("TORCHELASTIC_RUN_ID", "exp7"),
            ("GROUP_RANK", "1"),
            ("RANK", "9"),
            ("TORCHELASTIC_RESTART_COUNT", "2"),
        ];
        let place = of(&torchrun);
        assert_eq!((place.launcher, place.job.as_deref()), (Some("torchrun"), Some("exp7")));
        assert_eq!((place.node_rank, place.rank, place.attempt), (Some(1), Some(9), Some(2)));
        let slurm = [
            ("SLURM_JOB_ID", "4712"),
            ("SLURM_ARRAY_JOB_ID", "4711"),
            ("SLURM_ARRAY_TASK_ID", "3"),
            ("SLURMD_NODENAME", "n064"),
            ("SLURM_NODEID", "5"),
            ("SLURM_PROCID", "41"),
            ("SLURM_STEP_NUM_TASKS", "64"),
            ("SLURM_STEP_NUM_NODES", "8"),
            ("SLURM_RESTART_COUNT", "1"),
        ];
        let place = of(&slurm);
        assert_eq!((place.launcher, place.job.as_deref()), (Some("slurm"), Some("4711_3")));
        assert_eq!(place.node.as_deref(), Some("n064"));
        assert_eq!((place.node_rank, place.rank, place.attempt), (Some(5), Some(41), Some(1)));
        let ray = of(&[("RAY_JOB_ID", "01000000"), ("NODE_RANK", "0"), ("RANK", "3")]);
        assert_eq!((ray.launcher, ray.job.as_deref()), (Some("ray"), Some("01000000")));
        assert_eq!((ray.node_rank, ray.rank, ray.attempt), (Some(0), Some(3), None));
        let kubernetes = [
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
            ("HOSTNAME", "train-7-4"),
            ("JOB_COMPLETION_INDEX", "4"),
            ("NODE_NAME", "gke-a"),
        ];
        let place = of(&kubernetes);
        assert_eq!((place.launcher, place.job.as_deref()), (Some("kubernetes"), Some("train-7")));
        assert_eq!((place.node.as_deref(), place.node_rank), (Some("gke-a"), Some(4)));
    }

    #[test]
    fn what_says_nothing_is_not_taken() {
        let unnamed = of(&[("TORCHELASTIC_RUN_ID", "none"), ("RANK", "x"), ("HOSTNAME", "laptop")]);
        assert_eq!((unnamed.launcher, &unnamed.job, unnamed.rank), (Some("torchrun"), &None, None));
        let one_a_node =
            [("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_STEP_NUM_NODES", "8")];
        assert_eq!(of(&one_a_node).rank, None);
        let torchrun_under_slurm = [("SLURM_JOB_ID", "1"), ("TORCHELASTIC_RUN_ID", "e")];
        assert_eq!(of(&torchrun_under_slurm).job.as_deref(), Some("1"));
    }
}
