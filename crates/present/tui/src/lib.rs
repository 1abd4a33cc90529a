//! The live view: one state that keys and news change, and a pure function that draws it.
//!
//! No terminal, no clock, no file: [`View::draw`] makes a buffer of cells of any size from what the view knows, so every
//! screen has a snapshot. Names, arguments and messages of a job are hostile text: all text reaches the buffer through
//! `Painter::put`, which cleans it.
#![forbid(unsafe_code)]

mod frame;
mod history;
mod keys;
mod painter;
mod rows;
mod screens;
mod view;

pub use history::History;
pub use keys::{Asked, Key};
pub use ratatui_core::buffer::{Buffer, Cell};
pub use ratatui_core::layout::Rect;
pub use ratatui_core::style::{Color, Modifier, Style};
pub use rows::Sort;
pub use view::{Heading, Known, Screen, Standing, View};
