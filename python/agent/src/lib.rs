//! Where no Python frame of the agent may stand: the module `_ullage_native` that the agent loads into a job's Python.
//!
//! A signal handler runs in whatever Python code the main thread executes. In a frame of the agent its exception would
//! be lost, or show a traceback of ours. So what stands in the program's way is C functions, and all Python code of
//! the agent runs in a thread of its own, in which CPython runs no handler, while the program's thread waits.
//!
//! Built by the command's build script with rustc alone and written beside the agent's Python files: one library for
//! all Pythons from 3.9 on, because it uses functions of the stable ABI only, and two tables that are looked up by name
//! (allocated.rs). The surprise: it has no dependency but
//! std, and every figure of a layout that it relies on is tried out before it is believed.
#![allow(unsafe_code, missing_docs, unreachable_pub)]

mod access;
mod allocated;
mod below;
mod buffer;
mod builtins;
mod collector;
mod ending;
mod ends;
mod ffi;
mod first_fork;
mod fork;
mod frames;
mod guard;
mod held;
mod hook;
mod large;
mod leading;
mod locals;
mod malloc;
mod module;
mod modules;
mod objects;
mod plain;
mod referents;
mod room;
mod safe_points;
mod sandbox;
mod speak;
mod standing;
mod unreachable;
mod waker;
