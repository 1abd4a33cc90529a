//! Which file of the tree imports which, and which of them import each other in a circle?

mod circle;
mod python;
mod rust;
mod text;

use crate::dependencies::Package;
use crate::tree::File;

pub(crate) use circle::{circles, Graph};
pub(crate) use text::Text;

/// Of every crate and of every Python file.
pub(crate) fn graph(packages: &[Package], files: &[File]) -> Graph {
    let mut graph = Graph::new();
    for package in packages {
        for root in &package.roots {
            rust::imports(root, files, &mut graph);
        }
    }
    python::imports(files, &mut graph);
    graph
}
