//! Has the linker put each function that src/thread_end.rs lists in front of CPython's of that name.

fn main() {
    let list = "src/thread_end.rs";
    println!("cargo::rerun-if-changed={list}");
    let text = std::fs::read_to_string(list).expect("the list lies in this package");
    let wrapped = text.lines().filter_map(|line| line.strip_prefix("    __wrap_")?.split_once(' '));
    for (name, _) in wrapped {
        // lld wraps only a name that something refers to.
        println!("cargo::rustc-link-arg-cdylib=-Wl,--undefined={name}");
        println!("cargo::rustc-link-arg-cdylib=-Wl,--wrap={name}");
    }
}
