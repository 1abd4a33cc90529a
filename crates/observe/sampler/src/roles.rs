//! What a process is in the job, from outside: command line, comm, parent and siblings; exactly, where the
//! agent says so.
//!
//! ```text
//! python -c from multiprocessing.forkserver import main; main(3, 4, …)      the fork server, and each of its children
//! python -c import sys; sys.path[:] = […]; from ullage._zygote.main import main; main(…)      likewise
//! python -c from multiprocessing.resource_tracker import main;main(5)
//! python -c from multiprocessing.spawn import spawn_main; spawn_main(…) --multiprocessing-fork
//! ```
//! A rank is told by its environment, whoever started it: RANK of torchrun and its kin, what an MPI sets, Slurm's.
//! The surprise: every child of a fork server hangs below it, the trainer's loader workers too; only comm
//! (`pt_data_worker`, torch 2.5 and later), the order of birth, or the agent tell them apart. Of the zygotes' root so do
//! the zygotes, which have a comm of their own, and their workers.

use std::collections::HashMap;
use ullage_model::{AgentMessage, Role};

/// comm of a zygote (`_COMM` in python/ullage/_zygote/main.py).
const ZYGOTE: &str = "ullage-zygote";

/// Variables by which launchers number the processes that they start: torchrun and all that speak as it does, Open MPI,
/// MPICH and Intel MPI, PMIx, MVAPICH, Slurm.
pub(crate) const RANKS: [&str; 6] =
    ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"];

/// Programs that start the job's Python and wait for it, by the names that they are called by.
const LAUNCHERS: [&str; 12] = [
    "torchrun",
    "accelerate",
    "deepspeed",
    "horovodrun",
    "papermill",
    "jupyter",
    "jupyter-nbconvert",
    "jupyter-execute",
    "poetry",
    "pdm",
    "hatch",
    "pipenv",
];

/// Such a number: of which variable, and which.
pub(crate) type Numbered = (usize, u32);

/// Which program a command line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// CPython's fork server, or a child that it forked.
    Forkserver,
    /// The root of ullage's zygotes, or what was forked from it.
    Zygote,
    /// Resource or semaphore tracker.
    ResourceTracker,
    /// A child started by spawn.
    SpawnChild,
    /// torch_shm_manager.
    ShmManager,
    /// torchrun and its kin, and what starts a Python in an environment or for a notebook.
    Launcher,
    /// A worker of joblib's executor.
    LokyWorker,
    /// Another Python program.
    Python,
    /// A shell.
    Shell,
    /// Anything else.
    Command,
}

/// Tells the program by its arguments; `comm` helps where they are empty.
pub fn program(arguments: &[String], comm: &str) -> Program {
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().trim_start_matches('-').to_owned();
    let name = arguments.first().map_or_else(|| comm.to_owned(), |first| base(first));
    if name == "torch_shm_manager" || comm == "torch_shm_manag" {
        return Program::ShmManager;
    }
    let has = |text: &str| arguments.iter().skip(1).take(8).any(|argument| argument.contains(text));
    if !(name.starts_with("python") || name.starts_with("pypy") || comm.starts_with("python")) {
        return match name.as_str() {
            "sh" | "bash" | "dash" | "zsh" | "ksh" | "fish" => Program::Shell,
            _ if LAUNCHERS.contains(&name.as_str()) => Program::Launcher,
            _ => Program::Command,
        };
    }
    if has("from multiprocessing.forkserver import main") {
        Program::Forkserver
    } else if has("from ullage._zygote.main import main") {
        Program::Zygote
    } else if has("multiprocessing.resource_tracker") || has("multiprocessing.semaphore_tracker") {
        Program::ResourceTracker
    } else if has("from multiprocessing.spawn import spawn_main") || has("--multiprocessing-fork") {
        Program::SpawnChild
    } else if has("loky.backend.popen_loky") {
        Program::LokyWorker
    } else if launches(arguments) {
        Program::Launcher
    } else {
        Program::Python
    }
}

