//! Where does text reach the cells? Here alone, cleaned of what would steer a terminal, cut at the edge.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ullage_report::format;

/// What a text is, for whoever sees colours; each says the same without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Dim,
    Bold,
    Good,
    Warn,
    Bad,
    /// A heading of columns.
    Heading,
}

/// Draws lines of text into a rectangle.
pub(crate) struct Painter<'a> {
    buffer: &'a mut Buffer,
    pub(crate) area: Rect,
    colour: bool,
}

impl<'a> Painter<'a> {
    pub(crate) fn new(buffer: &'a mut Buffer, area: Rect, colour: bool) -> Painter<'a> {
        let area = area.intersection(buffer.area);
        Painter { buffer, area, colour }
    }

    /// The same for a part: so many lines from line `top` on.
    pub(crate) fn part(&mut self, top: u16, lines: u16) -> Painter<'_> {
        let top = top.min(self.area.height);
        let lines = lines.min(self.area.height - top);
        let area = Rect { y: self.area.y + top, height: lines, ..self.area };
        Painter { buffer: self.buffer, area, colour: self.colour }
    }

    pub(crate) fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    pub(crate) fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Text from column `x` of line `y` on; returns the column behind it.
    pub(crate) fn put(&mut self, x: usize, y: usize, text: &str, ink: Ink) -> usize {
        if x >= self.width() || y >= self.height() {
            return x;
        }
        let (left, line) = (self.area.x + x as u16, self.area.y + y as u16);
        let style = self.style(ink);
        let (end, _) = self.buffer.set_stringn(left, line, format::clean(text), self.width() - x, style);
        usize::from(end.saturating_sub(self.area.x))
    }

    /// Text that ends before column `end`.
    pub(crate) fn put_right(&mut self, end: usize, y: usize, text: &str, ink: Ink) {
        let width = text.chars().count();
        self.put(end.saturating_sub(width), y, text, ink);
    }

    /// Marks a line as the one that keys act on.
    pub(crate) fn select(&mut self, y: usize) {
        if y < self.height() {
            let line = Rect { y: self.area.y + y as u16, height: 1, ..self.area };
            self.buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    fn style(&self, ink: Ink) -> Style {
        let colour = |colour| if self.colour { Style::new().fg(colour) } else { Style::new() };
        match ink {
            Ink::Plain => Style::new(),
            Ink::Dim => Style::new().add_modifier(Modifier::DIM),
            Ink::Bold => Style::new().add_modifier(Modifier::BOLD),
            Ink::Good => colour(Color::Green),
            Ink::Warn => colour(Color::Yellow).add_modifier(Modifier::BOLD),
            Ink::Bad => colour(Color::Red).add_modifier(Modifier::BOLD),
            Ink::Heading => Style::new().add_modifier(Modifier::UNDERLINED),
        }
    }
}

/// Eighths of a line's height.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A line of levels from 0 to 8.
pub(crate) fn line(levels: &[u8]) -> String {
    levels.iter().map(|level| BARS[usize::from(*level).min(8)]).collect()
}

/// A horizontal bar of this share of `width` cells.
pub(crate) fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

/// Columns of memory over time: of each stretch the largest reading, against the largest of all.
pub(crate) fn trend(totals: &[(ullage_model::At, u64)], width: usize) -> Vec<u8> {
    let (Some((first, _)), Some((last, _))) = (totals.first(), totals.last()) else { return Vec::new() };
    if width == 0 {
        return Vec::new();
    }
    let span = last.0.saturating_sub(first.0).max(1);
    let mut columns = vec![None; width.min(totals.len())];
    for (at, bytes) in totals {
        let place = u128::from(at.0 - first.0) * (columns.len() as u128 - 1) / u128::from(span);
        let column: &mut Option<u64> = &mut columns[place as usize];
        *column = (*column).max(Some(*bytes));
    }
    let most = totals.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1);
    let mut before = 0;
    columns
        .into_iter()
        .map(|bytes| {
            // Nothing was read in a stretch: it stands as it stood.
            let bytes = bytes.unwrap_or(before);
            before = bytes;
            ((u128::from(bytes) * 8 / u128::from(most)) as u8).max(u8::from(bytes > 0))
        })
        .collect()
}
