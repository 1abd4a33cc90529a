//! Which objects does `ullage.freeze` make immortal? All that a walk from one object reaches, but for those of types that
//! its caller names. The walk sees what the collector sees (`tp_traverse`), and what that leaves out: the keys of
//! dictionaries, and the items of numpy's arrays.
//!
//! The surprise: from the first object to the last, no Python code may run. Items of lists are read where they lie, and a
//! list that grew meanwhile would leave a pointer into freed memory. So nothing is asked of an object that its class
//! could answer in Python.

mod arrays;
mod kinds;
mod walk;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// What is written into the first word of an object's head (64 bits) so that it is never freed.
#[derive(Clone, Copy)]
struct Mark {
    /// Minor version of CPython 3. One is entered here when the tests have run on it.
    minor: u8,
    /// The reference count, its lower half.
    count: u32,
    /// Bits of the upper half.
    flags: u64,
}

const MARKS: [Mark; 3] = [
    // `_Py_IMMORTAL_REFCNT` in Include/object.h. No other value will do: only this one is never counted up.
    Mark { minor: 12, count: 0xFFFF_FFFF, flags: 0 },
    Mark { minor: 13, count: 0xFFFF_FFFF, flags: 0 },
    // `_Py_IMMORTAL_INITIAL_REFCNT` and `_Py_IMMORTAL_FLAGS` in Include/refcount.h. A little more than the former, from which
    // on nothing is counted up: references that the running frames took before are counted down when they end.
    Mark { minor: 14, count: (3 << 30) + (1 << 20), flags: 1 << 48 },
];

/// Free-threaded builds and those that trace references have a longer head before an object, and other rules.
const KNOWN_HEAD: bool = size_of::<ffi::PyObject>() == 16 && size_of::<usize>() == 8;

fn mark(py: Python<'_>) -> PyResult<Option<Mark>> {
    let version = py.version_info();
    // Debug builds ("d") check what they would not find in a string that was made immortal.
    let plain = py.import("sys")?.getattr("abiflags")?.len()? == 0;
    let known = MARKS.into_iter().find(|mark| (version.major, version.minor) == (3, mark.minor));
    Ok(known.filter(|_| KNOWN_HEAD && plain))
}

/// Is it known how this Python marks an object as immortal?
#[pyfunction]
pub(crate) fn can_freeze(py: Python<'_>) -> PyResult<bool> {
    Ok(mark(py)?.is_some())
}

/// (type, objects newly immortal, objects not gone into) for each type that was met.
type Counts = Vec<(Py<PyType>, u64, u64)>;

/// Makes what `root` reaches immortal and hides it from the collector, but for objects of the types `stops` and of their
/// subclasses. `array` is `numpy.ndarray`, where there is one. Second: arrays of records whose items were left out.
#[pyfunction]
#[pyo3(signature = (root, stops, array))]
pub(crate) fn freeze(
    root: &Bound<'_, PyAny>,
    stops: Vec<Bound<'_, PyType>>,
    array: Option<Bound<'_, PyType>>,
) -> PyResult<(Counts, u64)> {
    let py = root.py();
    let Some(mark) = mark(py)? else {
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
