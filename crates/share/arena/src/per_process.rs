//! A value that each process has for itself, made anew by a forked child at its first use.
//!
//! For what holds a lock or is written in several steps: another thread of the parent may have been at it when the
//! child was forked, and that thread does not exist in the child. So the parent's value is left alone there: never
//! read, never freed.

use crate::forks;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value of this process.
#[derive(Debug)]
pub struct PerProcess<T>(AtomicPtr<Made<T>>);

#[derive(Debug)]
struct Made<T> {
    process: u64,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// None yet.
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The value, where this process has one.
    pub fn get(&self) -> Option<&T> {
        self.of(forks::process())
    }

    /// The value of the process with this number, where that was the last one to make one.
    pub(crate) fn of(&self, process: u64) -> Option<&T> {
        // SAFETY: null, or made by `offer` from a Box that is freed with this value only.
        let made = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        made.filter(|made| made.process == process).map(|made| &made.value)
    }

    /// Makes `value` that of this process, and gives it back where another thread was quicker.
    pub fn offer(&self, value: T) -> Result<&T, T> {
        forks::watch();
        let found = self.0.load(Ordering::Acquire);
        if self.get().is_some() {
            return Err(value);
        }
        let made = Box::into_raw(Box::new(Made { process: forks::process(), value }));
        match self.0.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just made, and freed with this value only.
            Ok(_) => Ok(unsafe { &(*made).value }),
            // SAFETY: it was shown to nobody.
            Err(_) => Err(unsafe { Box::from_raw(made) }.value),
        }
    }

    /// The value, made where this process has none yet.
    pub fn get_or_make(&self, make: impl Fn() -> T) -> &T {
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            if let Ok(value) = self.offer(make()) {
                return value;
            }
        }
    }
}

impl<T: Send + Sync> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let made = *self.0.get_mut();
        // SAFETY: made by `offer`, and nobody else has this value any more. A parent's is not looked into.
        if !made.is_null() && unsafe { (*made).process } == forks::process() {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn the_first_value_stays_and_the_second_comes_back() {
        let value = PerProcess::new();
        assert_eq!(value.get(), None);
        assert_eq!(value.offer(1), Ok(&1));
        assert_eq!(value.offer(2), Err(2));
        assert_eq!(value.get_or_make(|| 3), &1);
    }

    #[test]
    fn a_child_has_its_own_although_another_thread_held_the_parents_lock() {
        let value: PerProcess<Mutex<u32>> = PerProcess::new();
        let held = value.get_or_make(|| Mutex::new(1)).lock().unwrap();
        let own = || *value.get_or_make(|| Mutex::new(7)).try_lock().unwrap() == 7;
        std::thread::scope(|scope| {
            let forking = scope.spawn(|| {
                // SAFETY: the child makes one value and exits.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    let code = i32::from(!(value.get().is_none() && own()));
                    // SAFETY: ends the child at once.
                    unsafe { libc::_exit(code) };
                }
                let mut status = 0;
                // SAFETY: our own child, waited for once.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                status
            });
            assert_eq!(forking.join().unwrap(), 0);
        });
        assert_eq!(*held, 1);
    }
}
