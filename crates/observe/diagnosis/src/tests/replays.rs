//! Is a job of 30 seconds told the same as one of an hour, and of three days? Each shape is stretched to all of them.
//!
//! What is expected was written down before the first run. Where it differs by length, its line says why.

use super::build::*;
use super::stretched::{Holds, Job, JobTime, Length, CHILD, LENGTHS, LOADED_S};
use ullage_model::cgroup::CgroupMemoryParts;
use ullage_model::host::{HostKernel, HostMemory};
use ullage_model::GrowthClass::{
    self, FdLeak, FreedButHeld, LiveGrowth, MappingLeak, PageCache, Plateau, ProcessAccumulation,
    SharedMemoryBacklog, SwapThrash, WarmUp,
};
use ullage_model::Severity::{self, Fatal, Note, Warning};
use ullage_model::{
    Bytes, CgroupReading, CountsAtFailure, Ending, KernelOomKill, Measured, OomConstraint, Role, Sample,
};

const SEEDS: u64 = 3;

/// A job, and what is to be said of it.
struct Shape {
    name: &'static str,
    /// Of 30 seconds, an hour, three days.
    growth: [GrowthClass; 3],
    /// All findings.
    findings: &'static [(&'static str, Severity)],
    job: fn(&mut Job),
}

const fn shape(
    name: &'static str,
    growth: GrowthClass,
    findings: &'static [(&'static str, Severity)],
    job: fn(&mut Job),
) -> Shape {
    Shape { name, growth: [growth; 3], findings, job }
}

const NOTHING: GrowthClass = GrowthClass::None;
const UNNAMED: &[(&str, Severity)] = &[("unnamed-growth", Warning)];

