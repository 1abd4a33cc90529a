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

#[path = "../../causes/accumulate-metrics-outputs/rule.rs"]
mod accumulate_metrics_outputs;
#[path = "../../causes/accumulate-tensors-with-graph/rule.rs"]
mod accumulate_tensors_with_graph;
#[path = "../../causes/arrow-memory-pool-retention/rule.rs"]
mod arrow_memory_pool_retention;
#[path = "../../causes/autograd-function-ctx-leak/rule.rs"]
mod autograd_function_ctx_leak;
#[path = "../../causes/cgroup-leftover-charge/rule.rs"]
mod cgroup_leftover_charge;
#[path = "../../causes/cgroup-sizing-by-host-view/rule.rs"]
mod cgroup_sizing_by_host_view;
#[path = "../../causes/checkpoint-load-copies/rule.rs"]
mod checkpoint_load_copies;
#[path = "../../causes/checkpoint-save-staging/rule.rs"]
mod checkpoint_save_staging;
#[path = "../../causes/clone3-seccomp-eperm/rule.rs"]
mod clone3_seccomp_eperm;
#[path = "../../causes/disk-full-tmp/rule.rs"]
mod disk_full_tmp;
#[path = "../../causes/dual-openmp-runtime/rule.rs"]
mod dual_openmp_runtime;
#[path = "../../causes/exception-traceback-holds-frames/rule.rs"]
mod exception_traceback_holds_frames;
#[path = "../../causes/fd-leak-files-sockets/rule.rs"]
mod fd_leak_files_sockets;
#[path = "../../causes/file-system-strategy-shm-manager/rule.rs"]
mod file_system_strategy_shm_manager;
#[path = "../../causes/fork-enomem-large-parent/rule.rs"]
mod fork_enomem_large_parent;
#[path = "../../causes/fork-parent-rewrites/rule.rs"]
mod fork_parent_rewrites;
#[path = "../../causes/forkserver-too-many-fds/rule.rs"]
mod forkserver_too_many_fds;
#[path = "../../causes/gc-disabled-or-deferred/rule.rs"]
mod gc_disabled_or_deferred;
#[path = "../../causes/glibc-arenas-per-core/rule.rs"]
mod glibc_arenas_per_core;
#[path = "../../causes/glibc-dynamic-mmap-threshold/rule.rs"]
mod glibc_dynamic_mmap_threshold;
#[path = "../../causes/gloo-and-process-group-growth/rule.rs"]
mod gloo_and_process_group_growth;
#[path = "../../causes/hooks-and-closures-leak/rule.rs"]
mod hooks_and_closures_leak;
#[path = "../../causes/host-oom-kill/rule.rs"]
mod host_oom_kill;
#[path = "../../causes/hugetlb-reserved/rule.rs"]
mod hugetlb_reserved;
#[path = "../../causes/inductor-compile-workers/rule.rs"]
mod inductor_compile_workers;
#[path = "../../causes/invisible-child-oom/rule.rs"]
mod invisible_child_oom;
#[path = "../../causes/itertools-cycle-caches/rule.rs"]
mod itertools_cycle_caches;
#[path = "../../causes/jemalloc-retention/rule.rs"]
mod jemalloc_retention;
#[path = "../../causes/joblib-loky-memmap/rule.rs"]
mod joblib_loky_memmap;
#[path = "../../causes/kmem-slab-growth/rule.rs"]
mod kmem_slab_growth;
#[path = "../../causes/kmem-v1-bug-old-kernel/rule.rs"]
mod kmem_v1_bug_old_kernel;
#[path = "../../causes/large-preallocation-lazy-touch/rule.rs"]
mod large_preallocation_lazy_touch;
#[path = "../../causes/leaked-semaphore-warning/rule.rs"]
mod leaked_semaphore_warning;
#[path = "../../causes/machine-neighbour-load/rule.rs"]
mod machine_neighbour_load;
#[path = "../../causes/max-map-count-exhausted/rule.rs"]
mod max_map_count_exhausted;
#[path = "../../causes/memcg-oom-kill/rule.rs"]
mod memcg_oom_kill;
#[path = "../../causes/memlock-rdma-registration/rule.rs"]
mod memlock_rdma_registration;
#[path = "../../causes/memory-high-throttle/rule.rs"]
mod memory_high_throttle;
#[path = "../../causes/mkl-openmp-isa-leak/rule.rs"]
mod mkl_openmp_isa_leak;
#[path = "../../causes/mmap-dataset-rss-illusion/rule.rs"]
mod mmap_dataset_rss_illusion;
#[path = "../../causes/model-copies-on-cpu/rule.rs"]
mod model_copies_on_cpu;
#[path = "../../causes/nccl-shm-segments/rule.rs"]
mod nccl_shm_segments;
#[path = "../../causes/nofile-exhausted-shared-tensors/rule.rs"]
mod nofile_exhausted_shared_tensors;
#[path = "../../causes/nproc-rlimit/rule.rs"]
mod nproc_rlimit;
#[path = "../../causes/numa-membind-oom/rule.rs"]
mod numa_membind_oom;
#[path = "../../causes/object-collectives-pickle/rule.rs"]
mod object_collectives_pickle;
#[path = "../../causes/onednn-primitive-cache-shapes/rule.rs"]
mod onednn_primitive_cache_shapes;
#[path = "../../causes/orphan-workers/rule.rs"]
mod orphan_workers;
#[path = "../../causes/out-of-order-reorder-buffer/rule.rs"]
mod out_of_order_reorder_buffer;
#[path = "../../causes/page-cache-charged/rule.rs"]
mod page_cache_charged;
#[path = "../../causes/per-rank-copies/rule.rs"]
mod per_rank_copies;
#[path = "../../causes/persistent-workers-growth/rule.rs"]
mod persistent_workers_growth;
#[path = "../../causes/pids-limit-cgroup/rule.rs"]
mod pids_limit_cgroup;
#[path = "../../causes/pil-image-decode/rule.rs"]
mod pil_image_decode;
#[path = "../../causes/prefetch-times-workers/rule.rs"]
mod prefetch_times_workers;
#[path = "../../causes/preload-allocator-mismatch/rule.rs"]
mod preload_allocator_mismatch;
#[path = "../../causes/pymalloc-fragmentation/rule.rs"]
mod pymalloc_fragmentation;
#[path = "../../causes/python-314-incremental-gc/rule.rs"]
mod python_314_incremental_gc;
#[path = "../../causes/queue-backlog-unbounded/rule.rs"]
mod queue_backlog_unbounded;
#[path = "../../causes/ray-object-store/rule.rs"]
mod ray_object_store;
#[path = "../../causes/refcount-cow-fork-workers/rule.rs"]
mod refcount_cow_fork_workers;
#[path = "../../causes/rlimit-as-virtual-memory/rule.rs"]
mod rlimit_as_virtual_memory;
#[path = "../../causes/sampler-index-lists/rule.rs"]
mod sampler_index_lists;
#[path = "../../causes/shm-full-bytes/rule.rs"]
mod shm_full_bytes;
#[path = "../../causes/shm-no-access/rule.rs"]
mod shm_no_access;
#[path = "../../causes/shm-stale-files/rule.rs"]
mod shm_stale_files;
#[path = "../../causes/shmem-counts-twice-limits/rule.rs"]
mod shmem_counts_twice_limits;
#[path = "../../causes/sigbus-file-truncated-or-netfs/rule.rs"]
mod sigbus_file_truncated_or_netfs;
#[path = "../../causes/slurm-rss-sum-overcount/rule.rs"]
mod slurm_rss_sum_overcount;
#[path = "../../causes/spawn-forkserver-full-copy/rule.rs"]
mod spawn_forkserver_full_copy;
#[path = "../../causes/stack-ulimit-thread-stacks/rule.rs"]
mod stack_ulimit_thread_stacks;
#[path = "../../causes/streaming-shuffle-buffer/rule.rs"]
mod streaming_shuffle_buffer;
#[path = "../../causes/strict-overcommit/rule.rs"]
mod strict_overcommit;
#[path = "../../causes/subprocess-in-workers/rule.rs"]
mod subprocess_in_workers;
#[path = "../../causes/swap-thrash/rule.rs"]
mod swap_thrash;
#[path = "../../causes/sysv-shm-msg-limits/rule.rs"]
mod sysv_shm_msg_limits;
#[path = "../../causes/tcmalloc-mimalloc-retention/rule.rs"]
mod tcmalloc_mimalloc_retention;
#[path = "../../causes/thp-always-rss-bloat/rule.rs"]
mod thp_always_rss_bloat;
#[path = "../../causes/threads-per-task/rule.rs"]
mod threads_per_task;
#[path = "../../causes/tmpfs-inodes/rule.rs"]
mod tmpfs_inodes;
#[path = "../../causes/torch-compile-recompiles/rule.rs"]
mod torch_compile_recompiles;
#[path = "../../causes/torch-known-bad-versions/rule.rs"]
mod torch_known_bad_versions;
#[path = "../../causes/unaccounted-kernel-memory/rule.rs"]
mod unaccounted_kernel_memory;
#[path = "../../causes/unbounded-caches/rule.rs"]
mod unbounded_caches;
#[path = "../../causes/unnamed-growth/rule.rs"]
mod unnamed_growth;
#[path = "../../causes/userspace-oom-daemon/rule.rs"]
mod userspace_oom_daemon;
#[path = "../../causes/uva-vsz-illusion/rule.rs"]
mod uva_vsz_illusion;
#[path = "../../causes/view-retains-base/rule.rs"]
mod view_retains_base;
#[path = "../../causes/worker-import-overhead/rule.rs"]
mod worker_import_overhead;
#[path = "../../causes/worker-processes-accumulate/rule.rs"]
mod worker_processes_accumulate;
#[path = "../../causes/wsl2-vm-limits/rule.rs"]
mod wsl2_vm_limits;
#[path = "../../causes/zombie-children/rule.rs"]
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
