//! One rule a file, named by its cause; the head of the file is the page that `ullage explain CAUSE` prints.

use crate::rule::Rule;

mod disk_full_tmp;
mod fd_leak_files_sockets;
mod forkserver_too_many_fds;
mod host_oom_kill;
mod invisible_child_oom;
mod max_map_count_exhausted;
mod memcg_oom_kill;
mod nofile_exhausted_shared_tensors;
mod nproc_rlimit;
mod orphan_workers;
mod pids_limit_cgroup;
mod refcount_cow_fork_workers;
mod rlimit_as_virtual_memory;
mod shm_full_bytes;
mod spawn_forkserver_full_copy;
mod strict_overcommit;
mod tmpfs_inodes;
mod worker_import_overhead;
mod zombie_children;

pub(crate) const ALL: &[Rule] = &[
    max_map_count_exhausted::RULE,
    nofile_exhausted_shared_tensors::RULE,
    forkserver_too_many_fds::RULE,
    fd_leak_files_sockets::RULE,
    shm_full_bytes::RULE,
    tmpfs_inodes::RULE,
    disk_full_tmp::RULE,
    pids_limit_cgroup::RULE,
    nproc_rlimit::RULE,
    rlimit_as_virtual_memory::RULE,
    strict_overcommit::RULE,
    memcg_oom_kill::RULE,
    host_oom_kill::RULE,
    invisible_child_oom::RULE,
    refcount_cow_fork_workers::RULE,
    spawn_forkserver_full_copy::RULE,
    worker_import_overhead::RULE,
    orphan_workers::RULE,
    zombie_children::RULE,
];