const SHAPES: &[Shape] = &[
    shape("flat", NOTHING, &[], |job| well(job.private(|_| 500.0))),
    shape("a model that is loaded within seconds", NOTHING, &[], |job| {
        well(job.private(|now| 200.0 + 2000.0 * part(now.at, LOADED_S, LOADED_S + 2.0)));
    }),
    // A start takes no longer because the run does; up to some minutes it is one.
    shape("a start of minutes", NOTHING, &[], |job| {
        let until = (0.08 * job.seconds()).min(300.0);
        well(job.private(|now| 200.0 + 2000.0 * part(now.at, 0.0, until)));
    }),
    // 3 seconds, 6 minutes, 7 hours: no start takes hours.
    Shape {
        name: "a cache that fills in the first tenth",
        growth: [NOTHING, NOTHING, WarmUp],
        findings: &[],
        job: |job| well(job.private(|now| 200.0 + 2000.0 * part(now.x, 0.0, 0.1))),
    },
    shape("a warm-up", WarmUp, &[], |job| well(job.private(|now| 200.0 + 1000.0 * part(now.x, 0.0, 0.4)))),
    shape("a curve that flattens", WarmUp, &[], |job| {
        well(job.private(|now| 200.0 + 1000.0 * (1.0 - (-6.0 * now.x).exp())));
    }),
    shape("a phase in the middle", Plateau, &[], |job| {
        well(job.private(|now| 200.0 + 1000.0 * part(now.x, 0.4, 0.7)));
    }),
    shape("a leak", LiveGrowth, UNNAMED, |job| well(job.private(|now| 200.0 + 900.0 * now.x))),
    shape("a leak after a warm-up", LiveGrowth, UNNAMED, |job| {
        well(job.private(|now| 200.0 + 400.0 * part(now.x, 0.0, 0.15) + 900.0 * now.x));
    }),
    shape("a leak at the end of each epoch", LiveGrowth, UNNAMED, |job| {
        well(job.private(|now| 200.0 + 90.0 * (10.0 * now.x).floor()));
    }),
    shape("a leak below a sawtooth", LiveGrowth, UNNAMED, |job| {
        well(job.private(|now| 200.0 + 900.0 * now.x + 60.0 * (20.0 * now.x).fract()));
    }),
    shape("a sawtooth of epochs", NOTHING, &[], |job| {
        let phase = job.random.unit();
        well(job.private(|now| 300.0 + 600.0 * (6.0 * now.x + phase).fract()));
    }),
    shape("waves of epochs", NOTHING, &[], |job| {
        let phase = job.random.unit();
        let wave = |x: f64| (std::f64::consts::TAU * (40.0 * x + phase)).sin();
        well(job.private(|now| 500.0 + 100.0 * wave(now.x)));
    }),
    shape("workers that end with their epoch, and what they took", NOTHING, &[], |job| {
        job.loader(2, false);
        let role = Role::LoaderWorker(Some(0));
        well(job.generations(&role, (10, 2), |life| Holds::private(100.0 + 300.0 * life)));
    }),
    shape(
        "a worker that is kept, and what it takes",
        LiveGrowth,
        &[("persistent-workers-growth", Warning)],
        |job| {
            job.loader(1, true);
            let end = job.seconds();
            well(job.child(Role::LoaderWorker(Some(0)), end, |now| Holds::private(100.0 + 600.0 * now.x)));
        },
    ),
    shape("parts of a job, each in a process", NOTHING, &[], |job| {
        well(
            job.generations(&Role::Other, (20, 1), |life| Holds::private(50.0 + 40.0 * part(life, 0.1, 0.3))),
        );
    }),
    shape("a leak that ended with its process", NOTHING, &[], |job| {
        let end = 0.8 * job.seconds();
        well(job.child(Role::Other, end, |now| Holds::private(100.0 + 900.0 * now.x)));
    }),
    shape("a leak in a process that ends a moment before the job", LiveGrowth, UNNAMED, |job| {
        let end = job.seconds() - 3.0;
        well(job.child(Role::Other, end, |now| Holds::private(100.0 + 900.0 * now.x)));
    }),
    shape("children that stay", ProcessAccumulation, &[], |job| {
        for time in job.times() {
            let mut all = vec![job.process(MAIN, 1, 0.0, time, Holds::private(400.0))];
            for child in 1..=(24.0 * time.x) as i32 {
                let born = f64::from(child) / 24.0 * job.seconds();
                all.push(job.process(CHILD + child, MAIN, born, time, Holds::private(30.0)));
            }
            job.run.tick(time.at, all, |_| {});
        }
        well(job);
    }),
    shape("memory that malloc keeps", FreedButHeld, &[("glibc-arenas-per-core", Note)], |job| {
        let whole = job.seconds();
        let private = move |at: f64| 200.0 + 800.0 * part(at / whole, 0.0, 0.5);
        job.private(|now| private(now.at));
        job.readings(whole, |at| {
            let freed = if at > 0.5 * whole { 780.0 } else { 2.0 };
            retained(private(at), private(at) - freed - 100.0, freed)
        });
        well(job.in_order());
    }),
    // The last look is six seconds old, or a fifteenth of the run.
    shape("memory that malloc kept, and gave back since", NOTHING, &[], |job| {
        let whole = job.seconds();
        let trimmed = (0.93 * whole).min(whole - 6.0);
        let private = move |at: f64| 200.0 + 800.0 * part(at / whole, 0.0, 0.5);
        job.private(|now| if now.at > trimmed { 210.0 } else { private(now.at) });
        job.readings(0.6 * trimmed, |at| retained(private(at), private(at) - 102.0, 2.0));
        job.says(trimmed, retained(1000.0, 120.0, 780.0));
        well(job.in_order());
    }),
    shape("a buffer that is touched as the program starts", NOTHING, &[], |job| {
        well(job.main(|now| touches(900.0 * part(now.at, LOADED_S, LOADED_S + 2.0)), |_, _| {}));
    }),
    shape(
        "a buffer that is touched bit by bit",
        LiveGrowth,
        &[("large-preallocation-lazy-touch", Note)],
        |job| {
            well(job.main(|now| touches(900.0 * now.x), |_, _| {}));
        },
    ),
    shape("shared memory that nobody gives back", SharedMemoryBacklog, UNNAMED, |job| {
        let mib = |now: JobTime| 2000.0 * now.x;
        let holds = |now: JobTime| Holds { shared: 1.0 + mib(now), ..Holds::private(300.0) };
        well(job.main(holds, |now, sample| has_shm(sample, mib(now), 4000.0)));
    }),
    shape("a /dev/shm that fills", SharedMemoryBacklog, &[("shm-full-bytes", Fatal)], |job| {
        let mib = |now: JobTime| 2000.0 * now.x;
        let holds = |now: JobTime| Holds { shared: 1.0 + mib(now), ..Holds::private(300.0) };
        job.main(holds, |now, sample| has_shm(sample, mib(now), 2000.0));
        let text =
            "unable to allocate shared memory(shm) for file </torch_100_358_8>: No space left on device (28)";
        let counts = CountsAtFailure {
            shm_used: Some(1996 * MIB),
            shm_size: Some(2000 * MIB),
            shm_inodes_used: Some(40),
            shm_inodes: Some(1 << 20),
            ..CountsAtFailure::default()
        };
        fails(job, text, counts);
    }),
    shape("mappings on their way to the limit", MappingLeak, &[], |job| {
        well(job.main(|now| maps(now, 45_000.0), |_, _| {}));
    }),
    shape("mappings that meet the limit", MappingLeak, &[("max-map-count-exhausted", Fatal)], |job| {
        job.main(|now| maps(now, 64_830.0), |_, _| {});
        let text = "unable to mmap 320 bytes from file </torch_100_387_6397>: Cannot allocate memory (12)";
        let counts = CountsAtFailure {
            mappings: Some(65_530),
            mappings_torch: Some(64_800),
            max_map_count: Some(65_530),
            ..CountsAtFailure::default()
        };
        fails(job, text, counts);
    }),
    shape("descriptors on their way to the limit", FdLeak, &[], |job| {
        let holds =
            |now: JobTime| Holds { descriptors: 12 + (800.0 * now.x) as u64, ..Holds::private(300.0) };
        well(job.main(holds, |_, _| {}));
    }),
    shape("threads that are never ended", NOTHING, &[("threads-per-task", Warning)], |job| {
        let holds = |now: JobTime| Holds { threads: 4 + (400.0 * now.x) as u32, ..Holds::private(300.0) };
        well(job.main(holds, |_, _| {}));
    }),
    shape("files that are read", PageCache, &[], |job| {
        well(job.main(
            |_| Holds::private(300.0),
            |now, sample| {
                sample.cgroups = vec![charged(400.0, 100.0 + 2000.0 * now.x, 0.0, 0.0, 0)];
            },
        ));
    }),
    shape("pages that go to swap and come back", SwapThrash, &[("swap-thrash", Warning)], |job| {
        let whole = job.seconds();
        let holds = |_: JobTime| Holds { swap: 100.0, ..Holds::private(300.0) };
        job.main(holds, move |now, sample| {
            let lasted = (now.at - 0.4 * whole).max(0.0);
            has_swap(sample);
            sample.host.swap_in = Measured::Known((1000.0 * lasted) as u64);
            sample.host.swap_out = Measured::Known((1000.0 * lasted) as u64);
            sample.host.memory_stall_some_us = Measured::Known((5e5 * lasted) as u64);
            sample.processes[0].major_faults = (100.0 * lasted) as u64;
        });
        well(job);
    }),
    // A machine that is never short of memory moves some pages as well.
    shape("pages that trickle to swap and back", NOTHING, &[], |job| {
        let holds = |_: JobTime| Holds { swap: 100.0, ..Holds::private(300.0) };
        job.main(holds, |now, sample| {
            has_swap(sample);
            sample.host.swap_in = Measured::Known((2.0 * now.at) as u64);
            sample.host.swap_out = Measured::Known((2.0 * now.at) as u64);
            sample.host.memory_stall_some_us = Measured::Known((1e3 * now.at) as u64);
            sample.processes[0].major_faults = now.at as u64;
        });
        well(job);
    }),
    shape("a leak that the kernel ends", LiveGrowth, &[("memcg-oom-kill", Fatal)], |job| {
        let mib = |now: JobTime| 200.0 + 1740.0 * now.x;
        job.main(
            |now| Holds::private(mib(now)),
            |now, sample| {
                sample.cgroups = vec![charged(2048.0, 0.0, 0.0, mib(now) + 100.0, 0)];
            },
        );
        let end = job.seconds();
        job.run.ended(end, MAIN, Ending::Signaled(9));
        job.run.tick(end + 0.2, vec![], |sample| sample.cgroups = vec![charged(2048.0, 0.0, 0.0, 1.0, 1)]);
        job.run.finish(end + 0.3, Ending::Signaled(9));
    }),
    shape(
        "a worker that the kernel ends, and the job with it",
        LiveGrowth,
        &[("memcg-oom-kill", Fatal)],
        |job| {
            let end = job.seconds();
            job.run.process(0.1, CHILD, MAIN, Role::LoaderWorker(Some(0)), limits(), 1000);
            let mib = |now: JobTime| 100.0 + 1340.0 * now.x;
            for time in job.times() {
                let all = vec![
                    job.process(MAIN, 1, 0.0, time, Holds::private(400.0)),
                    job.process(CHILD, MAIN, 0.1, time, Holds::private(mib(time))),
                ];
                job.run.tick(time.at, all, |sample| {
                    sample.cgroups = vec![charged(2048.0, 0.0, 0.0, mib(time) + 600.0, 0)];
                });
            }
            job.run.ended(end, CHILD, Ending::Signaled(9));
            job.run.facts.agent = true;
            let text = "DataLoader worker (pid(s) 300) exited unexpectedly";
            job.run.exception(end + 1.0, MAIN, raised("RuntimeError", text));
            job.run
                .tick(end + 1.2, vec![], |sample| sample.cgroups = vec![charged(2048.0, 0.0, 0.0, 1.0, 1)]);
            job.run.finish(end + 1.3, Ending::Exited(1));
        },
    ),
    shape(
        "shared memory that meets the limit of a cgroup",
        SharedMemoryBacklog,
        &[("memcg-oom-kill", Fatal), ("shmem-counts-twice-limits", Fatal)],
        |job| {
            let mib = |now: JobTime| 1600.0 * now.x;
            job.main(
                |now| Holds { shared: 1.0 + mib(now), ..Holds::private(300.0) },
                |now, sample| {
                    has_shm(sample, mib(now), 8000.0);
                    sample.cgroups = vec![charged(2048.0, 0.0, mib(now), 440.0, 0)];
                },
            );
            let end = job.seconds();
            job.run.ended(end, MAIN, Ending::Signaled(9));
            // /dev/shm goes with the container.
            job.run.tick(end + 0.2, vec![], |sample| {
                sample.cgroups = vec![charged(2048.0, 0.0, 0.0, 1.0, 1)];
            });
            job.run.finish(end + 0.3, Ending::Signaled(9));
        },
    ),
    shape("a leak that a daemon ends", LiveGrowth, &[("userspace-oom-daemon", Fatal)], |job| {
        job.run.facts.machine.memory_daemons = Measured::Known(vec!["earlyoom".into()]);
        runs_out(job, 0.0);
        let end = job.seconds();
        job.run.finish(end, Ending::Signaled(15));
    }),
    shape(
        "a machine that runs out beside huge pages",
        LiveGrowth,
        &[("host-oom-kill", Fatal), ("hugetlb-reserved", Fatal)],
        |job| {
            runs_out(job, 24.0);
            let end = job.seconds();
            let kill = KernelOomKill {
                constraint: OomConstraint::Host,
                pid: MAIN,
                task: "python".into(),
                ..KernelOomKill::default()
            };
            job.run.kernel_kill(end + 0.1, kill);
            job.run.finish(end, Ending::Signaled(9));
        },
    ),
];

