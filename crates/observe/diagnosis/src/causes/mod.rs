//! One rule a file, named by its cause; the head of the file is the page that `ullage explain CAUSE` prints.

use crate::rule::Rule;

pub use unnamed_growth::explains_growth;
pub(crate) use unnamed_growth::yield_to_others;

/// Every rule, in the order of the catalogue.
pub fn rules() -> &'static [Rule] {
    ALL
}

/// The rule of a cause.
pub fn rule(id: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.id == id)
}

// Written by `cargo run -p xtask -- generate` from here on.

mod accumulate_metrics_outputs;
mod accumulate_tensors_with_graph;
mod arrow_memory_pool_retention;
mod autograd_function_ctx_leak;
mod cgroup_leftover_charge;
mod cgroup_sizing_by_host_view;
mod checkpoint_load_copies;
mod checkpoint_save_staging;
mod clone3_seccomp_eperm;
mod disk_full_tmp;
mod dual_openmp_runtime;
mod exception_traceback_holds_frames;
mod fd_leak_files_sockets;
mod file_system_strategy_shm_manager;
mod fork_enomem_large_parent;
mod fork_parent_rewrites;
mod forkserver_too_many_fds;
mod gc_disabled_or_deferred;
mod glibc_arenas_per_core;
mod glibc_dynamic_mmap_threshold;
mod gloo_and_process_group_growth;
mod hooks_and_closures_leak;
mod host_oom_kill;
mod hugetlb_reserved;
mod inductor_compile_workers;
mod invisible_child_oom;
mod itertools_cycle_caches;
mod jemalloc_retention;
mod joblib_loky_memmap;
mod kmem_slab_growth;
mod kmem_v1_bug_old_kernel;
mod large_preallocation_lazy_touch;
mod leaked_semaphore_warning;
mod machine_neighbour_load;
mod max_map_count_exhausted;
mod memcg_oom_kill;
mod memlock_rdma_registration;
mod memory_high_throttle;
mod mkl_openmp_isa_leak;
mod mmap_dataset_rss_illusion;
mod model_copies_on_cpu;
mod nccl_shm_segments;
mod nofile_exhausted_shared_tensors;
mod nproc_rlimit;
mod numa_membind_oom;
mod object_collectives_pickle;
mod onednn_primitive_cache_shapes;
mod orphan_workers;
mod out_of_order_reorder_buffer;
mod page_cache_charged;
mod per_rank_copies;
mod persistent_workers_growth;
mod pids_limit_cgroup;
mod pil_image_decode;
mod prefetch_times_workers;
mod preload_allocator_mismatch;
mod pymalloc_fragmentation;
mod python_314_incremental_gc;
mod queue_backlog_unbounded;
mod ray_object_store;
mod refcount_cow_fork_workers;
mod rlimit_as_virtual_memory;
mod sampler_index_lists;
mod shm_full_bytes;
mod shm_no_access;
mod shm_stale_files;
mod shmem_counts_twice_limits;
mod sigbus_file_truncated_or_netfs;
mod slurm_rss_sum_overcount;
mod spawn_forkserver_full_copy;
mod stack_ulimit_thread_stacks;
mod streaming_shuffle_buffer;
mod strict_overcommit;
mod subprocess_in_workers;
mod swap_thrash;
mod sysv_shm_msg_limits;
mod tcmalloc_mimalloc_retention;
mod thp_always_rss_bloat;
mod threads_per_task;
mod tmpfs_inodes;
mod torch_compile_recompiles;
mod torch_known_bad_versions;
mod unaccounted_kernel_memory;
mod unbounded_caches;
mod unnamed_growth;
mod userspace_oom_daemon;
mod uva_vsz_illusion;
mod view_retains_base;
mod worker_import_overhead;
mod worker_processes_accumulate;
mod wsl2_vm_limits;
mod zombie_children;

const ALL: &[Rule] = &[
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
    accumulate_tensors_with_graph::RULE,
    accumulate_metrics_outputs::RULE,
    unbounded_caches::RULE,
    view_retains_base::RULE,
    exception_traceback_holds_frames::RULE,
    hooks_and_closures_leak::RULE,
    gc_disabled_or_deferred::RULE,
    unnamed_growth::RULE,
    orphan_workers::RULE,
    zombie_children::RULE,
    fork_parent_rewrites::RULE,
    queue_backlog_unbounded::RULE,
    threads_per_task::RULE,
    leaked_semaphore_warning::RULE,
    python_314_incremental_gc::RULE,
    prefetch_times_workers::RULE,
    out_of_order_reorder_buffer::RULE,
    streaming_shuffle_buffer::RULE,
    persistent_workers_growth::RULE,
    worker_processes_accumulate::RULE,
    itertools_cycle_caches::RULE,
    file_system_strategy_shm_manager::RULE,
    sampler_index_lists::RULE,
    subprocess_in_workers::RULE,
    onednn_primitive_cache_shapes::RULE,
    torch_compile_recompiles::RULE,
    autograd_function_ctx_leak::RULE,
    torch_known_bad_versions::RULE,
    inductor_compile_workers::RULE,
    checkpoint_load_copies::RULE,
    checkpoint_save_staging::RULE,
    model_copies_on_cpu::RULE,
    glibc_arenas_per_core::RULE,
    glibc_dynamic_mmap_threshold::RULE,
    jemalloc_retention::RULE,
    tcmalloc_mimalloc_retention::RULE,
    pymalloc_fragmentation::RULE,
    mkl_openmp_isa_leak::RULE,
    dual_openmp_runtime::RULE,
    large_preallocation_lazy_touch::RULE,
    mmap_dataset_rss_illusion::RULE,
    arrow_memory_pool_retention::RULE,
    pil_image_decode::RULE,
    uva_vsz_illusion::RULE,
    preload_allocator_mismatch::RULE,
    per_rank_copies::RULE,
    object_collectives_pickle::RULE,
    gloo_and_process_group_growth::RULE,
    nccl_shm_segments::RULE,
    ray_object_store::RULE,
    joblib_loky_memmap::RULE,
    stack_ulimit_thread_stacks::RULE,
    clone3_seccomp_eperm::RULE,
    fork_enomem_large_parent::RULE,
    memlock_rdma_registration::RULE,
    machine_neighbour_load::RULE,
    swap_thrash::RULE,
    thp_always_rss_bloat::RULE,
    sigbus_file_truncated_or_netfs::RULE,
    shm_stale_files::RULE,
    shm_no_access::RULE,
    sysv_shm_msg_limits::RULE,
    hugetlb_reserved::RULE,
    numa_membind_oom::RULE,
    shmem_counts_twice_limits::RULE,
    page_cache_charged::RULE,
    cgroup_leftover_charge::RULE,
    kmem_slab_growth::RULE,
    memory_high_throttle::RULE,
    cgroup_sizing_by_host_view::RULE,
    userspace_oom_daemon::RULE,
    slurm_rss_sum_overcount::RULE,
    kmem_v1_bug_old_kernel::RULE,
    wsl2_vm_limits::RULE,
    unaccounted_kernel_memory::RULE,
];
