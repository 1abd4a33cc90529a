//! The sampler on a machine that a test writes: limits that near, groups, roles, ends, what cannot be read.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use ullage_model::{
    AgentMessage, At, CgroupVersion, ClockTicks, Ending, EventKind, Limit, Measured, Missing, OomConstraint,
    PageKind, ProcessId, Role,
};
use ullage_sampler::{Sampler, SamplerSettings};
use ullage_testing::fake_root::{anonymous_maps, torch_maps};
use ullage_testing::FakeRoot;

const MAIN: ProcessId = ProcessId { pid: 10, start: ClockTicks(100) };

/// With more CPU than by default, and none of the other tests': what is read must not depend on how fast the machine is.
fn sampler(fake: &FakeRoot) -> Sampler {
    let settings = SamplerSettings {
        reaper: Some(5),
        cpu_share: 0.2,
        whole_process: false,
        ..SamplerSettings::default()
    };
    Sampler::new(fake.root(), settings, MAIN)
}

fn seconds(seconds: f64) -> At {
    At::from_seconds(seconds)
}

#[test]
fn mappings_are_counted_at_first_sight_and_then_only_when_signs_move() {
    let fake = FakeRoot::new();
    // A tenth of the usual limit: to read 60,000 takes an emulated machine so long that its next look has to wait.
    fake.file("proc/sys/vm/max_map_count", "6553\n");
    fake.process(10).start(100).maps(anonymous_maps(300)).write();
    let mut sampler = sampler(&fake);
    let first = sampler.tick(seconds(0.0)).sample.processes[0].mappings;
    assert_eq!(first.as_known().unwrap().count, 300);
    let counted_again = (1..200)
        .filter(|&at| sampler.tick(seconds(f64::from(at))).sample.processes[0].mappings.known().is_some())
        .count();
    // /dev/shm of the fixture is a folder of this machine, so that its inodes may move: every 30 s then.
    assert!(counted_again <= 10, "{counted_again}");
    // 6,000 shared pages more: as many mappings, as far as can be told.
    fake.process(10).start(100).memory(10_000, 24_000, 124_000).maps(torch_maps(6030)).write();
    let moved = sampler.tick(seconds(200.0));
    let mappings = moved.sample.processes[0].mappings;
    assert_eq!((mappings.as_known().unwrap().count, mappings.as_known().unwrap().torch_shared), (6030, 6030));
    assert!(moved.next_after.as_secs_f64() < 1.0, "a limit is near: {:?}", moved.next_after);
}

#[test]
fn pages_are_surveyed_when_they_moved_and_a_forked_process_learns_what_it_has_alone() {
    const PRESENT: u64 = 1 << 63;
    const EXCLUSIVE: u64 = 1 << 56;
    let fake = FakeRoot::new();
    // 10,000 pages from 0x1000 on; the child has copied the first 4,000, and shares the others with its parent.
    let entries =
        || (0..10_001).map(|page| if page <= 4000 { PRESENT | EXCLUSIVE } else { PRESENT }).collect();
    let pages = |pid: i32| {
        let process = fake.process(pid).program(7).memory(40_000, 0, 100_000);
        process.maps("1000-2711000 rw-p 00000000 00:00 0 \n".into()).pagemap(entries())
    };
    pages(10).start(100).write();
    pages(11).parent(10).start(200).write();
    let mut sampler = sampler(&fake);
    assert_eq!(sampler.tick(seconds(0.0)).sample.survey, [], "it has only begun");
    pages(11).parent(10).start(200).faults(4100).write();
    let sample = sampler.tick(seconds(1.0)).sample;
    assert_eq!(sample.processes[0].exclusive, Measured::Missing(Missing::NotAsked), "nobody's child");
    let copied = sample.processes[1].exclusive.known().unwrap();
    let off = copied.bytes.0.abs_diff(4000 * 4096);
    assert!(off <= 100 * 4096 && off <= copied.error.0.max(40 * 4096), "{copied:?}");
    let job = sample.survey[0];
    assert_eq!((job.of, job.kind), (None, PageKind::LargeBlocks));
    let off = job.bytes.0.abs_diff(14_000 * 4096);
    assert!(off <= 200 * 4096, "4,000 in each, and 6,000 in both: {job:?}");
    let child = sample.survey.iter().find(|row| row.of.is_some_and(|id| id.pid == 11)).unwrap();
    assert!(child.beside_own.0 > 3900 * 4096 && child.beside_shared.0 == 0, "{child:?}");
    assert_eq!(sampler.tick(seconds(2.5)).sample.survey, [], "nothing has moved");
}

