//! What do the allocators of this process say of themselves? glibc's `malloc_info`, and jemalloc's and tcmalloc's
//! figures where one of them stands in malloc's place.

use crate::ffi::{self, Object};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::null_mut;

pub(crate) fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: RTLD_DEFAULT is null; the name ends with a zero.
    unsafe { ffi::dlsym(null_mut(), name.as_ptr()) }
}

/// `malloc_info()`: what malloc_info(3) writes; None where there is no glibc.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn malloc_info(_module: Object, _arguments: Object) -> Object {
    type Stream = unsafe extern "C-unwind" fn(*mut *mut c_char, *mut usize) -> *mut c_void;
    type Info = unsafe extern "C-unwind" fn(c_int, *mut c_void) -> c_int;
    let (stream, info) = (symbol(c"open_memstream"), symbol(c"malloc_info"));
    if stream.is_null() || info.is_null() {
        return ffi::none();
    }
    let (mut text, mut length) = (null_mut(), 0);
    // SAFETY: both have these signatures (open_memstream(3), malloc_info(3)); the text is copied, then freed.
    unsafe {
        let stream = std::mem::transmute::<*mut c_void, Stream>(stream)(&mut text, &mut length);
        if stream.is_null() {
            return ffi::none();
        }
        let failed = std::mem::transmute::<*mut c_void, Info>(info)(0, stream);
        ffi::fclose(stream);
        let result = if failed == 0 && !text.is_null() {
            ffi::PyBytes_FromStringAndSize(text, length as isize)
        } else {
            ffi::none()
        };
        ffi::free(text.cast());
        result
    }
}

/// `other_malloc()`: ("jemalloc" or "tcmalloc", bytes handed out, bytes resident), or None.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn other_malloc(_module: Object, _arguments: Object) -> Object {
    let found = jemalloc().map(|figures| (c"jemalloc", figures));
    let found = found.or_else(|| tcmalloc().map(|figures| (c"tcmalloc", figures)));
    let Some((name, (used, held))) = found else {
        return ffi::none();
    };
    // SAFETY: the lock is held; the references are new.
    unsafe {
        let name = ffi::PyBytes_FromStringAndSize(name.as_ptr(), name.to_bytes().len() as isize);
        ffi::tuple([name, ffi::PyLong_FromSize_t(used), ffi::PyLong_FromSize_t(held)])
    }
}

fn jemalloc() -> Option<(usize, usize)> {
    type Control =
        unsafe extern "C-unwind" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;
    let control = symbol(c"mallctl");
    if control.is_null() {
        return None;
    }
    // SAFETY: mallctl(3) of jemalloc.
    let control = unsafe { std::mem::transmute::<*mut c_void, Control>(control) };
    // Its figures stand still until it is told that a new epoch begins.
    let mut epoch = 1u64;
    // SAFETY: reads eight bytes of `epoch`.
    unsafe { control(c"epoch".as_ptr(), null_mut(), null_mut(), (&raw mut epoch).cast(), 8) };
    let read = |name: &CStr| {
        let (mut value, mut size) = (0usize, size_of::<usize>());
        // SAFETY: writes a size_t.
        let failed = unsafe { control(name.as_ptr(), (&raw mut value).cast(), &mut size, null_mut(), 0) };
        (failed == 0).then_some(value)
    };
    Some((read(c"stats.allocated")?, read(c"stats.resident")?))
}

fn tcmalloc() -> Option<(usize, usize)> {
    type Property = unsafe extern "C-unwind" fn(*const c_char, *mut usize) -> c_int;
    let property = symbol(c"MallocExtension_GetNumericProperty");
    if property.is_null() {
        return None;
    }
    // SAFETY: gperftools' malloc_extension_c.h.
    let property = unsafe { std::mem::transmute::<*mut c_void, Property>(property) };
    let read = |name: &CStr| {
        let mut value = 0usize;
        // SAFETY: writes a size_t.
        (unsafe { property(name.as_ptr(), &mut value) } != 0).then_some(value)
    };
    let held = read(c"generic.heap_size")?.saturating_sub(read(c"tcmalloc.pageheap_unmapped_bytes")?);
    Some((read(c"generic.current_allocated_bytes")?, held))
}
