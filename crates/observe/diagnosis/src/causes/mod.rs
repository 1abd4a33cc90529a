//! Which causes are there? Each is a folder of `causes/`, and adding one there is all that a new cause needs.

use crate::analysis::Analysis;
use crate::rule::Cause;
use ullage_model::Finding;

pub(crate) mod similar;

/// Every cause, in the order of lists.
pub fn causes() -> &'static [Cause] {
    ALL
}

/// The cause of an id.
pub fn cause(id: &str) -> Option<&'static Cause> {
    ALL.iter().find(|cause| cause.id == id)
}

/// Whether a cause is a growth of private memory.
pub fn explains_growth(id: &str) -> bool {
    cause(id).is_some_and(|cause| cause.group == Some("private-growth"))
}

/// Takes back the growth without a name where other findings explain it.
pub(crate) fn yield_to_others(analysis: &Analysis, findings: &mut Vec<Finding>) {
    unnamed_growth::yield_to_others(analysis, findings, explains_growth);
}

macro_rules! table {
    ($($id:literal, $title:literal, $group:expr, $explains:expr, $rule:expr;)*) => {
        &[$(Cause {
            id: $id,
            title: $title,
            group: $group,
            explains: &$explains,
            page: include_str!(concat!("../../causes/", $id, "/page.md")),
            facts: include_str!(concat!("../../causes/", $id, "/cause.yaml")),
            rule: $rule,
        }),*]
    };
}

// Written by `cargo run -p xtask -- generate` from here on: id, title, group, what it explains, rule.

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

