//! Which causes are there? Each is a folder of `causes/`, and adding one there is all that a new cause needs.

use crate::analysis::Analysis;
use crate::rule::Cause;
use ullage_model::Finding;

pub(crate) mod similar;

/// Every cause, in the order of lists.
pub fn causes() -> &'static [Cause] {
    ALL
}

/// The headings under which causes are listed, in their order.
pub fn families() -> &'static [&'static str] {
    FAMILIES
}

/// The cause of an id.
pub fn cause(id: &str) -> Option<&'static Cause> {
    ALL.iter().find(|cause| cause.id == id)
}

/// Whether a cause is a growth of private memory.
pub fn explains_growth(id: &str) -> bool {
    cause(id).is_some_and(|cause| cause.group == Some("private-growth"))
}

/// Whether a cause is work that needs much memory for a moment, and did not get it.
pub(crate) fn is_work(id: &str) -> bool {
    cause(id).is_some_and(|cause| cause.group == Some("refused-work"))
}

pub(crate) use object_collectives_pickle::{SENT, TAKEN};
pub(crate) use per_rank_copies::ALIKE;

/// Takes back the growth without a name where other findings explain it.
pub(crate) fn yield_to_others(analysis: &Analysis, findings: &mut Vec<Finding>) {
    unnamed_growth::yield_to_others(analysis, findings, explains_growth);
}

macro_rules! table {
    ($($id:literal, $title:literal, $family:literal, $group:expr, $explains:expr, $rule:expr;)*) => {
        &[$(Cause {
            id: $id,
            title: $title,
            family: $family,
            group: $group,
            explains: &$explains,
            page: include_str!(concat!("../../causes/", $id, "/page.md")),
            facts: include_str!(concat!("../../causes/", $id, "/cause.yaml")),
            rule: $rule,
        }),*]
    };
}

// Written by `cargo run -p xtask -- generate` from here on: id, title, family, group, what it explains, rule.

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
#[path = "../../causes/cpu-offload-budget/rule.rs"]
mod cpu_offload_budget;
#[path = "../../causes/create-graph-cycle/rule.rs"]
mod create_graph_cycle;
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
#[path = "../../causes/logging-and-experiment-trackers/rule.rs"]
mod logging_and_experiment_trackers;
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
#[path = "../../causes/numpy-object-pandas-conversion/rule.rs"]
mod numpy_object_pandas_conversion;
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
#[path = "../../causes/profiler-and-debug-hooks/rule.rs"]
mod profiler_and_debug_hooks;
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

#[rustfmt::skip]
const FAMILIES: &[&str] = &[
    "The kernel refuses: a limit is reached",
    "Memory ran out: killed, or slowed down",
    "Python code keeps objects",
    "Every worker or rank has its own copy",
    "Loaders, queues and processes",
    "The allocator retains freed memory",
    "A library, or its version",
    "Looks like a leak, and is none",
    "The GPU and its driver use host memory",
    "It happens on one machine only",
];