#[test]
fn sizes_are_read_again_when_stat_moved_and_after_a_while() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).memory(1000, 0, 9000).write();
    let stat = std::fs::read(fake.path("proc/10/stat")).unwrap();
    let mut sampler = sampler(&fake);
    let mut anonymous = |at: f64| {
        let tick = sampler.tick(seconds(at));
        tick.sample.processes[0].memory.known().unwrap().anonymous.0 / 1024
    };
    assert_eq!(anonymous(0.0), 1000);
    // What only `status` tells moves (pages of one kind for as many of another).
    fake.process(10).start(100).memory(800, 0, 9000).write();
    fake.file("proc/10/stat", &stat);
    assert_eq!(anonymous(1.0), 1000);
    assert_eq!(anonymous(16.0), 800, "15 s at most");
    fake.process(10).start(100).memory(600, 0, 9000).write();
    assert_eq!(anonymous(17.0), 600, "resident pages moved");
    fake.process(10).start(100).memory(400, 0, 9000).faults(7).write();
    fake.file("proc/10/stat", String::from_utf8(stat).unwrap().replace(" 0 0 0 0 5 5 ", " 9 0 0 0 5 5 "));
    assert_eq!(anonymous(18.0), 400, "it faulted");
}

#[test]
fn a_pace_that_the_budget_does_not_afford_is_reported_once() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    let settings = SamplerSettings {
        reaper: Some(5),
        cpu_share: 1e-6,
        whole_process: false,
        ..SamplerSettings::default()
    };
    let mut sampler = Sampler::new(fake.root(), settings, MAIN);
    let mut reported = 0;
    for at in [0.0, 10.0, 50.0] {
        let tick = sampler.tick(seconds(at));
        reported += tick
            .events
            .iter()
            .filter(|event| matches!(&event.what, EventKind::NotSeen { text } if text.contains("less often")))
            .count();
        let limit = if at < 1.0 { 0.0..=1.1 } else { 26.9..=33.1 };
        assert!(limit.contains(&tick.next_after.as_secs_f64()), "{:?} after {at} s", tick.next_after);
    }
    assert_eq!(reported, 1);
}

#[test]
fn the_mappings_of_forked_processes_are_counted_first_while_half_of_the_allowance_is_there() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).program(7).maps(anonymous_maps(100)).write();
    fake.process(11).parent(10).start(200).program(7).maps(anonymous_maps(100)).write();
    fake.process(12).parent(10).start(200).program(8).maps(anonymous_maps(100)).write();
    let settings = SamplerSettings { reaper: Some(5), whole_process: false, ..SamplerSettings::default() };
    let counted = |sampler: &mut Sampler, at: f64| {
        let tick = sampler.tick(seconds(at));
        let of = tick.sample.processes.iter().filter(|process| process.mappings.known().is_some());
        of.map(|process| process.id.pid).collect::<Vec<_>>()
    };
    assert_eq!(counted(&mut Sampler::new(fake.root(), settings.clone(), MAIN), 0.0), [10, 11, 12]);
    // What this thread takes counts as the cost of watching.
    let cpu = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_nsec;
    while cpu() < 170_000_000 {
        std::hint::black_box(fake.root());
    }
    let mut late = Sampler::new(fake.root(), settings, MAIN);
    assert_eq!(counted(&mut late, 0.0), [10, 12]);
    assert!(counted(&mut late, 20.0).contains(&11), "20 s earn a third of the allowance");
}

