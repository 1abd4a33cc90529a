//! Why an object cannot be shared, and where in it that is: `[17]["meta"].handle`.

use super::tables::seam;
use crate::error::ArenaError;
use crate::thread_end::call;
use pyo3::prelude::*;

/// What stopped the packing, with the way to it, innermost step first.
pub(crate) struct Refusal {
    what: What,
    way: Vec<String>,
}

enum What {
    Says(String),
    /// A lack of memory or address space.
    Memory(String),
    /// Raised by the object itself.
    Raised(PyErr),
}

impl Refusal {
    pub(crate) fn says(text: impl Into<String>) -> Refusal {
        Refusal { what: What::Says(text.into()), way: Vec::new() }
    }

    pub(crate) fn memory(text: impl Into<String>) -> Refusal {
        Refusal { what: What::Memory(text.into()), way: Vec::new() }
    }

    pub(crate) fn inside(mut self, step: impl FnOnce() -> String) -> Refusal {
        self.way.push(step());
        self
    }

    pub(crate) fn into_error(self, py: Python<'_>, root: &str) -> PyErr {
        let way: String = std::iter::once(root.to_owned()).chain(self.way.into_iter().rev()).collect();
        match self.what {
            What::Says(text) => {
                let text = format!("{way} cannot be shared: {text}");
                let made = seam(py).and_then(|seam| call(seam.refused.bind(py), (text,)));
                made.map_or_else(|error| error, PyErr::from_value)
            }
            What::Memory(text) => ArenaError::new_err(format!("no memory to share this, at {way}: {text}")),
            What::Raised(error) => error,
        }
    }
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Refusal {
        Refusal { what: What::Raised(error), way: Vec::new() }
    }
}