const ALL: &[Cause] = table! {
    "max-map-count-exhausted", "A process has no memory mappings left (vm.max_map_count)", "The kernel refuses: a limit is reached", None, ["checkpoint-load-copies", "checkpoint-save-staging", "cpu-offload-budget", "model-copies-on-cpu", "numpy-object-pandas-conversion", "object-collectives-pickle", "pil-image-decode", "subprocess-in-workers"], Some(max_map_count_exhausted::RULE);
    "nofile-exhausted-shared-tensors", "Shared tensors use up all open files: one descriptor for each", "The kernel refuses: a limit is reached", None, [], Some(nofile_exhausted_shared_tensors::RULE);
    "forkserver-too-many-fds", "The dataset has more tensors than forkserver can pass to a worker (256)", "The kernel refuses: a limit is reached", None, [], Some(forkserver_too_many_fds::RULE);
    "fd-leak-files-sockets", "The program opens files or sockets and never closes them", "The kernel refuses: a limit is reached", None, [], Some(fd_leak_files_sockets::RULE);
    "shm-full-bytes", "/dev/shm is full", "The kernel refuses: a limit is reached", None, [], Some(shm_full_bytes::RULE);
    "tmpfs-inodes", "A tmpfs has no inodes left, although it has free bytes", "The kernel refuses: a limit is reached", None, [], Some(tmpfs_inodes::RULE);
    "disk-full-tmp", "The disk for temporary files is full; memory is not", "The kernel refuses: a limit is reached", None, [], Some(disk_full_tmp::RULE);
    "pids-limit-cgroup", "The cgroup allows no more processes and threads (pids.max)", "The kernel refuses: a limit is reached", None, [], Some(pids_limit_cgroup::RULE);
    "nproc-rlimit", "The user may start no more processes and threads (ulimit -u)", "The kernel refuses: a limit is reached", None, ["checkpoint-load-copies", "checkpoint-save-staging", "cpu-offload-budget", "model-copies-on-cpu", "numpy-object-pandas-conversion", "object-collectives-pickle", "pil-image-decode", "subprocess-in-workers"], Some(nproc_rlimit::RULE);
    "rlimit-as-virtual-memory", "The address space limit (ulimit -v) is below what torch reserves", "The kernel refuses: a limit is reached", None, ["checkpoint-load-copies", "checkpoint-save-staging", "cpu-offload-budget", "model-copies-on-cpu", "numpy-object-pandas-conversion", "object-collectives-pickle", "pil-image-decode", "subprocess-in-workers"], Some(rlimit_as_virtual_memory::RULE);
    "strict-overcommit", "The kernel refuses to promise more memory (vm.overcommit_memory)", "The kernel refuses: a limit is reached", None, ["checkpoint-load-copies", "checkpoint-save-staging", "cpu-offload-budget", "model-copies-on-cpu", "numpy-object-pandas-conversion", "object-collectives-pickle", "pil-image-decode", "subprocess-in-workers"], Some(strict_overcommit::RULE);
    "memcg-oom-kill", "The kernel killed a process at the memory limit of its cgroup", "Memory ran out: killed, or slowed down", None, [], Some(memcg_oom_kill::RULE);
    "host-oom-kill", "The machine ran out of memory, and the kernel killed a process", "Memory ran out: killed, or slowed down", None, [], Some(host_oom_kill::RULE);
    "invisible-child-oom", "A worker was killed for memory, and the job does not report it", "Memory ran out: killed, or slowed down", None, [], Some(invisible_child_oom::RULE);
    "refcount-cow-fork-workers", "Forked workers copy the dataset page by page, just by reading it", "Every worker or rank has its own copy", Some("private-growth"), [], Some(refcount_cow_fork_workers::RULE);
    "spawn-forkserver-full-copy", "Each worker unpickles its own copy of the dataset (spawn, forkserver)", "Every worker or rank has its own copy", Some("private-growth"), [], Some(spawn_forkserver_full_copy::RULE);
    "worker-import-overhead", "Every worker builds the same large objects for itself", "Every worker or rank has its own copy", None, [], Some(worker_import_overhead::RULE);
    "accumulate-tensors-with-graph", "Python code keeps every loss or output with its autograd graph", "Python code keeps objects", Some("private-growth"), [], Some(accumulate_tensors_with_graph::RULE);
    "create-graph-cycle", "Gradients of backward(create_graph=True) keep their graphs", "Python code keeps objects", Some("private-growth"), [], Some(create_graph_cycle::RULE);
    "accumulate-metrics-outputs", "A container collects the output of every step and is never emptied", "Python code keeps objects", Some("private-growth"), [], Some(accumulate_metrics_outputs::RULE);
    "unbounded-caches", "A cache only grows: no entry ever leaves it", "Python code keeps objects", Some("private-growth"), [], Some(unbounded_caches::RULE);
    "view-retains-base", "Small slices stay alive, and each keeps its whole storage", "Python code keeps objects", Some("private-growth"), [], Some(view_retains_base::RULE);
    "exception-traceback-holds-frames", "Stored exceptions keep the variables of every frame they passed", "Python code keeps objects", Some("private-growth"), [], Some(exception_traceback_holds_frames::RULE);
    "hooks-and-closures-leak", "Hooks or closures pile up and keep modules and activations", "Python code keeps objects", Some("private-growth"), [], Some(hooks_and_closures_leak::RULE);
    "gc-disabled-or-deferred", "Reference cycles pile up, because the garbage collector does not run", "Python code keeps objects", Some("private-growth"), [], Some(gc_disabled_or_deferred::RULE);
    "unnamed-growth", "Memory grows to the end of the run; the cause is unknown", "Python code keeps objects", None, [], Some(unnamed_growth::RULE);
    "orphan-workers", "Workers outlive the process that started them", "Loaders, queues and processes", None, [], Some(orphan_workers::RULE);
    "zombie-children", "Exited children were never waited for: no memory, but one pid each", "Loaders, queues and processes", None, [], Some(zombie_children::RULE);
    "fork-parent-rewrites", "Forked processes keep old pages that the parent has freed or rewritten", "Every worker or rank has its own copy", Some("private-growth"), [], Some(fork_parent_rewrites::RULE);
    "queue-backlog-unbounded", "An unbounded queue fills faster than it is emptied", "Loaders, queues and processes", Some("private-growth"), [], Some(queue_backlog_unbounded::RULE);
    "threads-per-task", "Threads are started again and again, and never end", "Loaders, queues and processes", Some("private-growth"), ["glibc-arenas-per-core"], Some(threads_per_task::RULE);
    "leaked-semaphore-warning", "The \"leaked semaphore\" warning only says that its owner was killed", "Loaders, queues and processes", None, [], Some(leaked_semaphore_warning::RULE);
    "python-314-incremental-gc", "Python 3.14.0 to 3.14.4 collects reference cycles late", "Python code keeps objects", Some("private-growth"), [], Some(python_314_incremental_gc::RULE);
    "prefetch-times-workers", "Prefetched batches of all workers fill memory or /dev/shm", "Loaders, queues and processes", Some("private-growth"), [], Some(prefetch_times_workers::RULE);
    "out-of-order-reorder-buffer", "Finished batches wait for one slow batch, and fill memory or /dev/shm", "Loaders, queues and processes", Some("private-growth"), [], Some(out_of_order_reorder_buffer::RULE);
    "streaming-shuffle-buffer", "Shuffle buffers in the loader workers fill the memory", "Loaders, queues and processes", Some("private-growth"), [], Some(streaming_shuffle_buffer::RULE);
    "persistent-workers-growth", "Persistent workers grow for the whole run", "Loaders, queues and processes", Some("private-growth"), [], Some(persistent_workers_growth::RULE);
    "worker-processes-accumulate", "Loaders are created again and again, and their workers pile up", "Loaders, queues and processes", None, [], Some(worker_processes_accumulate::RULE);
    "itertools-cycle-caches", "itertools.cycle or tee keeps every batch of a loader", "Python code keeps objects", Some("private-growth"), [], Some(itertools_cycle_caches::RULE);
    "file-system-strategy-shm-manager", "torch_shm_manager cannot be started or reached", "Loaders, queues and processes", None, [], Some(file_system_strategy_shm_manager::RULE);
    "sampler-index-lists", "The sampler's list of indices is large", "Loaders, queues and processes", Some("private-growth"), [], Some(sampler_index_lists::RULE);
    "subprocess-in-workers", "Loader workers start a program for each sample", "Loaders, queues and processes", Some("refused-work"), [], Some(subprocess_in_workers::RULE);
    "onednn-primitive-cache-shapes", "oneDNN generates and keeps code for every new input shape", "A library, or its version", Some("private-growth"), [], Some(onednn_primitive_cache_shapes::RULE);
    "mkl-fast-mm-buffers", "MKL keeps a buffer for each thread, which looks like a leak", "The allocator retains freed memory", None, [], None;
    "openblas-threads-buffers", "OpenBLAS needs a buffer for each thread, and has too few on many cores", "The allocator retains freed memory", None, [], None;
    "torch-compile-recompiles", "torch.compile recompiles again and again, and keeps every graph", "A library, or its version", Some("private-growth"), [], Some(torch_compile_recompiles::RULE);
    "autograd-function-ctx-leak", "A custom autograd function stores its output on ctx: a reference cycle", "Python code keeps objects", Some("private-growth"), [], Some(autograd_function_ctx_leak::RULE);
    "torch-known-bad-versions", "An installed version is known to leak memory", "A library, or its version", None, [], Some(torch_known_bad_versions::RULE);
    "inductor-compile-workers", "torch.compile's pool of compile workers takes much memory", "A library, or its version", Some("private-growth"), [], Some(inductor_compile_workers::RULE);
    "checkpoint-load-copies", "Memory ran out while a checkpoint was loaded", "Every worker or rank has its own copy", Some("refused-work"), [], Some(checkpoint_load_copies::RULE);
    "checkpoint-save-staging", "Memory ran out while a checkpoint was saved", "Every worker or rank has its own copy", Some("refused-work"), [], Some(checkpoint_save_staging::RULE);
    "model-copies-on-cpu", "Memory ran out while a model or its state was copied", "Every worker or rank has its own copy", Some("refused-work"), [], Some(model_copies_on_cpu::RULE);
    "glibc-arenas-per-core", "malloc retains freed memory in the arenas of many threads", "The allocator retains freed memory", Some("private-growth"), [], Some(glibc_arenas_per_core::RULE);
    "glibc-dynamic-mmap-threshold", "malloc's main heap retains freed memory", "The allocator retains freed memory", Some("private-growth"), [], Some(glibc_dynamic_mmap_threshold::RULE);
    "jemalloc-retention", "jemalloc retains freed memory", "The allocator retains freed memory", Some("private-growth"), [], Some(jemalloc_retention::RULE);
    "tcmalloc-mimalloc-retention", "tcmalloc or mimalloc retains freed memory", "The allocator retains freed memory", Some("private-growth"), [], Some(tcmalloc_mimalloc_retention::RULE);
    "pymalloc-fragmentation", "Python retains the memory of deleted small objects", "The allocator retains freed memory", Some("private-growth"), [], Some(pymalloc_fragmentation::RULE);
    "mkl-openmp-isa-leak", "An old torch with MKL leaks on CPUs without AVX-512", "A library, or its version", Some("private-growth"), [], Some(mkl_openmp_isa_leak::RULE);
    "logging-and-experiment-trackers", "A logger or experiment tracker keeps all logged data in memory", "Python code keeps objects", Some("private-growth"), ["accumulate-metrics-outputs", "unbounded-caches"], Some(logging_and_experiment_trackers::RULE);
    "dual-openmp-runtime", "Two OpenMP runtimes are loaded into one process", "A library, or its version", None, [], Some(dual_openmp_runtime::RULE);
    "large-preallocation-lazy-touch", "A large buffer fills step by step, and stops at its size", "Looks like a leak, and is none", Some("private-growth"), [], Some(large_preallocation_lazy_touch::RULE);
    "mmap-dataset-rss-illusion", "Pages of a mapped data file count as resident memory", "Looks like a leak, and is none", None, [], Some(mmap_dataset_rss_illusion::RULE);
    "arrow-memory-pool-retention", "Arrow's memory pool retains the memory of deleted tables", "The allocator retains freed memory", Some("private-growth"), [], Some(arrow_memory_pool_retention::RULE);
    "pil-image-decode", "An image is too large to decode", "Every worker or rank has its own copy", Some("refused-work"), [], Some(pil_image_decode::RULE);
    "uva-vsz-illusion", "The virtual size (VIRT) is huge, and is address space only", "Looks like a leak, and is none", None, [], Some(uva_vsz_illusion::RULE);
    "preload-allocator-mismatch", "A library has no room for thread-local storage; memory is not short", "A library, or its version", None, [], Some(preload_allocator_mismatch::RULE);
    "per-rank-copies", "Every rank on the node holds its own copy of the dataset", "Every worker or rank has its own copy", Some("private-growth"), [], Some(per_rank_copies::RULE);
    "object-collectives-pickle", "Memory ran out while Python objects were gathered from all ranks", "Every worker or rank has its own copy", Some("refused-work"), [], Some(object_collectives_pickle::RULE);
    "gloo-and-process-group-growth", "Process groups are created again and again, and never destroyed", "A library, or its version", Some("private-growth"), [], Some(gloo_and_process_group_growth::RULE);
    "nccl-shm-segments", "NCCL cannot create or open its segments in /dev/shm", "A library, or its version", None, ["shm-full-bytes"], Some(nccl_shm_segments::RULE);
    "ray-object-store", "Ray's object store is full", "Loaders, queues and processes", None, [], Some(ray_object_store::RULE);
    "joblib-loky-memmap", "joblib has no room for the arrays that its workers share", "Loaders, queues and processes", None, ["shm-full-bytes", "disk-full-tmp"], Some(joblib_loky_memmap::RULE);
    "stack-ulimit-thread-stacks", "Thread stacks fill the address space, because ulimit -s is large", "The kernel refuses: a limit is reached", None, ["rlimit-as-virtual-memory", "strict-overcommit"], Some(stack_ulimit_thread_stacks::RULE);
    "cuda-ipc-consumer-leak", "CUDA tensors sent to another process stay alive in the sender", "The GPU and its driver use host memory", None, [], None;
    "clone3-seccomp-eperm", "An old container runtime forbids the call that starts threads", "The kernel refuses: a limit is reached", None, [], Some(clone3_seccomp_eperm::RULE);
    "cudnn-plan-cache-shapes", "cuDNN keeps a plan for every new convolution shape", "A library, or its version", None, [], None;
    "fork-enomem-large-parent", "The kernel refuses to fork: the parent is too large, or memory is nearly gone", "The kernel refuses: a limit is reached", None, [], Some(fork_enomem_large_parent::RULE);
    "memlock-rdma-registration", "A process may not lock as much memory as it needs (ulimit -l)", "The kernel refuses: a limit is reached", None, [], Some(memlock_rdma_registration::RULE);
    "pinned-host-cache", "torch never returns pinned host memory, and rounds it up", "The allocator retains freed memory", None, [], None;
    "cuda-context-host-ram", "Every process that uses CUDA takes host memory for its context", "The GPU and its driver use host memory", None, [], None;
    "machine-neighbour-load", "Other programs on the machine take the memory", "Memory ran out: killed, or slowed down", None, [], Some(machine_neighbour_load::RULE);
    "swap-thrash", "The job needs more memory than the machine has, and swaps", "Memory ran out: killed, or slowed down", None, [], Some(swap_thrash::RULE);
    "thp-always-rss-bloat", "Transparent huge pages make sparse memory fully resident", "The allocator retains freed memory", Some("private-growth"), [], Some(thp_always_rss_bloat::RULE);
    "cpu-offload-budget", "CPU offload needs more memory than the machine has", "Every worker or rank has its own copy", Some("refused-work"), [], Some(cpu_offload_budget::RULE);
    "sigbus-file-truncated-or-netfs", "A mapped file was truncated or its filesystem failed: bus error", "Memory ran out: killed, or slowed down", None, [], Some(sigbus_file_truncated_or_netfs::RULE);
    "profiler-and-debug-hooks", "A profiler keeps the events of every operation in memory", "Python code keeps objects", Some("private-growth"), [], Some(profiler_and_debug_hooks::RULE);
    "jit-profiling-executor", "TorchScript specialises code for every new input shape", "A library, or its version", None, [], None;
    "shm-stale-files", "Files that killed runs left in /dev/shm take its space", "The kernel refuses: a limit is reached", None, [], Some(shm_stale_files::RULE);
    "shm-no-access", "/dev/shm is missing, read-only or not accessible", "The kernel refuses: a limit is reached", None, [], Some(shm_no_access::RULE);
    "sysv-shm-msg-limits", "A System V limit is reached, or a killed run left a segment behind", "The kernel refuses: a limit is reached", None, [], Some(sysv_shm_msg_limits::RULE);
    "hugetlb-reserved", "Memory reserved for huge pages (hugetlb) is missing everywhere else", "Memory ran out: killed, or slowed down", None, ["host-oom-kill", "fork-enomem-large-parent", "machine-neighbour-load", "swap-thrash"], Some(hugetlb_reserved::RULE);
    "numa-membind-oom", "The NUMA nodes that a process is bound to are full, others are free", "Memory ran out: killed, or slowed down", None, [], Some(numa_membind_oom::RULE);
    "shmem-counts-twice-limits", "Files in /dev/shm count against the container's memory limit, and fill it", "Memory ran out: killed, or slowed down", None, [], Some(shmem_counts_twice_limits::RULE);
    "page-cache-charged", "Page cache fills the cgroup up to its limit, which is harmless", "Looks like a leak, and is none", None, [], Some(page_cache_charged::RULE);
    "cgroup-leftover-charge", "The cgroup was partly full before the job started", "Looks like a leak, and is none", None, [], Some(cgroup_leftover_charge::RULE);
    "kmem-slab-growth", "The kernel's own memory grows: file names, sockets, page tables", "Looks like a leak, and is none", None, [], Some(kmem_slab_growth::RULE);
    "memory-high-throttle", "memory.high slows the job down instead of killing it", "Memory ran out: killed, or slowed down", None, [], Some(memory_high_throttle::RULE);
    "cgroup-sizing-by-host-view", "The job starts workers or threads for cores that it may not use", "Loaders, queues and processes", None, [], Some(cgroup_sizing_by_host_view::RULE);
    "h5py-leaks-and-cache", "h5py or HDF5 leaks, or keeps chunk caches and handles", "A library, or its version", None, [], None;
    "video-decoder-leaks", "A video decoder leaks, or decodes far ahead", "A library, or its version", None, [], None;
    "opencv-threads-opencl", "OpenCV starts threads or OpenCL in the workers", "A library, or its version", None, [], None;
    "userspace-oom-daemon", "A daemon or scheduler, not the kernel, killed the job for memory", "Memory ran out: killed, or slowed down", None, [], Some(userspace_oom_daemon::RULE);
    "s3-client-per-sample", "A storage client (boto3, s3fs, gcsfs) is created for each sample or thread", "Loaders, queues and processes", None, [], None;
    "hf-streaming-growth", "Streaming a Hugging Face dataset takes more memory with every shard", "A library, or its version", None, [], None;
    "slurm-rss-sum-overcount", "The scheduler counts shared pages once per process, and kills the job for it", "Memory ran out: killed, or slowed down", None, [], Some(slurm_rss_sum_overcount::RULE);
    "numpy-object-pandas-conversion", "Memory ran out while data was converted to Python objects", "Every worker or rank has its own copy", Some("refused-work"), [], Some(numpy_object_pandas_conversion::RULE);
    "hf-tokenizer-cache", "A Hugging Face tokenizer caches every new long word", "A library, or its version", None, [], None;
    "transform-objects-per-sample", "A transform, model or plan is created anew for each sample", "Loaders, queues and processes", None, [], None;
    "nvidia-kernel611-hostalloc-leak", "Linux 6.11 with the NVIDIA driver leaks pinned host memory", "The GPU and its driver use host memory", None, [], None;
    "nvidia-driver-kernel-leaks", "The NVIDIA driver or NVML polling leaks kernel memory", "The GPU and its driver use host memory", None, [], None;
    "kmem-v1-bug-old-kernel", "Kernel 3.10 never frees the kernel memory that it charges to a cgroup", "Looks like a leak, and is none", None, [], Some(kmem_v1_bug_old_kernel::RULE);
    "machine-core-count-effects", "The larger machine needs more, because everything is sized by its cores", "It happens on one machine only", None, [], None;
    "machine-allocator-env-difference", "The machines use different allocators or MALLOC_ settings", "It happens on one machine only", None, [], None;
    "machine-limits-difference", "The launchers set different limits (ssh, systemd, Slurm, Docker, Kubernetes)", "It happens on one machine only", None, [], None;
    "machine-cgroup-version-difference", "The machines differ in cgroup v1, v2 or none", "It happens on one machine only", None, [], None;
    "machine-library-build-difference", "The machines have different library builds", "It happens on one machine only", None, [], None;
    "wsl2-vm-limits", "The WSL2 virtual machine gets only half of the computer's memory", "It happens on one machine only", None, [], Some(wsl2_vm_limits::RULE);
    "machine-storage-speed-backlog", "Slow storage, network or GPU makes queues longer on one machine", "It happens on one machine only", None, [], None;
    "unaccounted-kernel-memory", "Drivers, a balloon or ZFS use memory that no process owns", "Looks like a leak, and is none", None, [], Some(unaccounted_kernel_memory::RULE);
};
