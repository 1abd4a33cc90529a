//! Watches a command and prints each tick in a line: `cargo run --example watch -- python3 train.py`.

use std::time::Instant;
use ullage_kernel::KernelRoot;
use ullage_model::{At, EventKind, ProcessId};
use ullage_sampler::{Sampler, SamplerSettings};

#[expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example that prints")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut child = std::process::Command::new(&arguments[0]).args(&arguments[1..]).spawn().unwrap();
    let pid = child.id() as i32;
    let root = KernelRoot::live();
    let start = root.process(pid).unwrap().stat(&mut Vec::new()).unwrap().id.start;
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(std::process::id() as i32)).unwrap();
    let settings = SamplerSettings { reaper: Some(std::process::id() as i32), ..SamplerSettings::default() };
    let mut sampler = Sampler::new(root, settings, ProcessId { pid, start });
    let begun = Instant::now();
    loop {
        let tick = sampler.tick(At(begun.elapsed().as_nanos() as u64));
        let counted: Vec<String> = tick
            .sample
            .processes
            .iter()
            .filter_map(|process| {
                let mappings = process.mappings.as_known()?;
                Some(format!("{}:{} ({} torch)", process.id.pid, mappings.count, mappings.torch_shared))
            })
            .collect();
        println!(
            "{:8.3} s  {} processes  mappings {counted:?}  events {}  cpu {:.1} ms  rss {} MiB  next {:.3} s",
            tick.sample.at.seconds(),
            tick.sample.processes.len(),
            tick.events.len(),
            tick.sample.cost.cpu_ns as f64 / 1e6,
            tick.sample.cost.peak_rss.0 >> 20,
            tick.next_after.as_secs_f64()
        );
        for event in &tick.events {
            match &event.what {
                EventKind::ProcessSeen { facts } => {
                    println!("    {} {} of {}: {:?}", facts.id.pid, facts.comm, facts.parent, facts.role)
                }
                EventKind::RoleKnown { id, role } => println!("    {} is now {role:?}", id.pid),
                other => println!("    {other:?}"),
            }
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(tick.next_after);
    }
}
