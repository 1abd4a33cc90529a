//! The module `_ullage_native`: what the agent's Python files may call of all this.

use crate::ffi::{self, Object, PyMethodDef, PyModuleDef, PyObject};
use crate::{
    access, allocated, below, builtins, collector, ending, ends, first_fork, fork, frames, guard, held, hook,
    large, leading, locals, malloc, modules, objects, plain, referents, room, safe_points, sandbox, speak,
    standing, unreachable, waker,
};
use std::ffi::{c_int, c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::SeqCst;

/// `PYTHON_ABI_VERSION`: of the stable ABI.
const ABI: c_int = 3;

/// `is_main()`: asked in the interpreter that the process began with. What lies here is of one interpreter only.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn is_main(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe {
        let number = ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get());
        ffi::PyBool_FromLong((number == 0).into())
    }
}

/// `is_open()`: no filter of system calls came since the program began.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn is_open(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { ffi::PyBool_FromLong(sandbox::is_open().into()) }
}

/// `reset_with(callable, method_type, loud, gives_way)`: called first in a forked process, once there is something to do.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn reset_with(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held; both are kept for good.
    unsafe {
        guard::RESET.store(ffi::held(ffi::PyTuple_GetItem(arguments, 0)), SeqCst);
        hook::METHOD.store(ffi::held(ffi::PyTuple_GetItem(arguments, 1)), SeqCst);
        guard::LOUD.store(ffi::PyObject_IsTrue(ffi::PyTuple_GetItem(arguments, 2)) == 1, SeqCst);
        if ffi::PyObject_IsTrue(ffi::PyTuple_GetItem(arguments, 3)) == 1 {
            guard::give_way();
        }
    }
    ffi::none()
}

fn methods() -> &'static mut [PyMethodDef] {
    let method = |name: &'static CStr, function: *const c_void, flags: c_int| PyMethodDef {
        name: name.as_ptr(),
        function,
        flags,
        doc: null(),
    };
    let (many, one, no) = (ffi::METH_VARARGS, ffi::METH_O, ffi::METH_NOARGS);
    Box::leak(Box::new([
        method(c"access", access::access as *const c_void, many),
        method(c"after_fork", waker::after_fork as *const c_void, no),
        method(c"allocations", allocated::allocations as *const c_void, no),
        method(c"at_exit", ending::at_exit as *const c_void, one),
        method(c"before_collection", safe_points::before_collection as *const c_void, one),
        method(c"before_first_fork", first_fork::before_first_fork as *const c_void, one),
        method(c"before_fork", waker::before_fork as *const c_void, no),
        method(c"below", below::below as *const c_void, many),
        method(c"caller", frames::caller as *const c_void, no),
        method(c"collector", collector::collector as *const c_void, many),
        method(c"collects", collector::collects as *const c_void, no),
        method(c"connect", speak::connect as *const c_void, one),
        method(c"connection", fork::connection as *const c_void, many),
        method(c"ends", ends::ends as *const c_void, many),
        method(c"frames", frames::frames as *const c_void, no),
        method(c"guard", builtins::guard as *const c_void, one),
        method(c"filled", standing::filled as *const c_void, many),
        method(c"has_figures", ending::has_figures as *const c_void, no),
        method(c"hook", hook::hook as *const c_void, many),
        method(c"held", held::held as *const c_void, many),
        method(c"in_child", fork::in_child as *const c_void, no),
        method(c"is_audited", guard::is_audited as *const c_void, no),
        method(c"is_due", safe_points::is_due as *const c_void, no),
        method(c"is_main", is_main as *const c_void, no),
        method(c"is_open", is_open as *const c_void, no),
        method(c"is_own", objects::is_own as *const c_void, one),
        method(c"less_referred", held::less_referred as *const c_void, many),
        method(c"may_be_held", held::may_be_held as *const c_void, many),
        method(c"large", large::large as *const c_void, many),
        method(c"leading", leading::leading as *const c_void, many),
        method(c"module_with", modules::module_with as *const c_void, many),
        method(c"sample_with", safe_points::sample_with as *const c_void, one),
        method(c"locals", locals::locals as *const c_void, many),
        method(c"malloc_info", malloc::malloc_info as *const c_void, no),
        method(c"safe_point", safe_points::passing as *const c_void, ffi::METH_VARARGS | ffi::METH_KEYWORDS),
        method(c"newest", objects::newest as *const c_void, many),
        method(c"next_sample", safe_points::next_sample as *const c_void, one),
        method(c"on_collection", safe_points::on_collection as *const c_void, many),
        method(c"other_malloc", malloc::other_malloc as *const c_void, no),
        method(c"plain", plain::plain as *const c_void, one),
        method(c"pointer", objects::pointer as *const c_void, one),
        method(c"program_modules", modules::program_modules as *const c_void, many),
        method(c"referents", referents::referents as *const c_void, many),
        method(c"reset_with", reset_with as *const c_void, many),
        method(c"room", room::room as *const c_void, one),
        method(c"speak", speak::speak as *const c_void, many),
        method(c"stand_in", builtins::stand_in as *const c_void, many),
        method(c"standing", standing::standing as *const c_void, many),
        method(c"still", ends::still as *const c_void, many),
        method(c"status", fork::status as *const c_void, many),
        method(c"unreachable", unreachable::unreachable as *const c_void, many),
        method(c"wake", waker::wanted as *const c_void, one),
        method(c"wakes", waker::wakes as *const c_void, no),
        PyMethodDef { name: null(), function: null(), flags: 0, doc: null() },
    ]))
}

/// Called by CPython as the module is loaded.
#[unsafe(no_mangle)]
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub unsafe extern "C-unwind" fn PyInit__ullage_native() -> Object {
    let definition = Box::leak(Box::new(PyModuleDef {
        head: PyObject { refcount: 1, kind: null_mut() },
        init: null(),
        index: 0,
        copy: null_mut(),
        name: c"_ullage_native".as_ptr(),
        doc: null(),
        size: -1,
        methods: methods().as_mut_ptr(),
        slots: null(),
        traverse: null(),
        clear: null(),
        free: null(),
    }));
    // SAFETY: the lock is held; the definition lives for good; each reference is handed over.
    unsafe {
        frames::begin();
        let module = ffi::PyModule_Create2(definition, ABI);
        if module.is_null() {
            return module;
        }
        for (name, kind) in
            [(c"Access", access::new_type()), (c"Hook", hook::new_type()), (c"Plain", plain::new_type())]
        {
            if kind.is_null() || ffi::PyModule_AddObject(module, name.as_ptr(), kind) != 0 {
                ffi::Py_DecRef(module);
                return null_mut();
            }
        }
        module
    }
}