/// The script or module that a Python runs is a launcher.
fn launches(arguments: &[String]) -> bool {
    const MODULES: [&str; 5] = [
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate.commands.",
        "deepspeed.launcher.",
        "nbconvert",
    ];
    let mut words = arguments.iter().skip(1).skip_while(|word| word.starts_with('-') && *word != "-m");
    let Some(program) = words.next() else { return false };
    if program == "-m" {
        let module = words.next().map_or("", String::as_str);
        return MODULES.iter().any(|known| module.starts_with(known)) || LAUNCHERS.contains(&module);
    }
    LAUNCHERS.contains(&program.rsplit('/').next().unwrap_or_default())
}

impl Program {
    /// It may be a mere way to start the job's own program.
    pub(crate) fn wraps(self) -> bool {
        matches!(self, Program::Shell | Program::Command | Program::Launcher)
    }
}

/// What is known of a process when its role is decided from outside.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// It is COMMAND's own process.
    pub main: bool,
    /// comm.
    pub comm: &'a str,
    /// Its program.
    pub program: Program,
    /// It runs the very program image of its parent: forked, not executed.
    pub forked: bool,
    /// Program of its parent, where that is of the job.
    pub parent: Option<Program>,
    /// Role of its parent.
    pub parent_role: Option<&'a Role>,
    /// It is a rank of this number: its launcher numbered it, and none of its ancestors.
    pub rank: Option<u32>,
    /// Between COMMAND and it, both included but for itself, are only programs that start others.
    pub wrapped: bool,
    /// Another multiprocessing child of the same parent lives that is older by more than half a second.
    pub elder: bool,
    /// One lives that is of nearly the same age.
    pub twin: bool,
}

/// Start times of the processes that one parent made of one program, in clock ticks: who is older than whom.
#[derive(Debug, Default)]
pub struct Generations(HashMap<(i32, bool, Program), Vec<u64>>);

impl Generations {
    /// Nearly of the same age, in clock ticks: half a second.
    const TOGETHER: u64 = 50;

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes one in: born to this parent, forked from it or not.
    pub fn add(&mut self, born_to: i32, forked: bool, program: Program, start: u64) {
        let starts = self.0.entry((born_to, forked, program)).or_default();
        let at = starts.partition_point(|&other| other < start);
        starts.insert(at, start);
    }

    /// Whether one that is in has an older sibling, and one of nearly its age.
    pub fn elder_and_twin(&self, born_to: i32, forked: bool, program: Program, start: u64) -> (bool, bool) {
        let Some(starts) = self.0.get(&(born_to, forked, program)) else { return (false, false) };
        let together = start.saturating_sub(Self::TOGETHER)..=start.saturating_add(Self::TOGETHER);
        let elder = starts.first().is_some_and(|first| first < together.start());
        let at = starts.partition_point(|other| other < together.start());
        // Itself is one of them.
        let twin = starts.get(at + 1).is_some_and(|other| other <= together.end());
        (elder, twin)
    }
}

/// Decides.
pub fn role(seen: &Seen<'_>) -> Role {
    if seen.main {
        return Role::Main;
    }
    if seen.comm == "pt_data_worker" {
        return Role::LoaderWorker(None);
    }
    if seen.program == Program::Zygote && seen.comm == ZYGOTE {
        return Role::Zygote;
    }
    if multiprocessing_child(seen) {
        let grandchild = matches!(
            seen.parent_role,
            Some(Role::Trainer | Role::LoaderWorker(_) | Role::PoolWorker | Role::Other | Role::Rank(_))
        );
        return if grandchild || seen.elder || seen.twin { Role::Other } else { Role::Trainer };
    }
    match seen.program {
        Program::Forkserver => Role::Forkserver,
        Program::Zygote => Role::Zygote,
        Program::ResourceTracker => Role::ResourceTracker,
        Program::ShmManager => Role::ShmManager,
        Program::Launcher => Role::Other,
        Program::LokyWorker => Role::PoolWorker,
        Program::Python | Program::SpawnChild => match (seen.rank, seen.parent) {
            (Some(rank), _) => Role::Rank(rank),
            // `timeout 60 python train.py`, a batch script, a notebook's kernel.
            _ if seen.wrapped => Role::Main,
            // A shell's Python is as likely the job itself as a tool of it.
            (_, Some(Program::Shell)) => Role::Other,
            _ => Role::Helper,
        },
        Program::Shell | Program::Command => Role::Helper,
    }
}

