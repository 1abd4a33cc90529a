//! A value that is made at its first use and stays, without a lock: where two threads make it, the first to finish wins.
//!
//! Not pyo3's `PyOnceLock`, nor its `intern!`, which is one: a thread that fills such a cell holds its lock while it
//! waits for the GIL, and a child that another thread forks meanwhile waits for the cell for ever.

use pyo3::prelude::*;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value, or none yet.
pub(crate) struct SetOnce<T>(AtomicPtr<T>, PhantomData<T>);

impl<T: Send + Sync> SetOnce<T> {
    pub(crate) const fn new() -> SetOnce<T> {
        SetOnce(AtomicPtr::new(std::ptr::null_mut()), PhantomData)
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: null, or made by `set` from a Box that is freed with this value only.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Sets it, where nobody has yet.
    pub(crate) fn set(&self, value: T) -> &T {
        let made = Box::into_raw(Box::new(value));
        let set = self.0.compare_exchange(std::ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        match set {
            // SAFETY: just made, and freed with this value only.
            Ok(_) => unsafe { &*made },
            Err(theirs) => {
                // SAFETY: `made` was shown to nobody.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `get`.
                unsafe { &*theirs }
            }
        }
    }

    pub(crate) fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        match self.get() {
            Some(value) => Ok(value),
            None => make().map(|value| self.set(value)),
        }
    }
}

impl SetOnce<Py<PyAny>> {
    /// An attribute of a module.
    pub(crate) fn import<'py>(
        &self,
        py: Python<'py>,
        module: &str,
        name: &str,
    ) -> PyResult<&Bound<'py, PyAny>> {
        self.get_or_try_init(|| py.import(module)?.getattr(name).map(Bound::unbind))
            .map(|found| found.bind(py))
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        let made = *self.0.get_mut();
        if !made.is_null() {
            // SAFETY: made by `set`, and nobody else has this value any more.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

/// As `pyo3::intern!`: a str that is made once.
macro_rules! intern {
    ($py:expr, $text:expr) => {{
        static TEXT: $crate::once::SetOnce<pyo3::Py<pyo3::types::PyString>> = $crate::once::SetOnce::new();
        let made = TEXT.get_or_try_init(|| {
            Ok::<_, std::convert::Infallible>(pyo3::types::PyString::intern($py, $text).unbind())
        });
        let Ok(text) = made;
        text.bind($py)
    }};
}
pub(crate) use intern;
