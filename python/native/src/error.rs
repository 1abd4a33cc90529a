//! `ArenaError`: the one exception of this module.

use pyo3::PyErr;

pyo3::create_exception!(
    _native,
    ArenaError,
    pyo3::exceptions::PyRuntimeError,
    "The arena could not do what was asked."
);

/// Any error of the rooms below, with its own words.
pub(crate) fn arena_error(error: impl std::fmt::Display) -> PyErr {
    ArenaError::new_err(error.to_string())
}
