//! One rule a file, named by its cause; the head of the file is the page that `ullage explain CAUSE` prints.

use crate::rule::Rule;

mod cgroup_leftover_charge;
mod cgroup_sizing_by_host_view;
mod clone3_seccomp_eperm;
mod disk_full_tmp;
mod fd_leak_files_sockets;
mod fork_enomem_large_parent;
mod forkserver_too_many_fds;
mod host_oom_kill;
mod hugetlb_reserved;
mod invisible_child_oom;
mod kmem_slab_growth;
mod kmem_v1_bug_old_kernel;
mod max_map_count_exhausted;
mod memcg_oom_kill;
mod memlock_rdma_registration;
mod memory_high_throttle;
mod nofile_exhausted_shared_tensors;
mod nproc_rlimit;
mod numa_membind_oom;
mod orphan_workers;
mod page_cache_charged;
mod pids_limit_cgroup;
mod refcount_cow_fork_workers;
mod rlimit_as_virtual_memory;
mod shm_full_bytes;
mod shm_no_access;
mod shm_stale_files;
mod shmem_counts_twice_limits;
mod sigbus_file_truncated_or_netfs;
mod slurm_rss_sum_overcount;
mod spawn_forkserver_full_copy;
mod stack_ulimit_thread_stacks;
mod strict_overcommit;
mod swap_thrash;
mod sysv_shm_msg_limits;
mod thp_always_rss_bloat;
mod tmpfs_inodes;
mod unaccounted_kernel_memory;
mod userspace_oom_daemon;
mod worker_import_overhead;
mod wsl2_vm_limits;
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
    stack_ulimit_thread_stacks::RULE,
    clone3_seccomp_eperm::RULE,
    fork_enomem_large_parent::RULE,
    memlock_rdma_registration::RULE,
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
