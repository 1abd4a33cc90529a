//! What a shared object repeats, kept once: keys of its records, classes, dtypes. And the seam to `ullage._share`.

use super::format::damaged;
use crate::dlpack::Dtype;
use crate::once::SetOnce;
use crate::thread_end::call;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

/// What Python does for this module.
pub(crate) struct Seam {
    /// The dict whose mutators raise.
    pub(crate) record: Py<PyType>,
    /// The exception for what cannot be shared.
    pub(crate) refused: Py<PyAny>,
    /// class -> names of its fields, why it cannot be shared, or None where it is neither dataclass nor named tuple.
    pub(crate) describe: Py<PyAny>,
    /// object -> why it cannot be shared, and what to do.
    pub(crate) advise: Py<PyAny>,
    /// (class, names, values, plain) -> instance.
    pub(crate) make: Py<PyAny>,
    /// tensor -> (kept, dtype's name, item size, shape, address, bytes), or a reason against it.
    pub(crate) tensor_parts: Py<PyAny>,
    /// (buffer, start, dtype's name, shape) -> tensor.
    pub(crate) tensor_over: Py<PyAny>,
    /// What pickles a view: (pages, place, first, step, length) -> arguments of `__reduce__`.
    pub(crate) reduce: Py<PyAny>,
}

static SEAM: SetOnce<Seam> = SetOnce::new();

/// Enters what Python does for shared objects, by name; see `ullage._share`.
#[pyfunction]
pub(crate) fn use_shared(given: &Bound<'_, PyDict>) -> PyResult<()> {
    let named = |name: &str| Ok::<_, PyErr>(given.as_any().get_item(name)?.unbind());
    let seam = Seam {
        record: given.as_any().get_item("record")?.cast_into::<PyType>()?.unbind(),
        refused: named("refused")?,
        describe: named("describe")?,
        advise: named("advise")?,
        make: named("make")?,
        tensor_parts: named("tensor_parts")?,
        tensor_over: named("tensor_over")?,
        reduce: named("reduce")?,
    };
    SEAM.set(seam);
    Ok(())
}

pub(crate) fn seam(py: Python<'_>) -> PyResult<&Seam> {
    if SEAM.get().is_none() {
        py.import("ullage._share")?;
    }
    SEAM.get().ok_or_else(damaged)
}

/// As they are read.
pub(crate) struct Tables {
    pub(crate) schemas: Vec<Vec<Py<PyAny>>>,
    pub(crate) classes: Vec<Py<PyAny>>,
    /// dtype and its item size.
    pub(crate) dtypes: Vec<(Py<PyAny>, usize)>,
    /// Name of torch's dtype, its item size, and DLPack's, where that has one.
    pub(crate) kinds: Vec<(String, usize, Option<Dtype>)>,
}

/// As they are written.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) schemas: Vec<Vec<Py<PyAny>>>,
    pub(crate) classes: Vec<Py<PyAny>>,
    pub(crate) dtypes: Vec<(Py<PyAny>, usize)>,
    /// torch's dtypes that DLPack does not have: name and item size.
    pub(crate) other_kinds: Vec<(String, usize)>,
}

/// Numbers of torch's dtypes: DLPack's come first in a fixed order, then those of this object.
pub(crate) const PLAIN_KINDS: usize = Dtype::ALL.len();

impl Written {
    pub(crate) fn pickled<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let schemas = self
            .schemas
            .iter()
            .map(|keys| PyTuple::new(py, keys.iter().map(|key| key.bind(py))))
            .collect::<PyResult<Vec<_>>>()?;
        let classes = self.classes.iter().map(|class| class.bind(py)).collect::<Vec<_>>();
        let dtypes = self.dtypes.iter().map(|(dtype, size)| (dtype.bind(py), *size)).collect::<Vec<_>>();
        let all = (schemas, classes, dtypes, self.other_kinds.clone());
        Ok(py.import("pickle")?.call_method1("dumps", (all, 5))?.cast_into()?)
    }
}

type Loaded = (Vec<Vec<Py<PyAny>>>, Vec<Py<PyAny>>, Vec<(Py<PyAny>, usize)>, Vec<(String, usize)>);

impl Tables {
    pub(crate) fn load(py: Python<'_>, pickled: &[u8]) -> PyResult<Tables> {
        let loads = py.import("pickle")?.getattr("loads")?;
        let (schemas, classes, dtypes, others): Loaded =
            call(&loads, (PyBytes::new(py, pickled),))?.extract()?;
        let plain = Dtype::ALL
            .iter()
            .filter_map(|dtype| Some((dtype.name()?.to_owned(), usize::from(dtype.bits / 8), Some(*dtype))));
        let others = others.into_iter().map(|(name, size)| (name, size, None));
        Ok(Tables { schemas, classes, dtypes, kinds: plain.chain(others).collect() })
    }
}
