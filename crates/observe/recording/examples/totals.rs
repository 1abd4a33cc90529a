//! The memory of the tree at each sample of a recording, one JSON object a line: what a benchmark compares with the truth.
//!
//!     cargo run --release -p ullage-recording --example totals -- RECORDING
#![allow(clippy::print_stdout)]

use std::error::Error;
use ullage_attribution::Accountant;
use ullage_model::Item;
use ullage_recording::Recording;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("which recording?")?;
    let recording = Recording::open(&directory)?;
    let mut accountant = Accountant::default();
    for item in recording.replay() {
        match item {
            Item::Event(event) => accountant.event(&event),
            Item::Sample(sample) => {
                let tree = accountant.tree(&sample);
                println!(
                    "{{\"at_s\":{},\"bytes\":{},\"error_bytes\":{},\"processes\":{},\"surveyed\":{},\"held\":{}}}",
                    sample.at.seconds(),
                    tree.bytes,
                    tree.error_bytes,
                    sample.processes.len(),
                    !sample.survey.is_empty(),
                    tree.source.contains("held to")
                );
                accountant.sample(&sample);
            }
        }
    }
    Ok(())
}
