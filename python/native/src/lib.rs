//! `ullage._native`: the arena, its queues and flags, and the walk of `freeze`, for Python. A seam: no policy, no torch.
#![allow(unsafe_code)]

use error::ArenaError;
use pyo3::prelude::*;
use ullage_arena::fail::{self, FailPoint};

mod arena;
mod copy;
mod dlpack;
mod encoder;
mod error;
mod event;
mod freeze;
mod headroom;
mod incoming;
mod keep;
mod memfd;
mod message;
mod once;
mod piece;
mod queue;
mod shared;
mod stack;
mod thread_end;
mod watch;

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ArenaError", module.py().get_type::<ArenaError>())?;
    module.add_class::<arena::Arena>()?;
    module.add_class::<event::Flag>()?;
    module.add_class::<piece::Piece>()?;
    module.add_class::<queue::Queue>()?;
    module.add_function(wrap_pyfunction!(watch::end_with, module)?)?;
    module.add_function(wrap_pyfunction!(watch::pidfd_open, module)?)?;
    module.add_function(wrap_pyfunction!(memfd::memfd, module)?)?;
    module.add_function(wrap_pyfunction!(memfd::seal, module)?)?;
    module.add_function(wrap_pyfunction!(headroom::check_headroom, module)?)?;
    module.add_class::<encoder::Encoder>()?;
    module.add_class::<incoming::Incoming>()?;
    module.add_function(wrap_pyfunction!(fail_at, module)?)?;
    module.add_function(wrap_pyfunction!(fail_points, module)?)?;
    module.add_function(wrap_pyfunction!(dlpack::use_torch, module)?)?;
    module.add_function(wrap_pyfunction!(stack::stack, module)?)?;
    module.add_function(wrap_pyfunction!(freeze::can_freeze, module)?)?;
    module.add_function(wrap_pyfunction!(freeze::freeze, module)?)?;
    module.add_function(wrap_pyfunction!(incoming::reading, module)?)?;
    module.add_function(wrap_pyfunction!(incoming::rebuild, module)?)?;
    shared::register(module)?;
    Ok(())
}

/// For tests: this process dies by SIGKILL when it comes to a step of the protocol for the `times`-th time (never, with 0).
/// Steps are `fail_points()`.
#[pyfunction]
fn fail_at(step: &str, times: u32) -> PyResult<()> {
    let found = FailPoint::ALL.into_iter().find(|point| format!("{point:?}") == step);
    let point = found.ok_or_else(|| ArenaError::new_err(format!("there is no step {step:?}")))?;
    fail::arm(point, times);
    Ok(())
}

/// Names of the steps at which a process can be made to die.
#[pyfunction]
fn fail_points() -> Vec<String> {
    FailPoint::ALL.iter().map(|point| format!("{point:?}")).collect()
}
