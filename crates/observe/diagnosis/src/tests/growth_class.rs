//! The word for the growth of small runs, with the agent and without it.

use super::build::*;
use std::collections::BTreeMap;
use ullage_model::cgroup::CgroupMemoryParts;
use ullage_model::{
    AgentMessage, Bytes, Descriptors, Ending, EventKind, GrowthClass, Measured, Missing, ProcessReading,
    Sample,
};

const SECONDS: u64 = 60;

/// A run of a minute: what the trainer is at each second, and what else is read.
fn run(trainer: impl Fn(u64) -> ProcessReading, more: impl Fn(u64, &mut Sample)) -> Run {
    let mut run = Run::with_trainer();
    for second in 1..=SECONDS {
        let processes = vec![reading(MAIN, 1, "python"), trainer(second)];
        run.tick(second as f64, processes, |sample| more(second, sample));
    }
    run
}

fn word(run: &mut Run) -> GrowthClass {
    run.finish(SECONDS as f64 + 0.5, Ending::Exited(0));
    run.verdict().growth.unwrap().class
}

fn still(_: u64) -> ProcessReading {
    reading(TRAINER, MAIN, "python")
}

/// The trainer with so many MiB more than at rest: private, of files, of shared memory, in swap.
fn with(anonymous: u64, file: u64, shared: u64, swap: u64) -> ProcessReading {
    let mut reading = still(0);
    if let Measured::Known(memory) = &mut reading.memory {
        memory.anonymous = Bytes((200 + anonymous) * MIB);
        memory.file = Bytes((100 + file) * MIB);
        memory.shared = Bytes((1 + shared) * MIB);
        memory.swap = Bytes(swap * MIB);
    }
    reading
}

fn memory_reading(run: &mut Run, at: f64, figures: &[(&str, u64)]) {
    let figures: BTreeMap<String, f64> =
        figures.iter().map(|(name, mib)| ((*name).to_owned(), (mib * MIB) as f64)).collect();
    let what =
        EventKind::Agent { id: Some(id(TRAINER)), pid: TRAINER, message: AgentMessage::Memory { figures } };
    run.event(at, what);
}

#[test]
fn without_the_agent_private_growth_is_live_growth_and_cannot_be_distinguished() {
    let mut run = run(|second| with(5 * second, 0, 0, 0), |_, _| {});
    run.finish(SECONDS as f64 + 0.5, Ending::Exited(0));
    let growth = run.verdict().growth.unwrap();
    assert_eq!(growth.class, GrowthClass::LiveGrowth);
    assert!(growth.because.contains("nothing inside the process reported its kind"), "{}", growth.because);
    assert!(
        (280..=300).contains(&(growth.bytes / MIB)) && (growth.per_second - 5.0 * MIB as f64).abs() < 1e5
    );
    assert_eq!(growth.process.unwrap().id, id(TRAINER));
    assert_eq!(growth.until.unwrap().kind, ullage_model::LimitKind::HostMemory);
}

#[test]
fn the_agent_distinguishes_tensors_from_what_the_allocator_holds() {
    let started: &[_] = &[("anonymous", 200), ("malloc_used", 90), ("malloc_free", 1)];
    let with_readings = |end: &[(&str, u64)]| {
        let mut run = run(|second| with(5 * second, 0, 0, 0), |_, _| {});
        memory_reading(&mut run, 1.5, started);
        memory_reading(&mut run, 58.0, end);
        word(&mut run)
    };
    let walked = |used, free, tensors| {
        with_readings(&[
            ("anonymous", 490),
            ("malloc_used", used),
            ("malloc_free", free),
            ("tensors", tensors),
            ("python_large", 2),
        ])
    };
    assert_eq!(walked(378, 3, 280), GrowthClass::LiveTensors);
    assert_eq!(walked(378, 3, 20), GrowthClass::LiveNativeBlocks);
    assert_eq!(walked(110, 271, 0), GrowthClass::FreedButHeld);
}

#[test]
fn mapped_files_and_shared_memory_have_words_of_their_own() {
    assert_eq!(word(&mut run(|second| with(0, 6 * second, 0, 0), |_, _| {})), GrowthClass::MappedFiles);
    let backlog = |second: u64| with(0, 0, 4 * second, 0);
    assert_eq!(word(&mut run(backlog, |_, _| {})), GrowthClass::SharedMemoryBacklog);
}

#[test]
fn what_came_to_rest_was_a_warm_up_or_a_plateau() {
    assert_eq!(word(&mut run(|second| with(10 * second.min(20), 0, 0, 0), |_, _| {})), GrowthClass::WarmUp);
    let late = |second: u64| with(10 * second.clamp(20, 40), 0, 0, 0);
    assert_eq!(word(&mut run(late, |_, _| {})), GrowthClass::Plateau);
    assert_eq!(word(&mut run(still, |_, _| {})), GrowthClass::None);
    let noisy = |second: u64| with(20 * (second % 3), 0, 0, 0);
    assert_eq!(word(&mut run(noisy, |_, _| {})), GrowthClass::None);
}

