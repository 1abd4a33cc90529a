//! From one frame to the next: which bytes change the cells that differ?

use std::io::Write;
use ullage_tui::{Buffer, Cell, Color, Modifier};

/// Writes what makes a terminal that shows `before` show `after`; both are of one size.
pub fn write_changes(before: &Buffer, after: &Buffer, out: &mut Vec<u8>) {
    let mut place = None;
    let mut style: Option<(Color, Modifier)> = None;
    for (x, y, cell) in before.diff(after) {
        if place != Some((x, y)) {
            let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
        }
        let wanted = (cell.fg, cell.modifier);
        if style != Some(wanted) {
            set_style(cell, out);
            style = Some(wanted);
        }
        // Cleaned where it was put into the buffer; a cell that was never put holds a blank.
        out.extend_from_slice(cell.symbol().as_bytes());
        // Of a wide letter the terminal knows where it ends: the next place is told anew.
        place = cell.symbol().is_ascii().then_some((x + 1, y));
    }
    if style.is_some() {
        out.extend_from_slice(b"\x1b[0m");
    }
}

fn set_style(cell: &Cell, out: &mut Vec<u8>) {
    let _ = out.write_all(b"\x1b[0");
    for (modifier, code) in
        [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::UNDERLINED, 4), (Modifier::REVERSED, 7)]
    {
        if cell.modifier.contains(modifier) {
            let _ = write!(out, ";{code}");
        }
    }
    let colour = match cell.fg {
        Color::Red => Some(31),
        Color::Green => Some(32),
        Color::Yellow => Some(33),
        _ => None,
    };
    if let Some(code) = colour {
        let _ = write!(out, ";{code}");
    }
    out.push(b'm');
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_tui::Rect;

    #[test]
    fn only_what_differs_is_written() {
        let area = Rect::new(0, 0, 10, 2);
        let (before, mut after) = (Buffer::empty(area), Buffer::empty(area));
        let mut out = Vec::new();
        write_changes(&before, &after, &mut out);
        assert!(out.is_empty());
        after.set_string(3, 1, "ab", ullage_tui::Style::new().fg(Color::Red));
        write_changes(&before, &after, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "\x1b[2;4H\x1b[0;31mab\x1b[0m");
    }
}
