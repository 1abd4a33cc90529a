//! Which objects does `ullage.freeze` make immortal? All that a walk from one object reaches, but for those of types that
//! its caller names. The walk sees what the collector sees (`tp_traverse`), and what that leaves out: the keys of
//! dictionaries, and the items of numpy's arrays.
//!
//! The surprise: from the first object to the last, no Python code may run. Items of lists are read where they lie, and a
//! list that grew meanwhile would leave a pointer into freed memory. So nothing is asked of an object that its class
//! could answer in Python.

mod arrays;
mod found;
mod kinds;
mod mark;
mod walk;

use mark::Mark;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Is it known how this Python marks an object as immortal?
#[pyfunction]
pub(crate) fn can_freeze(py: Python<'_>) -> PyResult<bool> {
    Ok(Mark::of(py)?.is_some())
}

/// Makes what `root` reaches immortal and hides it from the collector, but for objects of the types `stops` and of their
/// subclasses. `array` is `numpy.ndarray`, where there is one. Second: arrays of records whose items were left out.
#[pyfunction]
#[pyo3(signature = (root, stops, array))]
pub(crate) fn freeze(
    root: &Bound<'_, PyAny>,
    stops: Vec<Bound<'_, PyType>>,
    array: Option<Bound<'_, PyType>>,
) -> PyResult<(walk::Counts, u64)> {
    let py = root.py();
    let Some(mark) = Mark::of(py)? else {
        return Err(PyRuntimeError::new_err("it is not known how this Python marks immortal objects"));
    };
    let arrays = array.map(arrays::Arrays::new).transpose()?;
    let mut walk = walk::Walk::new(kinds::Kinds::new(stops, arrays.as_ref()), namespaces(py)?, arrays, mark);
    walk.run(root);
    Ok(walk.counts(py))
}

/// The dictionaries of the modules, and of all of them: what a module holds is not the data of anybody.
fn namespaces(py: Python<'_>) -> PyResult<Vec<usize>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let mut found = vec![modules.as_ptr() as usize];
    for module in modules.call_method0("values")?.try_iter()? {
        let module = module?;
        // SAFETY: it is a module where its dictionary is asked for; that is a borrowed reference.
        unsafe {
            if ffi::PyModule_Check(module.as_ptr()) != 0 {
                found.push(ffi::PyModule_GetDict(module.as_ptr()) as usize);
            }
        }
    }
    Ok(found)
}