#[test]
fn handles_that_hold_little_are_the_story_and_others_are_not() {
    let opens = |mib: u64| {
        move |second: u64| {
            let mut reading = with(mib * second, 0, 0, 0);
            let kinds = Measured::Missing(Missing::NotAsked);
            reading.descriptors = Measured::Known(Descriptors { count: 12 + 10 * second, kinds });
            reading
        }
    };
    assert_eq!(word(&mut run(opens(0), |_, _| {})), GrowthClass::FdLeak);
    assert_eq!(word(&mut run(opens(5), |_, _| {})), GrowthClass::LiveGrowth, "half a MiB each");
    let maps = |second: u64| with_maps(with(second, 0, 0, 0), 700 + 300 * second, 0);
    assert_eq!(word(&mut run(maps, |_, _| {})), GrowthClass::MappingLeak);
}

#[test]
fn processes_that_do_not_end_accumulate() {
    let mut run = Run::with_trainer();
    for second in 1..=SECONDS {
        let mut processes = vec![reading(MAIN, 1, "python"), still(0)];
        processes.extend((0..second as i32 / 3).map(|number| reading(1000 + number, MAIN, "python")));
        run.tick(second as f64, processes, |_| {});
    }
    assert_eq!(word(&mut run), GrowthClass::ProcessAccumulation);
}

#[test]
fn swapping_without_growth_is_thrashing() {
    let swaps = |second: u64, sample: &mut Sample| {
        sample.host.swap_in = Measured::Known(1000 * second);
        sample.host.swap_out = Measured::Known(1000 * second);
        if let Measured::Known(memory) = &mut sample.host.memory {
            (memory.swap_total, memory.swap_free) = (Bytes(GIB), Bytes(GIB / 2));
        }
    };
    let swapped = |_| with(0, 0, 0, 100);
    assert_eq!(word(&mut run(swapped, swaps)), GrowthClass::SwapThrash);
    assert_eq!(word(&mut run(|second| with(5 * second, 0, 0, 100), swaps)), GrowthClass::LiveGrowth);
}

#[test]
fn files_that_the_job_read_are_page_cache_and_those_of_others_are_not() {
    let cached = |second: u64, sample: &mut Sample| {
        if let Measured::Known(memory) = &mut sample.host.memory {
            memory.cached = Bytes((500 + 10 * second) * MIB);
        }
    };
    assert_eq!(word(&mut run(still, cached)), GrowthClass::None, "nothing says that it is this job's");
    let mut reads = run(still, cached);
    memory_reading(&mut reads, 1.5, &[("anonymous", 200), ("io_disk", 20)]);
    memory_reading(&mut reads, 58.0, &[("anonymous", 200), ("io_disk", 520)]);
    assert_eq!(word(&mut reads), GrowthClass::PageCache);
    let mut leaks = run(|second| with(5 * second, 0, 0, 0), cached);
    memory_reading(&mut leaks, 58.0, &[("anonymous", 490), ("io_disk", 520)]);
    assert_eq!(word(&mut leaks), GrowthClass::LiveGrowth, "a leak that reads files is a leak");
}

#[test]
fn what_others_of_the_cgroup_read_is_no_page_cache_of_the_job() {
    let beside = |second: u64, sample: &mut Sample| {
        let file = Bytes(10 * second * MIB);
        let mut job = group("/job", (300 + 10 * second) * MIB, 0, 0, 0);
        if let Measured::Known(memory) = &mut job.memory {
            let parts =
                CgroupMemoryParts { anonymous: Bytes(300 * MIB), file, ..CgroupMemoryParts::default() };
            memory.parts = Measured::Known(parts);
        }
        sample.cgroups = vec![job];
    };
    assert_eq!(word(&mut run(still, beside)), GrowthClass::PageCache, "nobody says how much the job read");
    for (read, expected) in [(25, GrowthClass::None), (700, GrowthClass::PageCache)] {
        let mut reads = run(still, beside);
        memory_reading(&mut reads, 1.5, &[("anonymous", 200), ("io_disk", 20)]);
        memory_reading(&mut reads, 58.0, &[("anonymous", 200), ("io_disk", read)]);
        assert_eq!(word(&mut reads), expected);
    }
}

#[test]
fn too_little_is_no_word() {
    let mut run = Run::new();
    run.tick(0.5, vec![reading(MAIN, 1, "python")], |_| {});
    run.finish(0.6, Ending::Exited(0));
    assert_eq!(run.verdict().growth, None);
}