#[test]
fn descriptor_links_are_read_when_the_count_moved() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    let mut sampler = sampler(&fake);
    let few = sampler.tick(seconds(0.0)).sample.processes[0].descriptors.as_known().unwrap().clone();
    assert_eq!((few.count, few.kinds), (3, Measured::Missing(Missing::NotAsked)));
    let torch = (0..900).map(|n| format!("/dev/shm/torch_1_2_{n} (deleted)")).collect();
    // In another thread: what this one takes counts as the cost of watching.
    std::thread::scope(|scope| {
        scope.spawn(|| fake.process(10).start(100).descriptors(torch).write()).join().unwrap()
    });
    let many = sampler.tick(seconds(1.0)).sample.processes[0].descriptors.as_known().unwrap().clone();
    assert_eq!((many.count, many.kinds.known().unwrap().torch_shared), (900, 900));
}

#[test]
fn every_ancestor_of_v1_and_v2_is_read_and_stays_after_the_process() {
    let fake = FakeRoot::new();
    fake.cgroup_mounts();
    fake.cgroup_v1_memory("", 9000, 0x7FFF_FFFF_FFFF_F000, 0, 0);
    fake.cgroup_v1_memory("/a", 8000, 1 << 45, 3, 0);
    fake.cgroup_v1_memory("/a/b", 7000, 8192, 0, 1);
    fake.cgroup_pids("pids", "/a", 7, "max", 0).cgroup_pids("unified", "/s", 5, "12", 2);
    fake.cgroup_v2_memory("/s", 4096, "max", 1);
    fake.process(10).start(100).cgroup("4:memory:/a/b\n8:pids:/a\n0::/s\n").write();
    let mut sampler = sampler(&fake);
    let groups = sampler.tick(seconds(0.0)).sample.cgroups;
    let of =
        |path: &str, version| groups.iter().find(|g| g.path == path && g.version == version).unwrap().clone();
    assert_eq!(groups.len(), 4, "the top of v2 has neither controller");
    let leaf = of("/a/b", CgroupVersion::V1).memory.known().unwrap();
    assert_eq!((leaf.limit, leaf.oom_kills), (Limit::At(8192), Measured::Known(1)));
    assert_eq!(leaf.swap, Measured::Missing(Missing::KernelTooOld), "no memsw files");
    let middle = of("/a", CgroupVersion::V1);
    assert_eq!(middle.memory.known().unwrap().limit, Limit::At(1 << 45), "above the machine, still a number");
    assert_eq!(middle.memory.known().unwrap().limit_hits, Measured::Known(3));
    assert_eq!(middle.pids.known().unwrap().limit, Limit::Unlimited);
    assert_eq!(of("/", CgroupVersion::V1).memory.known().unwrap().limit, Limit::Unlimited);
    let v2 = of("/s", CgroupVersion::V2);
    assert_eq!(
        (v2.pids.known().unwrap().limit, v2.pids.known().unwrap().refused),
        (Limit::At(12), Measured::Known(2))
    );
    assert_eq!(v2.memory.known().unwrap().oom_kills_subtree, Measured::Known(1));

    fake.remove(10);
    fake.cgroup_v1_memory("/a/b", 0, 8192, 0, 2);
    let after = sampler.final_sample(seconds(1.0));
    let leaf = after.sample.cgroups.iter().find(|g| g.path == "/a/b").unwrap();
    assert_eq!(leaf.memory.known().unwrap().oom_kills, Measured::Known(2));
    assert_eq!(after.ended[0].id, MAIN);
}

#[test]
fn a_zombie_reports_how_it_ended_and_has_no_memory() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    fake.process(11).parent(10).write();
    let mut sampler = sampler(&fake);
    sampler.tick(seconds(0.0));
    fake.process(11).parent(10).zombie(9).write();
    let tick = sampler.tick(seconds(1.0));
    let reading = tick.sample.processes.iter().find(|process| process.id.pid == 11).unwrap();
    assert_eq!(reading.memory, Measured::Missing(Missing::Vanished));
    assert_eq!(sampler.zombie_ending(reading.id), Some(Measured::Known(Ending::Signaled(9))));
    fake.remove(11);
    let ended = sampler.tick(seconds(2.0)).ended;
    assert_eq!(ended[0].ending, Measured::Known(Ending::Signaled(9)));
}

