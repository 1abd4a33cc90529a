//! What did ullage know of the limits at each moment of a run? A line of JSON for every sample of a recording: the
//! limits as they stood when no later sample was there. `benches/forecast.py` compares them with what happened.
//!
//! `cargo run --release -p ullage-cli --example forecasts -- DIRECTORY`
#![allow(clippy::print_stdout)]

use anyhow::Context;
use ullage_diagnosis::{limits, Timeline};
use ullage_model::{Item, Limit};
use ullage_recording::Recording;

fn main() -> anyhow::Result<()> {
    let directory = std::env::args().nth(1).context("which directory?")?;
    let recording = Recording::open(std::path::Path::new(&directory))?;
    let mut timeline = Timeline::default();
    for item in recording.replay() {
        let sampled = matches!(item, Item::Sample(_));
        timeline.push(item);
        if !sampled {
            continue;
        }
        let states: Vec<_> = limits(&recording.run, &timeline)
            .iter()
            .map(|state| {
                serde_json::json!({
                    "name": state.kind.name(),
                    "scope": state.scope.to_string(),
                    "used": state.used.known(),
                    "limit": state.limit.known().and_then(Limit::at),
                    "slope": state.slope_per_s,
                    "left": state.time_left_s,
                    "lasted": state.growing_for_s,
                    "warning": state.warning,
                })
            })
            .collect();
        println!("{}", serde_json::json!({ "at": timeline.end().seconds(), "limits": states }));
    }
    Ok(())
}