/// How much of the way from one moment to another is gone.
fn part(now: f64, from: f64, to: f64) -> f64 {
    ((now - from) / (to - from)).clamp(0.0, 1.0)
}

fn well(job: &mut Job) {
    let end = job.seconds() + 0.1;
    job.run.finish(end, Ending::Exited(0));
}

/// An exception leaves main, and the run ends with it.
fn fails(job: &mut Job, text: &str, counts: CountsAtFailure) {
    job.run.facts.agent = true;
    let mut report = raised("RuntimeError", text);
    report.counts = counts;
    let end = job.seconds();
    job.run.exception(end, MAIN, report).finish(end + 0.2, Ending::Exited(1));
}

/// Main with a buffer of a GiB, of which it has touched so much.
fn touches(mib: f64) -> Holds {
    Holds { reserved: 1224.0, ..Holds::private(200.0 + mib) }
}

/// What the agent says of malloc.
fn retained(private: f64, used: f64, free: f64) -> [(&'static str, f64); 6] {
    let free_main = 1.0;
    [
        ("anonymous", private),
        ("malloc_used", used),
        ("malloc_free", free),
        ("malloc_free_main", free_main),
        ("malloc_arenas", 9.0),
        ("malloc_trimmable", free - free_main),
    ]
}

fn has_swap(sample: &mut Sample) {
    if let Measured::Known(memory) = &mut sample.host.memory {
        (memory.swap_total, memory.swap_free) = (Bytes(GIB), Bytes(GIB / 2));
    }
}

fn has_shm(sample: &mut Sample, used: f64, size: f64) {
    let bytes = |mib: f64| (mib * MIB as f64) as u64;
    sample.filesystems = vec![shm(bytes(used), bytes(size), 40, 1 << 20)];
}

/// Mappings of a page each, so many at the end.
fn maps(now: JobTime, most: f64) -> Holds {
    Holds { mappings: most * now.x, ..Holds::private(300.0) }
}

/// The job's cgroup: its limit, and what it holds of files, of shared memory and of its own, MiB.
fn charged(limit: f64, file: f64, shared: f64, anonymous: f64, kills: u64) -> CgroupReading {
    let bytes = |mib: f64| (mib * MIB as f64) as u64;
    let limit = if file > 0.0 { 0 } else { bytes(limit) };
    let all = bytes(file + shared + anonymous);
    let mut group = group("/job", all.max(300 * MIB), limit, kills, 99 * kills);
    if let Measured::Known(memory) = &mut group.memory {
        memory.parts = Measured::Known(CgroupMemoryParts {
            anonymous: Bytes(bytes(anonymous.max(300.0))),
            file: Bytes(bytes(file + shared)),
            shared: Bytes(bytes(shared)),
            ..CgroupMemoryParts::default()
        });
    }
    group
}

/// Main takes what the machine's 64 GiB have but for these, and 1.5 GiB are left.
fn runs_out(job: &mut Job, huge_pages: f64) {
    let gib = move |now: JobTime| 1.0 + (50.0 - huge_pages) * now.x;
    job.main(
        move |now| Holds::private(1024.0 * gib(now)),
        move |now, sample| {
            let left = 62.5 - huge_pages - gib(now) - 10.0 * now.x;
            let taken = Bytes(((64.0 - huge_pages - left) * GIB as f64) as u64);
            let memory = HostMemory { anonymous: taken, ..host((left * GIB as f64) as u64, 8 * GIB) };
            sample.host.memory = Measured::Known(memory);
            sample.host.kernel = Measured::Known(HostKernel {
                hugetlb: Bytes((huge_pages * GIB as f64) as u64),
                hugetlb_free: Bytes((huge_pages * GIB as f64) as u64),
                ..HostKernel::default()
            });
        },
    );
}

/// What is said of it: the word, and all findings by id.
fn answer(shape: &Shape, length: Length, seed: u64) -> (Option<GrowthClass>, Vec<(String, Severity)>) {
    let mut job = Job::new(length, seed);
    (shape.job)(&mut job);
    let verdict = job.run.verdict();
    let mut findings: Vec<(String, Severity)> =
        verdict.findings.iter().map(|finding| (finding.cause.clone(), finding.severity)).collect();
    findings.sort();
    (verdict.growth.map(|growth| growth.class), findings)
}

#[test]
fn a_run_of_any_length_gets_the_same_answer() {
    let (mut asked, mut others) = (0, Vec::new());
    for shape in SHAPES {
        for (number, length) in LENGTHS.into_iter().enumerate() {
            let growth = shape.growth[number.min(2)];
            let findings: Vec<(String, Severity)> =
                shape.findings.iter().map(|(cause, severity)| ((*cause).to_owned(), *severity)).collect();
            for seed in 0..SEEDS {
                let (word, found) = answer(shape, length, seed);
                asked += 1;
                if word != Some(growth) || found != findings {
                    others.push(format!("{}, {}, seed {seed}: {word:?} {found:?}", shape.name, length.name));
                }
            }
        }
    }
    println!("{} shapes, {asked} replays, {} answered otherwise", SHAPES.len(), others.len());
    assert!(others.is_empty(), "{others:#?}");
}
