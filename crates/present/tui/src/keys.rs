//! What does a key do? It changes the view, and asks for no more than to be drawn again, or to leave.

use crate::view::{Screen, View};

/// A key, as far as the view knows keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A letter, digit or sign.
    Char(char),
    /// ↑
    Up,
    /// ↓
    Down,
    /// ←
    Left,
    /// →
    Right,
    /// ← with Shift
    FarLeft,
    /// → with Shift
    FarRight,
    /// Page up
    PageUp,
    /// Page down
    PageDown,
    /// Home
    Home,
    /// End
    End,
    /// Enter
    Enter,
    /// Escape
    Escape,
    /// Backspace
    Backspace,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The view changed, or may have.
    Draw,
    /// To leave.
    Quit,
}

/// Steps of a key with Shift.
const FAR: isize = 30;
/// Letters of a filter.
const MOST_LETTERS: usize = 60;

impl View {
    /// Does what a key asks for.
    pub fn key(&mut self, key: Key) -> Asked {
        if self.typing {
            self.typed(key);
            return Asked::Draw;
        }
        match key {
            Key::Char('q') => return Asked::Quit,
            Key::Char(sign) => self.sign(sign),
            Key::Up => self.go(-1),
            Key::Down => self.go(1),
            Key::PageUp => self.go(-(self.page as isize)),
            Key::PageDown => self.go(self.page as isize),
            Key::Home => self.go(isize::MIN / 2),
            Key::End => self.go(isize::MAX / 2),
            Key::Left => self.step(-1),
            Key::Right => self.step(1),
            Key::FarLeft => self.step(-FAR),
            Key::FarRight => self.step(FAR),
            Key::Enter => self.fold(),
            Key::Escape if self.screen == Screen::Help => self.show(Screen::Processes),
            Key::Escape if !self.filter.is_empty() => self.filter.clear(),
            Key::Escape => self.at = None,
            Key::Backspace => {}
        }
        Asked::Draw
    }

    fn sign(&mut self, sign: char) {
        let screen = Screen::ALL.iter().find(|(key, _, _)| *key == sign);
        match (sign, screen) {
            (_, Some((_, _, screen))) => self.show(*screen),
            ('v', _) => self.show(Screen::Verdict),
            ('h', _) => self.show(Screen::Help),
            (' ', _) => {
                self.at = match self.at {
                    Some(_) => None,
                    None => self.shown().map(|state| state.at),
                }
            }
            ('g', _) => self.at = self.history.first(),
            ('G', _) => self.at = None,
            ('/', _) => self.typing = true,
            ('s', _) => self.sort = self.sort.next(),
            ('j', _) => self.go(1),
            ('k', _) => self.go(-1),
            ('[', _) => self.step(-FAR),
            (']', _) => self.step(FAR),
            _ => {}
        }
    }

    fn show(&mut self, screen: Screen) {
        self.screen = screen;
        self.scroll = 0;
    }

    fn typed(&mut self, key: Key) {
        match key {
            Key::Char(sign) if self.filter.chars().count() < MOST_LETTERS && !sign.is_control() => {
                self.filter.push(sign)
            }
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.clear();
            }
            _ => {}
        }
        self.scroll = 0;
    }

    fn go(&mut self, lines: isize) {
        if self.screen == Screen::Processes {
            let rows = self.rows();
            let last = rows.len().saturating_sub(1);
            let place = self.place(&rows).saturating_add_signed(lines).min(last);
            self.selected = rows.get(place).map(|row| row.process.identity.id);
        } else {
            let most = self.lines().saturating_sub(self.page);
            self.scroll = self.scroll.saturating_add_signed(lines).min(most);
        }
    }

    fn step(&mut self, steps: isize) {
        let Some(now) = self.shown().map(|state| state.at) else { return };
        // A step forward from the newest stays with what comes.
        if self.at.is_none() && steps > 0 {
            return;
        }
        self.at = self.history.step(now, steps);
    }

    fn fold(&mut self) {
        if self.screen != Screen::Processes {
            return;
        }
        let rows = self.rows();
        let Some(id) = rows.get(self.place(&rows)).map(|row| row.process.identity.id) else { return };
        if !self.folded.remove(&id) {
            self.folded.insert(id);
        }
    }
}