/// A child that multiprocessing (or fork) made of a Python of the job.
pub fn multiprocessing_child(seen: &Seen<'_>) -> bool {
    match seen.program {
        Program::SpawnChild => true,
        Program::Forkserver | Program::Zygote => seen.forked && seen.parent == Some(seen.program),
        Program::Python => seen.forked && matches!(seen.parent, Some(Program::Python)),
        _ => false,
    }
}

/// The role that a message of the agent establishes.
pub fn role_by_agent(message: &AgentMessage) -> Option<Role> {
    match message {
        AgentMessage::Process { target, worker, .. } => Some(if target.ends_with("_worker_loop") {
            Role::LoaderWorker(*worker)
        } else if target.starts_with("multiprocessing.pool")
            || target.starts_with("concurrent.futures.process")
        {
            Role::PoolWorker
        } else if target.starts_with("multiprocessing.managers") {
            // It serves what others put into it.
            Role::Other
        } else {
            Role::Trainer
        }),
        AgentMessage::Exception(report) => match report.left.as_str() {
            "loader-worker" => Some(Role::LoaderWorker(None)),
            "executor-worker" => Some(Role::PoolWorker),
            "process" => Some(Role::Trainer),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Program {
        program(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), "")
    }

    const CHILD: Seen<'static> = Seen {
        main: false,
        comm: "python3",
        program: Program::Python,
        forked: true,
        parent: Some(Program::Python),
        parent_role: Some(&Role::Main),
        rank: None,
        wrapped: false,
        elder: false,
        twin: false,
    };

    #[test]
    fn programs_are_recognised_by_their_arguments() {
        let fork = ["/usr/bin/python3", "-c", "from multiprocessing.forkserver import main; main(3, 4, [])"];
        assert_eq!(program(&fork.map(String::from), "python3"), Program::Forkserver);
        let zygote =
            "import sys; sys.path[:] = ['/a']; from ullage._zygote.main import main; main(3, 4, 5, 6, [])";
        assert_eq!(program(&["python3", "-c", zygote].map(String::from), "python3"), Program::Zygote);
        let spawn = [
            "python",
            "-c",
            "from multiprocessing.spawn import spawn_main; spawn_main()",
            "--multiprocessing-fork",
        ];
        assert_eq!(program(&spawn.map(String::from), "python"), Program::SpawnChild);
        let tracker = ["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"];
        assert_eq!(program(&tracker.map(String::from), "python"), Program::ResourceTracker);
        assert_eq!(of("/opt/v/bin/torch_shm_manager"), Program::ShmManager);
        assert_eq!(of("/usr/bin/python /opt/v/bin/torchrun --nproc 2 t.py"), Program::Launcher);
        assert_eq!(of("python -m torch.distributed.run t.py"), Program::Launcher);
        assert_eq!(of("/v/bin/python -u /v/bin/accelerate launch t.py"), Program::Launcher);
        assert_eq!(of("python -u -m deepspeed.launcher.launch t.py"), Program::Launcher);
        assert_eq!(of("python train.py accelerate"), Program::Python, "an argument of the job's own");
        assert_eq!(
            of("python -m joblib.externals.loky.backend.popen_loky_posix --pipe 9"),
            Program::LokyWorker
        );
        assert_eq!(of("-bash"), Program::Shell);
        assert_eq!(of("git status"), Program::Command);
        assert_eq!(program(&[], "python3"), Program::Python);
    }

    #[test]
    fn a_single_child_of_multiprocessing_trains() {
        assert_eq!(role(&CHILD), Role::Trainer);
        assert_eq!(role(&Seen { program: Program::SpawnChild, forked: false, ..CHILD }), Role::Trainer);
        let served = Seen { program: Program::Forkserver, parent: Some(Program::Forkserver), ..CHILD };
        assert_eq!(role(&Seen { parent_role: Some(&Role::Forkserver), ..served }), Role::Trainer);
        assert_eq!(role(&Seen { program: Program::Forkserver, forked: false, ..CHILD }), Role::Forkserver);
        assert_eq!(role(&Seen { program: Program::Zygote, forked: false, ..CHILD }), Role::Zygote);
        let worker = Seen { program: Program::Zygote, parent: Some(Program::Zygote), twin: true, ..CHILD };
        assert_eq!(role(&worker), Role::Other, "its worker, or a trainer of the user's");
        assert_eq!(role(&Seen { comm: "ullage-zygote", ..worker }), Role::Zygote, "forked from the root");
        assert_eq!(
            role(&Seen { comm: "ullage-zygote", ..CHILD }),
            Role::Trainer,
            "a name proves nothing alone"
        );
    }

    #[test]
    fn workers_are_recognised_by_comm_and_never_guessed() {
        assert_eq!(role(&Seen { comm: "pt_data_worker", ..CHILD }), Role::LoaderWorker(None));
        assert_eq!(role(&Seen { twin: true, ..CHILD }), Role::Other, "several at once: workers or trainers");
        assert_eq!(role(&Seen { elder: true, ..CHILD }), Role::Other);
        assert_eq!(role(&Seen { parent_role: Some(&Role::Trainer), ..CHILD }), Role::Other);
    }

    #[test]
    fn siblings_are_older_or_of_one_age_and_others_are_no_siblings() {
        let mut all = Generations::default();
        let forked = |all: &Generations, start| all.elder_and_twin(10, true, Program::Python, start);
        all.add(10, true, Program::Python, 500);
        assert_eq!(forked(&all, 500), (false, false), "an only child");
        all.add(10, false, Program::Python, 500);
        all.add(11, true, Program::Python, 500);
        all.add(10, true, Program::Shell, 500);
        assert_eq!(forked(&all, 500), (false, false));
        all.add(10, true, Program::Python, 560);
        assert_eq!((forked(&all, 500), forked(&all, 560)), ((false, false), (true, false)));
        all.add(10, true, Program::Python, 510);
        assert_eq!(forked(&all, 500), (false, true));
        assert_eq!(forked(&all, 510), (false, true));
        assert_eq!(forked(&all, 560), (true, true), "510 is 50 ticks before");
        all.clear();
        assert_eq!(forked(&all, 500), (false, false));
    }

    #[test]
    fn a_rank_is_one_whoever_started_it() {
        let rank = Seen { forked: false, parent: Some(Program::Launcher), rank: Some(3), ..CHILD };
        for parent in [Program::Launcher, Program::Python, Program::Shell, Program::Command] {
            assert_eq!(role(&Seen { parent: Some(parent), ..rank }), Role::Rank(3));
        }
        assert_eq!(role(&Seen { parent: Some(Program::Python), rank: None, ..rank }), Role::Helper);
    }

    #[test]
    fn a_python_below_programs_that_start_others_is_the_jobs_own() {
        let program = Seen { forked: false, parent: Some(Program::Command), wrapped: true, ..CHILD };
        assert_eq!(role(&program), Role::Main);
        assert_eq!(role(&Seen { parent: Some(Program::Launcher), ..program }), Role::Main, "a kernel");
        assert_eq!(role(&Seen { program: Program::Command, ..program }), Role::Helper, "timeout's own child");
        let worker = Seen { parent_role: Some(&Role::Main), twin: true, ..CHILD };
        assert_eq!(role(&worker), Role::Other, "a child of it as of any main");
    }

    #[test]
    fn the_agent_decides_exactly() {
        let says = |target: &str, worker| {
            role_by_agent(&AgentMessage::Process {
                name: "Process-1".into(),
                target: target.into(),
                worker,
                start_method: None,
                anonymous: None,
                dataset: None,
                arguments: None,
            })
        };
        assert_eq!(
            says("torch.utils.data._utils.worker._worker_loop", Some(2)),
            Some(Role::LoaderWorker(Some(2)))
        );
        assert_eq!(says("multiprocessing.pool.worker", None), Some(Role::PoolWorker));
        assert_eq!(says("concurrent.futures.process._process_worker", None), Some(Role::PoolWorker));
        assert_eq!(says("__main__.train", None), Some(Role::Trainer));
        assert_eq!(says("multiprocessing.managers.BaseManager._run_server", None), Some(Role::Other));
    }
}
