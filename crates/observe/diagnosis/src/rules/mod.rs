//! One rule a file, named by its cause; the head of the file is the page that `ullage explain CAUSE` prints.

use crate::rule::Rule;

mod checkpoint_load_copies;
mod checkpoint_save_staging;
mod disk_full_tmp;
mod fd_leak_files_sockets;
mod file_system_strategy_shm_manager;
mod fork_parent_rewrites;
mod forkserver_too_many_fds;
mod host_oom_kill;
mod inductor_compile_workers;
mod invisible_child_oom;
mod itertools_cycle_caches;
mod joblib_loky_memmap;
mod leaked_semaphore_warning;
mod max_map_count_exhausted;
mod memcg_oom_kill;
mod model_copies_on_cpu;
mod nccl_shm_segments;
mod nofile_exhausted_shared_tensors;
mod nproc_rlimit;
mod onednn_primitive_cache_shapes;
mod orphan_workers;
mod per_rank_copies;
mod persistent_workers_growth;
mod pids_limit_cgroup;
mod prefetch_times_workers;
mod preload_allocator_mismatch;
mod python_314_incremental_gc;
mod queue_backlog_unbounded;
mod ray_object_store;
mod refcount_cow_fork_workers;
mod rlimit_as_virtual_memory;
mod sampler_index_lists;
mod shm_full_bytes;
mod spawn_forkserver_full_copy;
mod strict_overcommit;
mod subprocess_in_workers;
mod threads_per_task;
mod tmpfs_inodes;
mod uva_vsz_illusion;
mod worker_import_overhead;
mod worker_processes_accumulate;
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
    fork_parent_rewrites::RULE,
    queue_backlog_unbounded::RULE,
    threads_per_task::RULE,
    leaked_semaphore_warning::RULE,
    python_314_incremental_gc::RULE,
    prefetch_times_workers::RULE,
    persistent_workers_growth::RULE,
    worker_processes_accumulate::RULE,
    itertools_cycle_caches::RULE,
    file_system_strategy_shm_manager::RULE,
    sampler_index_lists::RULE,
    subprocess_in_workers::RULE,
    onednn_primitive_cache_shapes::RULE,
    inductor_compile_workers::RULE,
    checkpoint_load_copies::RULE,
    checkpoint_save_staging::RULE,
    model_copies_on_cpu::RULE,
    uva_vsz_illusion::RULE,
    preload_allocator_mismatch::RULE,
    per_rank_copies::RULE,
    nccl_shm_segments::RULE,
    ray_object_store::RULE,
    joblib_loky_memmap::RULE,
];
