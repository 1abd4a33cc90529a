//! The parsers of the kernel's files.

use std::hint::black_box;
use ullage_kernel::{cgroup, host, process};
use ullage_model::process::DescriptorKinds;

pub(crate) fn process_stat(bytes: &[u8]) {
    let _ = black_box(process::stat::parse_stat(bytes));
    let _ = black_box(process::schedstat::parse_schedstat(bytes));
}

pub(crate) fn process_status(bytes: &[u8]) {
    let _ = black_box(process::status::parse_status(bytes));
    black_box(process::status::parse_innermost_pid(bytes));
}

/// The file counted whole and in chunks, cut where the first byte says, must give the same.
pub(crate) fn process_maps(bytes: &[u8]) {
    let (cut, file) = bytes.split_first().map_or((1, bytes), |(cut, rest)| (usize::from(*cut).max(1), rest));
    let mut counter = process::maps::MapsCounter::default();
    for chunk in file.chunks(cut) {
        counter.push(chunk);
    }
    assert_eq!(counter.finish(), process::maps::parse_maps(file), "cut every {cut} bytes");
    let segments = |cut: usize| {
        let mut found = Vec::new();
        let mut maps = process::shared_maps::SharedMaps::new(&[0x1b]);
        for chunk in file.chunks(cut) {
            maps.push(chunk, &mut |segment: process::shared_maps::SharedMapping<'_>| {
                found.push((segment.kind, segment.inode, segment.name.to_vec()));
            });
        }
        found
    };
    assert_eq!(segments(cut), segments(file.len().max(1)), "cut every {cut} bytes");
    let mut areas = process::areas::AreaParser::default();
    areas.push(file);
    let whole = areas.finish();
    let mut areas = process::areas::AreaParser::default();
    file.chunks(cut).for_each(|chunk| areas.push(chunk));
    assert_eq!(areas.finish(), whole, "cut every {cut} bytes");
    black_box(process::pagemap::parse_pagemap(file).count());
}

pub(crate) fn process_limits(bytes: &[u8]) {
    let _ = black_box(process::limits::parse_limits(bytes));
}

pub(crate) fn process_cgroup(bytes: &[u8]) {
    black_box(process::cgroup::parse_cgroup(bytes));
    black_box(process::cgroup::lines_of_interest(bytes));
}

pub(crate) fn process_links(bytes: &[u8]) {
    let mut kinds = DescriptorKinds::default();
    for link in bytes.split(|byte| *byte == b'\n') {
        process::descriptors::parse_descriptor_link(link, &mut kinds);
        black_box(process::links::parse_namespace_link(link));
        black_box(process::segment_names::pid_in_name(link));
    }
}

pub(crate) fn process_command_line(bytes: &[u8]) {
    black_box(process::command_line::parse_command_line(bytes));
    black_box(process::command_line::parse_environment_variable(bytes, "RANK"));
}

pub(crate) fn cgroup_v1(bytes: &[u8]) {
    let _ = black_box(cgroup::v1::parse_memory_stat_v1(bytes));
    let _ = black_box(cgroup::parse_limit_v1(bytes));
    let _ = black_box(cgroup::v2::parse_event_count(bytes, "oom_kill"));
}

pub(crate) fn cgroup_v2(bytes: &[u8]) {
    let _ = black_box(cgroup::v2::parse_memory_stat_v2(bytes));
    let _ = black_box(cgroup::parse_limit(bytes));
    let _ = black_box(cgroup::v2::parse_event_count(bytes, "max"));
}

pub(crate) fn cgroup_procs(bytes: &[u8]) {
    black_box(cgroup::procs::parse_cgroup_procs(bytes));
}

pub(crate) fn host_meminfo(bytes: &[u8]) {
    let _ = black_box(host::meminfo::parse_meminfo(bytes));
}

pub(crate) fn host_vmstat(bytes: &[u8]) {
    black_box(host::vmstat::parse_vmstat(bytes));
}

pub(crate) fn host_pressure(bytes: &[u8]) {
    let _ = black_box(host::pressure::parse_pressure(bytes));
}

pub(crate) fn host_stat(bytes: &[u8]) {
    let _ = black_box(host::stat::parse_forks(bytes));
}

pub(crate) fn host_sysctl(bytes: &[u8]) {
    let _ = black_box(host::sysctl::parse_number(bytes));
    let _ = black_box(host::sysctl::parse_file_nr(bytes));
    let _ = black_box(host::sysctl::parse_choice(bytes));
    if let Ok(text) = std::str::from_utf8(bytes) {
        black_box(host::machine::parse_kernel_release(text));
        black_box(host::machine::parse_core_list(text));
    }
}

pub(crate) fn host_mountinfo(bytes: &[u8]) {
    let mounts = host::mountinfo::parse_mountinfo(bytes);
    for mount in mounts.iter().take(20) {
        black_box(host::mountinfo::is_visible(&mounts, mount));
    }
}

pub(crate) fn host_sysvipc(bytes: &[u8]) {
    let _ = black_box(host::sysvipc::parse_sysv_shm(bytes));
}

/// Each line is a record, and all go through one joiner.
pub(crate) fn host_kmsg(bytes: &[u8]) {
    let mut joiner = host::kmsg::OomJoiner::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(record) = host::kmsg::parse_kernel_record(line) {
            black_box(joiner.push(record));
        }
    }
    black_box(joiner.take_unfinished());
}
