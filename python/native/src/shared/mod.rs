//! `ullage.share`: an object packed once into a sealed memfd, and read by any number of processes without a copy.
//!
//! `pack` writes what `format` describes into a `Memory`; `Pages` maps it; `list` and `dict` are what Python sees.

mod ahead;
mod arrays;
mod dict;
mod format;
mod keys;
mod list;
mod memory;
mod numpy;
mod opened;
mod pack;
mod pages;
mod read;
mod refusal;
mod scalar;
mod tables;

use pyo3::prelude::*;

/// Enters the classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<pages::Pages>()?;
    module.add_class::<list::SharedList>()?;
    module.add_class::<dict::SharedDict>()?;
    module.add_function(wrap_pyfunction!(pack::pack, module)?)?;
    module.add_function(wrap_pyfunction!(tables::use_shared, module)?)?;
    Ok(())
}
