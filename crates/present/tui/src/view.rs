//! What does the view know, and how do news change it?

use crate::history::History;
use crate::rows::{rows, Row, Sort};
use crate::screens;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use ullage_job_state::{Happened, JobState};
use ullage_model::{At, ProcessId, Verdict};

/// Events that are kept: the first ones tell the cause, the last ones what goes on.
const FIRST_EVENTS: usize = 500;
const LAST_EVENTS: usize = 1500;

/// What the first line says of the run.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// COMMAND; hostile text.
    pub command: Vec<String>,
    /// Job id, node and rank, as far as a launcher set them.
    pub place: Vec<String>,
}

/// What is known of a finished run before its samples are read. Hostile text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// How it ended.
    pub outcome: String,
    /// The most memory of the job, each page once.
    pub peak_bytes: Option<u64>,
    /// Titles of its findings, the first one first.
    pub findings: Vec<String>,
}

/// How far the run is, and how far it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Standing {
    /// What was recorded before is being read.
    #[default]
    Reading,
    /// The run goes on, and all of it was read.
    Live,
    /// The run ended like this.
    Ended(String),
    /// It cannot be read any more, for this reason.
    Lost(String),
}

/// The screens, in the order of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// Processes.
    #[default]
    Processes,
    /// What the bytes are.
    Memory,
    /// Limits.
    Limits,
    /// Shared segments.
    Shared,
    /// Events.
    Events,
    /// The verdict so far.
    Verdict,
    /// Keys and columns.
    Help,
}

impl Screen {
    /// Every screen, with the key that shows it and its name.
    pub const ALL: [(char, &'static str, Screen); 7] = [
        ('1', "processes", Screen::Processes),
        ('2', "memory", Screen::Memory),
        ('3', "limits", Screen::Limits),
        ('4', "shared", Screen::Shared),
        ('5', "events", Screen::Events),
        ('6', "verdict", Screen::Verdict),
        ('?', "help", Screen::Help),
    ];
}

/// All that is drawn.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The run.
    pub heading: Heading,
    /// How far it is.
    pub standing: Standing,
    /// Shown until the recording is read.
    pub known: Option<Known>,
    /// Colours are wanted.
    pub colour: bool,
    pub(crate) history: History,
    first_events: Vec<Happened>,
    last_events: VecDeque<Happened>,
    pub(crate) events_left_out: usize,
    pub(crate) verdict: Option<Box<Verdict>>,
    pub(crate) screen: Screen,
    /// The moment that is shown; none: the newest.
    pub(crate) at: Option<At>,
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    pub(crate) typing: bool,
    pub(crate) selected: Option<ProcessId>,
    pub(crate) folded: HashSet<ProcessId>,
    pub(crate) scroll: usize,
    /// Lines of the last frame that list something.
    pub(crate) page: usize,
    pub(crate) size: (u16, u16),
}

impl View {
    /// Of a run of which nothing was read.
    pub fn new(heading: Heading, colour: bool) -> View {
        View { heading, colour, size: (80, 24), page: 1, ..View::default() }
    }

    /// The next moment.
    pub fn state(&mut self, state: Arc<JobState>) {
        self.history.push(state);
    }

    /// The next event.
    pub fn happened(&mut self, happened: Happened) {
        if self.first_events.len() < FIRST_EVENTS {
            return self.first_events.push(happened);
        }
        self.last_events.push_back(happened);
        if self.last_events.len() > LAST_EVENTS {
            self.last_events.pop_front();
            self.events_left_out += 1;
        }
    }

    /// The verdict of all that was read so far.
    pub fn judged(&mut self, verdict: Box<Verdict>) {
        self.verdict = Some(verdict);
    }

    /// The terminal has this size now.
    pub fn resized(&mut self, width: u16, height: u16) {
        self.size = (width, height);
        self.page = usize::from(height).saturating_sub(crate::frame::OTHER_LINES).max(1);
    }

    /// The moment that is shown; none where nothing was read.
    pub(crate) fn shown(&self) -> Option<&Arc<JobState>> {
        match self.at {
            Some(at) => self.history.at(at),
            None => self.history.last(),
        }
    }

    /// Events up to the moment that is shown, the latest first.
    pub(crate) fn events(&self) -> Vec<&Happened> {
        let until = self.at;
        let all = self.first_events.iter().chain(&self.last_events);
        let mut events: Vec<&Happened> =
            all.filter(|happened| until.is_none_or(|until| happened.at <= until)).collect();
        events.reverse();
        if !self.filter.is_empty() {
            let filter = self.filter.to_lowercase();
            events.retain(|happened| happened.text.to_lowercase().contains(&filter));
        }
        events
    }

    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        self.shown().map(|state| rows(state, self.sort, &self.filter, &self.folded)).unwrap_or_default()
    }

    /// Lines that the shown screen would list, were there room.
    pub(crate) fn lines(&self) -> usize {
        match self.screen {
            Screen::Processes => self.rows().len(),
            screen => screens::lines(self, screen),
        }
    }

    /// Place of the selected process among the rows.
    pub(crate) fn place(&self, rows: &[Row<'_>]) -> usize {
        let id = self.selected;
        rows.iter().position(|row| Some(row.process.identity.id) == id).unwrap_or(0)
    }

    /// Draws everything into a buffer of this size. Pure: the same view gives the same cells.
    pub fn draw(&self, area: Rect) -> Buffer {
        let mut buffer = Buffer::empty(area);
        crate::frame::draw(self, &mut buffer, area);
        buffer
    }
}