#[test]
fn a_process_that_hides_its_files_is_missing_not_zero() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    for file in ["status", "maps", "limits"] {
        std::fs::remove_file(fake.path(&format!("proc/10/{file}"))).unwrap();
    }
    std::fs::remove_dir_all(fake.path("proc/10/fd")).unwrap();
    let tick = sampler(&fake).tick(seconds(0.0));
    let reading = &tick.sample.processes[0];
    assert!(reading.memory.missing().is_some() && reading.mappings.missing().is_some());
    assert!(reading.descriptors.missing().is_some());
}

#[test]
fn a_kernel_log_out_of_reach_is_said_once() {
    let fake = FakeRoot::new();
    std::fs::remove_file(fake.path("dev/kmsg")).unwrap();
    fake.process(10).start(100).write();
    let mut sampler = sampler(&fake);
    let said = |tick: ullage_sampler::Tick| {
        tick.events.iter().filter(|event| matches!(event.what, EventKind::NotSeen { .. })).count()
    };
    assert_eq!(said(sampler.tick(seconds(0.0))), 1);
    assert_eq!(said(sampler.tick(seconds(1.0))), 0);
}

#[test]
fn kernel_news_become_events() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    let mut sampler = sampler(&fake);
    fake.kernel_log("4,1,2,-;cgroup: fork rejected by pids controller in /x");
    // One record a read, as the device gives them: the fixture's read takes all that was appended.
    let events = sampler.tick(seconds(0.0)).events;
    assert!(events
        .iter()
        .any(|e| matches!(&e.what, EventKind::KernelForkRejected { cgroup } if cgroup == "/x")));
    fake.kernel_log("3,2,3,-;Memory cgroup out of memory: Killed process 10 (python3) total-vm:1kB, anon-rss:2kB, file-rss:0kB, shmem-rss:0kB");
    let events = sampler.final_sample(seconds(1.0)).events;
    let kill = events.iter().find_map(|event| match &event.what {
        EventKind::KernelOomKill(kill) => Some(kill),
        _ => None,
    });
    assert_eq!((kill.unwrap().pid, kill.unwrap().constraint), (10, OomConstraint::Cgroup));
}

#[test]
fn the_agent_decides_a_role_and_exec_makes_another_program() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).program(7).write();
    fake.process(11).parent(10).start(200).program(7).write();
    let mut sampler = sampler(&fake);
    let role = |sampler: &Sampler| sampler.describe(ProcessId { pid: 11, start: ClockTicks(200) }).unwrap().0;
    sampler.tick(seconds(0.0));
    assert_eq!(role(&sampler), Role::Trainer);
    let worker = AgentMessage::Process {
        name: "Process-1".into(),
        target: "torch.utils.data._utils.worker._worker_loop".into(),
        worker: Some(3),
        start_method: Some("fork".into()),
        anonymous: None,
        dataset: None,
        arguments: None,
    };
    sampler.agent_said(11, &worker);
    let events = sampler.tick(seconds(1.0)).events;
    assert_eq!(role(&sampler), Role::LoaderWorker(Some(3)));
    assert!(events.iter().any(|event| matches!(event.what, EventKind::RoleKnown { .. })));
    fake.process(11).parent(10).start(200).program(8).comm("git").arguments(&["git", "status"]).write();
    let events = sampler.tick(seconds(2.0)).events;
    assert!(events
        .iter()
        .any(|event| matches!(&event.what, EventKind::ProcessSeen { facts } if facts.comm == "git")));
    assert_eq!(role(&sampler), Role::Helper);
}

#[test]
fn several_children_at_once_are_not_called_trainers() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).program(7).write();
    for pid in 11..14 {
        fake.process(pid).parent(10).start(200).program(7).write();
    }
    fake.process(14).parent(10).start(200).program(7).comm("pt_data_worker").write();
    let mut sampler = sampler(&fake);
    sampler.tick(seconds(0.0));
    let role = |pid| sampler.describe(ProcessId { pid, start: ClockTicks(200) }).unwrap().0;
    assert_eq!([role(11), role(12), role(13)], [Role::Other, Role::Other, Role::Other]);
    assert_eq!(role(14), Role::LoaderWorker(None));
}

