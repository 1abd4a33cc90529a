//! A run as one HTML file: the verdict in the words of the text, memory over time with its limits, and the JSON inside.
//!
//! Pure: the same verdict and the same [`Curves`] always give the same bytes. The page asks for nothing: its script and style
//! are in it, and its content policy allows no other. Names, arguments and messages of a job are hostile text; askama escapes
//! each, and `embedded` keeps JSON from ending its element.
#![forbid(unsafe_code)]

mod curves;
mod fleet;
mod page;
mod picture;

pub use curves::Curves;
pub use fleet::render_fleet;
pub use page::render;