const ALL: &[Cause] = table! {
    "max-map-count-exhausted", "vm.max_map_count exhausted by many shared tensors or mmaps", None, ["checkpoint-load-copies", "checkpoint-save-staging", "cpu-offload-budget", "model-copies-on-cpu", "numpy-object-pandas-conversion", "object-collectives-pickle", "pil-image-decode", "subprocess-in-workers"], Some(max_map_count_exhausted::RULE);
    "nofile-exhausted-shared-tensors", "RLIMIT_NOFILE exhausted by the file_descriptor sharing strategy", None, [], Some(nofile_exhausted_shared_tensors::RULE);
    "forkserver-too-many-fds", "forkserver hands a child at most 256 descriptors, torch sends one per tensor", None, [], Some(forkserver_too_many_fds::RULE);
    "fd-leak-files-sockets", "File or socket descriptors leaked by the dataset or a library", None, [], Some(fd_leak_files_sockets::RULE);
    "shm-full-bytes", "/dev/shm has no bytes left (docker 64 MiB default, k8s 64 MiB, half of RAM)", None, [], Some(shm_full_bytes::RULE);
    "tmpfs-inodes", "tmpfs inode limit reached although bytes are free", None, [], Some(tmpfs_inodes::RULE);
    "disk-full-tmp", "TMPDIR/cache disk (or tmpfs) full mistaken for memory", None, [], Some(disk_full_tmp::RULE);
    "pids-limit-cgroup", "cgroup pids.max (docker --pids-limit, systemd TasksMax, k8s podPidsLimit) reached", None, [], Some(pids_limit_cgroup::RULE);
    "nproc-rlimit", "RLIMIT_NPROC (ulimit -u) reached by threads of the same user", None, ["checkpoint-load-copies", "checkpoint-save-staging", "cpu-offload-budget", "model-copies-on-cpu", "numpy-object-pandas-conversion", "object-collectives-pickle", "pil-image-decode", "subprocess-in-workers"], Some(nproc_rlimit::RULE);
    "rlimit-as-virtual-memory", "RLIMIT_AS (ulimit -v, h_vmem) smaller than the address space torch/CUDA reserve", None, ["checkpoint-load-copies", "checkpoint-save-staging", "cpu-offload-budget", "model-copies-on-cpu", "numpy-object-pandas-conversion", "object-collectives-pickle", "pil-image-decode", "subprocess-in-workers"], Some(rlimit_as_virtual_memory::RULE);
    "strict-overcommit", "vm.overcommit_memory=2 (or heuristic refusal): CommitLimit reached while memory is free", None, ["checkpoint-load-copies", "checkpoint-save-staging", "cpu-offload-budget", "model-copies-on-cpu", "numpy-object-pandas-conversion", "object-collectives-pickle", "pil-image-decode", "subprocess-in-workers"], Some(strict_overcommit::RULE);
    "memcg-oom-kill", "Memory cgroup limit reached: kernel OOM-kills a process of the job", None, [], Some(memcg_oom_kill::RULE);
    "host-oom-kill", "Whole host out of memory: global OOM killer", None, [], Some(host_oom_kill::RULE);
    "invisible-child-oom", "A worker is OOM-killed but the container lives on (or the reverse)", None, [], Some(invisible_child_oom::RULE);
    "refcount-cow-fork-workers", "Fork workers un-share the dataset by refcount writes (copy-on-read)", Some("private-growth"), [], Some(refcount_cow_fork_workers::RULE);
    "spawn-forkserver-full-copy", "spawn/forkserver workers each get a full pickled copy of the dataset", Some("private-growth"), [], Some(spawn_forkserver_full_copy::RULE);
    "worker-import-overhead", "Base cost per worker/rank: imports, CUDA libraries, per-process copies of models/tokenizers", None, [], Some(worker_import_overhead::RULE);
    "accumulate-tensors-with-graph", "Losses/outputs kept with their autograd graph", Some("private-growth"), [], Some(accumulate_tensors_with_graph::RULE);
    "create-graph-cycle", "backward(create_graph=True) leaves gradients that hold their graphs", Some("private-growth"), [], Some(create_graph_cycle::RULE);
    "accumulate-metrics-outputs", "Predictions, metric states or step outputs kept for the whole epoch or run", Some("private-growth"), [], Some(accumulate_metrics_outputs::RULE);
    "unbounded-caches", "lru_cache(maxsize=None), memo dicts, dataset 'cache=True' and class-level lists", Some("private-growth"), [], Some(unbounded_caches::RULE);
    "view-retains-base", "A small view keeps a large base buffer alive (slices, numpy views, torch.save of slices)", Some("private-growth"), [], Some(view_retains_base::RULE);
    "exception-traceback-holds-frames", "A stored exception/traceback keeps all frames and their tensors", Some("private-growth"), [], Some(exception_traceback_holds_frames::RULE);
    "hooks-and-closures-leak", "Forward/backward hooks, closures and bound methods keep activations/modules", Some("private-growth"), [], Some(hooks_and_closures_leak::RULE);
    "gc-disabled-or-deferred", "Cyclic garbage is not collected (gc disabled, frozen, high threshold, other thread)", Some("private-growth"), [], Some(gc_disabled_or_deferred::RULE);
    "unnamed-growth", "Memory grows to the end of the run; cause not found", None, [], Some(unnamed_growth::RULE);
    "orphan-workers", "Workers, ranks or compile processes survive a killed parent", None, [], Some(orphan_workers::RULE);
    "zombie-children", "Zombies from subprocess/os.system in workers are not memory, but exhaust pids", None, [], Some(zombie_children::RULE);
    "fork-parent-rewrites", "Forked children pin old parent pages (parent frees or rewrites after fork)", Some("private-growth"), [], Some(fork_parent_rewrites::RULE);
    "queue-backlog-unbounded", "Unbounded queues between producer and consumer", Some("private-growth"), [], Some(queue_backlog_unbounded::RULE);
    "threads-per-task", "New threads per step/sample: stacks, arenas, thread-local torch state", Some("private-growth"), [], Some(threads_per_task::RULE);
    "leaked-semaphore-warning", "resource_tracker 'leaked semaphore/shared_memory objects' is a symptom, not a cause", None, [], Some(leaked_semaphore_warning::RULE);
    "python-314-incremental-gc", "Python 3.14.0-3.14.4 incremental GC uses much more memory", Some("private-growth"), [], Some(python_314_incremental_gc::RULE);
    "prefetch-times-workers", "In-flight batches: num_workers x prefetch_factor x batch x loaders x ranks", Some("private-growth"), [], Some(prefetch_times_workers::RULE);
    "out-of-order-reorder-buffer", "Slow sample makes main buffer finished out-of-order batches", Some("private-growth"), [], Some(out_of_order_reorder_buffer::RULE);
    "streaming-shuffle-buffer", "Shuffle/bucket buffers of iterable datasets multiply by workers and ranks", Some("private-growth"), [], Some(streaming_shuffle_buffer::RULE);
    "persistent-workers-growth", "persistent_workers keeps every worker-side leak/cache for the whole run", Some("private-growth"), [], Some(persistent_workers_growth::RULE);
    "worker-processes-accumulate", "DataLoader or iterator re-created inside the loop: worker processes pile up", None, [], Some(worker_processes_accumulate::RULE);
    "itertools-cycle-caches", "itertools.cycle / tee on a DataLoader stores every batch", Some("private-growth"), [], Some(itertools_cycle_caches::RULE);
    "file-system-strategy-shm-manager", "file_system sharing strategy: torch_shm_manager processes and leaked names", None, [], Some(file_system_strategy_shm_manager::RULE);
    "sampler-index-lists", "Sampler and index lists of huge datasets", Some("private-growth"), [], Some(sampler_index_lists::RULE);
    "subprocess-in-workers", "os.system/subprocess in __getitem__: fork cost, COW and pipes", Some("refused-work"), [], Some(subprocess_in_workers::RULE);
    "onednn-primitive-cache-shapes", "oneDNN primitive cache grows with every new input shape (CPU conv/linear/RNN)", Some("private-growth"), [], Some(onednn_primitive_cache_shapes::RULE);
    "mkl-fast-mm-buffers", "MKL per-thread buffers (fast memory manager) look like a leak", None, [], None;
    "openblas-threads-buffers", "OpenBLAS: per-thread buffers and region limit on many-core machines", None, [], None;
    "torch-compile-recompiles", "torch.compile: recompilation, guards and compiled-code caches grow host memory", Some("private-growth"), [], Some(torch_compile_recompiles::RULE);
    "autograd-function-ctx-leak", "custom autograd.Function stores tensors on ctx; create_graph cycles", Some("private-growth"), [], Some(autograd_function_ctx_leak::RULE);
    "torch-known-bad-versions", "Known torch/CUDA version leaks", None, [], Some(torch_known_bad_versions::RULE);
    "inductor-compile-workers", "Inductor compile worker pool: min(32, cores) processes per rank", Some("private-growth"), [], Some(inductor_compile_workers::RULE);
    "checkpoint-load-copies", "Checkpoint load: every rank loads the whole file to CPU, plus double copies", Some("refused-work"), [], Some(checkpoint_load_copies::RULE);
    "checkpoint-save-staging", "Checkpoint save: full CPU copy, pickling and async staging buffers", Some("refused-work"), [], Some(checkpoint_save_staging::RULE);
    "model-copies-on-cpu", "EMA, best-state deepcopy, optimizer state moves pile up on CPU", Some("refused-work"), [], Some(model_copies_on_cpu::RULE);
    "glibc-arenas-per-core", "glibc malloc arenas: 8 x cores arenas keep freed memory", Some("private-growth"), [], Some(glibc_arenas_per_core::RULE);
    "glibc-dynamic-mmap-threshold", "glibc dynamic mmap/trim threshold keeps large freed blocks", Some("private-growth"), [], Some(glibc_dynamic_mmap_threshold::RULE);
    "jemalloc-retention", "jemalloc (preloaded or embedded in pyarrow/redis/ray) holds dirty/retained extents", Some("private-growth"), [], Some(jemalloc_retention::RULE);
    "tcmalloc-mimalloc-retention", "tcmalloc/mimalloc thread caches and page heap keep memory", Some("private-growth"), [], Some(tcmalloc_mimalloc_retention::RULE);
    "pymalloc-fragmentation", "CPython small-object arenas pinned by survivors", Some("private-growth"), [], Some(pymalloc_fragmentation::RULE);
    "mkl-openmp-isa-leak", "MKL/OpenMP leak on one CPU type (AVX2/AMD vs AVX-512)", Some("private-growth"), [], Some(mkl_openmp_isa_leak::RULE);
    "logging-and-experiment-trackers", "Logger/tracker keeps data in RAM (W&B, TensorBoard, MLflow, profiler text, notebooks)", Some("private-growth"), ["accumulate-metrics-outputs", "unbounded-caches"], Some(logging_and_experiment_trackers::RULE);
    "dual-openmp-runtime", "Two OpenMP runtimes in one process", None, [], Some(dual_openmp_runtime::RULE);
    "large-preallocation-lazy-touch", "Preallocated buffer is touched step by step: looks like a leak, ends at its size", Some("private-growth"), [], Some(large_preallocation_lazy_touch::RULE);
    "mmap-dataset-rss-illusion", "Memory-mapped dataset (Arrow/HF, LMDB, np.memmap, safetensors) inflates RSS: cache, not leak", None, [], Some(mmap_dataset_rss_illusion::RULE);
    "arrow-memory-pool-retention", "pyarrow/pandas parquet reading: pool retention and bad versions", Some("private-growth"), [], Some(arrow_memory_pool_retention::RULE);
    "pil-image-decode", "Image decode: lazy PIL files, huge decoded size, caches", Some("refused-work"), [], Some(pil_image_decode::RULE);
    "uva-vsz-illusion", "Huge VIRT is address space (CUDA UVA, arenas, mmaps), not memory", None, [], Some(uva_vsz_illusion::RULE);
    "preload-allocator-mismatch", "LD_PRELOAD allocator on one machine only / two allocators mixed (crash look-alike)", None, [], Some(preload_allocator_mismatch::RULE);
    "per-rank-copies", "Every rank loads its own dataset/metadata/model copy on the node", Some("private-growth"), [], Some(per_rank_copies::RULE);
    "object-collectives-pickle", "all_gather_object / gather of Python objects to every rank", Some("refused-work"), [], Some(object_collectives_pickle::RULE);
    "gloo-and-process-group-growth", "Gloo buffers per new tensor size and process groups created in a loop", Some("private-growth"), [], Some(gloo_and_process_group_growth::RULE);
    "nccl-shm-segments", "NCCL shared-memory transport cannot create /dev/shm/nccl-* segments", None, ["shm-full-bytes"], Some(nccl_shm_segments::RULE);
    "ray-object-store", "Ray object store (plasma) fills /dev/shm or spills; workers killed by Ray monitor", None, [], Some(ray_object_store::RULE);
    "joblib-loky-memmap", "joblib/loky memmaps arrays into /dev/shm and leaves folders", None, ["shm-full-bytes", "disk-full-tmp"], Some(joblib_loky_memmap::RULE);
    "stack-ulimit-thread-stacks", "Large ulimit -s multiplies thread stacks", None, ["rlimit-as-virtual-memory", "strict-overcommit"], Some(stack_ulimit_thread_stacks::RULE);
    "cuda-ipc-consumer-leak", "CUDA tensors sent between processes are held by the producer (IPC refcount)", None, [], None;
    "clone3-seccomp-eperm", "Old Docker seccomp profile denies clone3 to glibc >= 2.34 (look-alike of exhaustion)", None, [], Some(clone3_seccomp_eperm::RULE);
    "cudnn-plan-cache-shapes", "cuDNN v8 execution-plan cache: host RAM per distinct conv shape per thread", None, [], None;
    "fork-enomem-large-parent", "os.fork of workers fails with ENOMEM when memory is nearly gone or the parent is huge", None, [], Some(fork_enomem_large_parent::RULE);
    "memlock-rdma-registration", "RLIMIT_MEMLOCK too small for RDMA / pinned registration", None, [], Some(memlock_rdma_registration::RULE);
    "pinned-host-cache", "Caching host (pinned) allocator: power-of-two rounding, never returned", None, [], None;
    "cuda-context-host-ram", "CUDA context and libraries cost host RAM per process and GPU", None, [], None;
    "machine-neighbour-load", "Other processes or background services take the memory", None, [], Some(machine_neighbour_load::RULE);
    "swap-thrash", "Working set in swap: the job is slow, not leaking; or swap hides the leak on one machine", None, [], Some(swap_thrash::RULE);
    "thp-always-rss-bloat", "Transparent huge pages 'always': sparse heaps and thread stacks become fully resident", Some("private-growth"), [], Some(thp_always_rss_bloat::RULE);
    "cpu-offload-budget", "CPU offload (ZeRO-Offload/FSDP cpu_offload/activation offload/paged optimizers) needs more host RAM than there is", Some("refused-work"), [], Some(cpu_offload_budget::RULE);
    "sigbus-file-truncated-or-netfs", "SIGBUS from a memory-mapped data/checkpoint file (truncated, overwritten, network fs fault)", None, [], Some(sigbus_file_truncated_or_netfs::RULE);
    "profiler-and-debug-hooks", "Profilers, anomaly mode, memory history keep events in host RAM", None, [], None;
    "jit-profiling-executor", "TorchScript profiling executor specialises per shape", None, [], None;
    "shm-stale-files", "Left-over /dev/shm files from killed runs fill shm and memory", None, [], Some(shm_stale_files::RULE);
    "shm-no-access", "/dev/shm missing, not writable or noexec/readonly", None, [], Some(shm_no_access::RULE);
    "sysv-shm-msg-limits", "SysV/POSIX message or semaphore limits (kernel.shmall, shmmni, fs.mqueue, sem)", None, [], Some(sysv_shm_msg_limits::RULE);
    "hugetlb-reserved", "Reserved hugetlb pages take RAM away from everything else", None, ["host-oom-kill", "fork-enomem-large-parent", "machine-neighbour-load", "swap-thrash"], Some(hugetlb_reserved::RULE);
    "numa-membind-oom", "NUMA/cpuset binding: one node full while others are free", None, [], Some(numa_membind_oom::RULE);
    "shmem-counts-twice-limits", "Memory-backed emptyDir / --shm-size counts against the container memory limit", None, [], Some(shmem_counts_twice_limits::RULE);
    "page-cache-charged", "Page cache of dataset/checkpoint files fills the cgroup (mostly harmless, sometimes fatal)", None, [], Some(page_cache_charged::RULE);
    "cgroup-leftover-charge", "Memory charged to the wrong or a dead cgroup (page cache/tmpfs of earlier jobs)", None, [], Some(cgroup_leftover_charge::RULE);
    "kmem-slab-growth", "Kernel memory charged to the job: dentries/inodes of millions of small files, sockets, page tables", None, [], Some(kmem_slab_growth::RULE);
    "memory-high-throttle", "memory.high (or MemoryHigh=) throttles the job: stall instead of crash", None, [], Some(memory_high_throttle::RULE);
    "cgroup-sizing-by-host-view", "Software sizes itself by host CPUs/RAM, not by the cgroup", None, [], Some(cgroup_sizing_by_host_view::RULE);
    "h5py-leaks-and-cache", "h5py/HDF5: regression leaks, chunk caches, handles inherited by fork", None, [], None;
    "video-decoder-leaks", "Video decoding (decord, torchvision.io/PyAV, AVReader) leaks or decodes ahead", None, [], None;
    "opencv-threads-opencl", "OpenCV in workers: thread pools, OpenCL contexts, fork deadlocks", None, [], None;
    "userspace-oom-daemon", "Killed by a user-space policy: systemd-oomd, earlyoom, Ray memory monitor, Nomad/kubelet eviction", None, [], Some(userspace_oom_daemon::RULE);
    "s3-client-per-sample", "boto3/s3fs/gcsfs clients and sessions created per sample or thread", None, [], None;
    "hf-streaming-growth", "HF datasets streaming / fsspec growth per shard", None, [], None;
    "slurm-rss-sum-overcount", "Scheduler kills on its own accounting (RSS sum counts shared pages many times)", None, [], Some(slurm_rss_sum_overcount::RULE);
    "numpy-object-pandas-conversion", "Object dtype arrays, pandas strings, tolist() and float64 explode", Some("refused-work"), [], Some(numpy_object_pandas_conversion::RULE);
    "hf-tokenizer-cache", "HF fast tokenizers: BPE word cache grows with long unique strings", None, [], None;
    "transform-objects-per-sample", "Transforms/models/plans constructed per sample", None, [], None;
    "nvidia-kernel611-hostalloc-leak", "Linux 6.11.x with NVIDIA driver: cudaMallocHost pages leak in the kernel", None, [], None;
    "nvidia-driver-kernel-leaks", "GPU driver versions leaking kernel memory (slab/vmalloc) or NVML polling leaks", None, [], None;
    "kmem-v1-bug-old-kernel", "cgroup v1 kmem accounting leak on 3.10-era kernels (RHEL/CentOS 7)", None, [], Some(kmem_v1_bug_old_kernel::RULE);
    "machine-core-count-effects", "Leak only on the big machine: everything sized by cores", None, [], None;
    "machine-allocator-env-difference", "Different allocator environment: LD_PRELOAD, MALLOC_*, glibc vs musl, GLIBC_TUNABLES, PYTHONMALLOC", None, [], None;
    "machine-limits-difference", "Different limits by launcher: ssh shell vs systemd vs slurm vs docker vs k8s", None, [], None;
    "machine-cgroup-version-difference", "cgroup v1 vs v2 vs none: other counters, other kill behaviour", None, [], None;
    "machine-library-build-difference", "Different builds: MKL vs OpenBLAS, libgomp vs libiomp5, cu118 vs cu121, ffmpeg/HDF5, Python patch", None, [], None;
    "wsl2-vm-limits", "WSL2/VM balloon: guest memory cap, pinned-memory limits and cache never returned to Windows", None, [], Some(wsl2_vm_limits::RULE);
    "machine-storage-speed-backlog", "Slow storage/network/GPU on one machine changes queue depth and dirty cache", None, [], None;
    "unaccounted-kernel-memory", "Memory used but owned by no process: what to subtract", None, [], Some(unaccounted_kernel_memory::RULE);
};