#[test]
fn a_rank_and_the_jobs_own_program_are_found_through_whatever_started_them() {
    let fake = FakeRoot::new();
    let python = |pid, parent, image, environment: &str| {
        fake.process(pid).parent(parent).start(200).program(image).arguments(&["python", "train.py"]).write();
        fake.file(&format!("proc/{pid}/environ"), environment);
    };
    fake.process(10).start(100).program(1).comm("bash").arguments(&["bash", "run.sh"]).write();
    fake.process(20).parent(10).start(200).program(2).comm("timeout").arguments(&["timeout", "60"]).write();
    python(21, 20, 3, "HOME=/root\0");
    // Two ranks of an MPI, one of them through a shell, and a tool that a rank starts.
    python(30, 10, 4, "OMPI_COMM_WORLD_RANK=0\0");
    fake.process(31).parent(10).start(200).program(5).comm("sh").arguments(&["sh", "-c", "x"]).write();
    fake.file("proc/31/environ", "OMPI_COMM_WORLD_RANK=1\0");
    python(32, 31, 6, "OMPI_COMM_WORLD_RANK=1\0");
    python(33, 32, 7, "OMPI_COMM_WORLD_RANK=1\0");
    let mut sampler = sampler(&fake);
    sampler.tick(seconds(0.0));
    let role =
        |sampler: &Sampler, pid| sampler.describe(ProcessId { pid, start: ClockTicks(200) }).unwrap().0;
    assert_eq!(role(&sampler, 21), Role::Main);
    assert_eq!(role(&sampler, 20), Role::Helper);
    assert_eq!([role(&sampler, 30), role(&sampler, 32)], [Role::Rank(0), Role::Rank(1)]);
    assert_eq!(role(&sampler, 33), Role::Helper, "what a rank starts is none");
    fake.remove(31);
    sampler.tick(seconds(1.0));
    assert_eq!(role(&sampler, 32), Role::Rank(1), "its launcher has gone");
}

#[test]
fn every_process_is_reported_once() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    for pid in 11..20 {
        fake.process(pid).parent(10).comm("sh").arguments(&["sh"]).write();
    }
    let mut sampler = sampler(&fake);
    assert_eq!(sampler.identify(15).map(|id| id.pid), Some(15));
    let seen = |tick: ullage_sampler::Tick| {
        tick.events.iter().filter(|event| matches!(event.what, EventKind::ProcessSeen { .. })).count()
    };
    assert_eq!(seen(sampler.tick(seconds(0.0))), 10);
    assert_eq!(seen(sampler.tick(seconds(1.0))), 0);
}

#[test]
fn a_changed_limit_is_reported() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    let mut sampler = sampler(&fake);
    sampler.tick(seconds(0.0));
    fake.process(10).start(100).nofile(4096).write();
    assert!(sampler.tick(seconds(0.5)).events.is_empty());
    let events = sampler.tick(seconds(1.1)).events;
    let reported = events.iter().any(|event| {
        matches!(&event.what, EventKind::LimitsChanged { limits, .. } if limits.open_files == Limit::At(4096))
    });
    assert!(reported, "{events:?}");
}

#[test]
fn a_process_that_joins_another_cgroup_later_is_followed_there() {
    let fake = FakeRoot::new();
    fake.cgroup_mounts().cgroup_v1_memory("/a", 8000, 1 << 30, 0, 0);
    fake.cgroup_pids("pids", "/a", 7, "max", 0).cgroup_pids("pids", "/small", 3, "4", 0);
    let at = |path: &str| format!("4:memory:/a\n8:pids:{path}\n");
    fake.process(10).start(100).cgroup(&at("/a")).write();
    let mut sampler = sampler(&fake);
    let small = |tick: &ullage_sampler::Tick| {
        tick.sample.cgroups.iter().any(|group| group.path == "/small" && group.pids.known().is_some())
    };
    let reported = |tick: &ullage_sampler::Tick| {
        tick.events.iter().any(|event| {
            matches!(&event.what, EventKind::ProcessSeen { facts } if facts.cgroups.contains(&"8:pids:/small".to_owned()))
        })
    };
    assert!(!small(&sampler.tick(seconds(0.0))));
    fake.process(10).start(100).cgroup(&at("/small")).write();
    let tick = sampler.tick(seconds(0.5));
    assert!(!small(&tick) && !reported(&tick), "not looked at yet");
    let tick = sampler.tick(seconds(1.1));
    assert!(small(&tick) && reported(&tick), "a young process may still be put where it shall run");
    assert!(!reported(&sampler.tick(seconds(7.0))), "once");
    fake.process(10).start(100).cgroup(&at("/a")).write();
    let quiet = (8..30).filter(|at| sampler.tick(seconds(f64::from(*at))).events.iter().any(|event| {
        matches!(&event.what, EventKind::ProcessSeen { facts } if facts.cgroups.contains(&"8:pids:/a".to_owned()))
    }));
    assert_eq!(quiet.count(), 0, "an old one seldom");
}

/// How long to wait after each of these ticks, a second apart, seconds.
fn waits(sampler: &mut Sampler, ticks: usize, mut before: impl FnMut(&mut Sampler, usize)) -> Vec<f64> {
    (0..ticks)
        .map(|tick| {
            before(sampler, tick);
            sampler.tick(seconds(10.0 + tick as f64)).next_after.as_secs_f64()
        })
        .collect()
}

#[test]
fn a_budget_that_others_hold_sets_the_pace() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    let used = |sampler: &mut Sampler, tick: usize| {
        sampler.used_of_budget(seconds(10.0 + tick as f64), 100 * tick as u64, 1000);
    };
    let waits = waits(&mut sampler(&fake), 9, used);
    assert!(waits[0] >= 0.9 && waits[8] <= 0.22, "2 s are left: {waits:?}");
}

#[test]
fn tasks_of_a_user_set_the_pace_unless_he_is_root() {
    for (user, near) in [(1000, true), (0, false)] {
        let fake = FakeRoot::new();
        let add = |pid: i32| {
            fake.process(pid).parent(10).start(10 * pid as u64).write();
            for (file, from, to) in [
                ("status", "Uid:\t0\t0\t0\t0", format!("Uid:\t{user}\t{user}\t{user}\t{user}")),
                ("limits", "96365                96365", "20                   20".into()),
            ] {
                let path = format!("proc/{pid}/{file}");
                let text = std::fs::read_to_string(fake.path(&path)).unwrap();
                assert!(text.contains(from), "{text}");
                fake.file(&path, text.replace(from, &to));
            }
        };
        add(10);
        let waits = waits(&mut sampler(&fake), 9, |_, tick| {
            add(11 + 2 * tick as i32);
            add(12 + 2 * tick as i32);
        });
        assert!(waits[0] >= 0.9 && (waits[8] <= 0.22) == near, "19 of 20 tasks: {waits:?}");
    }
}

#[test]
fn processes_that_are_not_of_the_job_are_ranked_once_and_again_when_memory_is_short() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).write();
    fake.process(900).start(7).comm("indexer").memory(3 << 20, 0, 4 << 20).write();
    fake.process(901).comm("small").memory(1 << 10, 0, 4 << 20).write();
    let mut sampler = sampler(&fake);
    let mut ranked = |at: f64| {
        let events = sampler.tick(seconds(at)).events;
        events.into_iter().find_map(|event| match event.what {
            EventKind::Neighbours(neighbours) => Some(neighbours),
            _ => None,
        })
    };
    assert_eq!(ranked(0.0), None, "the job has not settled");
    let first = ranked(2.0).unwrap();
    let names = |ranked: &ullage_model::Neighbours| {
        ranked.largest.iter().map(|one| (one.name.clone(), one.bytes >> 30)).collect::<Vec<_>>()
    };
    assert_eq!(names(&first), [("indexer".to_owned(), 3)]);
    assert_eq!((first.processes, first.largest[0].id.start), (2, ClockTicks(7)));
    assert_eq!(ranked(60.0), None, "memory is not short");
    fake.meminfo(16 << 20, 1 << 20);
    fake.process(901).comm("small").memory(5 << 20, 0, 6 << 20).write();
    let short = ranked(61.0).unwrap();
    assert_eq!(names(&short), [("small".to_owned(), 5), ("indexer".to_owned(), 3)]);
    assert_eq!(ranked(90.0), None, "no less is available than at the last look");
}
