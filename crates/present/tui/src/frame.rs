//! What stands on every screen: the run, its memory and the nearest limit above; the keys below.

use crate::painter::{line, trend, Ink, Painter};
use crate::screens;
use crate::view::{Known, Screen, Standing, View};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ullage_job_state::JobState;
use ullage_model::{At, GrowthClass, LimitState};
use ullage_report::{format, text};

/// Lines of a frame that do not list: three above, one empty, the headings, one below.
pub(crate) const OTHER_LINES: usize = 6;
const ABOVE: u16 = 4;

pub(crate) fn draw(view: &View, buffer: &mut Buffer, area: Rect) {
    let mut painter = Painter::new(buffer, area, view.colour);
    let height = area.height;
    first_line(view, &mut painter);
    match view.shown() {
        Some(state) if before_reading(view).is_none() => {
            memory_line(view, state, &mut painter);
            limit_line(view, state, &mut painter);
        }
        _ if before_reading(view).is_some() => known_lines(view, &mut painter),
        _ => {
            let text = match &view.standing {
                Standing::Lost(why) => format!("the recording cannot be read: {why}"),
                Standing::Ended(_) => "the recording holds no sample".into(),
                Standing::Live => "waiting for the first sample".into(),
                Standing::Reading => "reading the recording".into(),
            };
            painter.put(1, 1, &text, Ink::Plain);
        }
    }
    if height > ABOVE + 1 {
        let mut body = painter.part(ABOVE, height - ABOVE - 1);
        screens::draw(view, &mut body);
    }
    if height > ABOVE {
        let mut below = painter.part(height - 1, 1);
        last_line(view, &mut below);
    }
}

/// What is known of the run while its samples are still read: those of its beginning say little.
fn before_reading(view: &View) -> Option<&Known> {
    view.known.as_ref().filter(|_| view.standing == Standing::Reading && view.at.is_none())
}

fn known_lines(view: &View, painter: &mut Painter<'_>) {
    let Some(known) = before_reading(view) else { return };
    let peak = known.peak_bytes.map_or_else(String::new, |bytes| format!("{} at most", format::bytes(bytes)));
    let x = painter.put(1, 1, &peak, Ink::Bold);
    let read = match view.shown() {
        Some(state) => format!("read so far: {}", format::duration(state.at.seconds().round())),
        None => "reading the recording".into(),
    };
    painter.put(if peak.is_empty() { 1 } else { x + 2 }, 1, &read, Ink::Dim);
    let x = painter.put(1, 2, &known.outcome, Ink::Bold);
    if let Some(title) = known.findings.first() {
        painter.put(x + 3, 2, &shortened(title, painter.width().saturating_sub(x + 3)), Ink::Warn);
    }
}

fn first_line(view: &View, painter: &mut Painter<'_>) {
    let heading = &view.heading;
    let (mark, ink) = mark(view);
    let room = painter.width().saturating_sub(mark.chars().count() + 2);
    let mut parts = vec![format::command(&short_words(&heading.command))];
    parts.extend(heading.place.iter().cloned());
    if let Some(state) = view.shown() {
        parts.push(format::plural(state.running() as u64, "process", "processes"));
        parts.push(format::duration(state.at.seconds().round()));
    }
    // The command gives way to what follows it.
    let rest: usize = parts[1..].iter().map(|part| part.chars().count() + 3).sum();
    let command = shortened(&parts[0], room.saturating_sub(rest + 1).max(8));
    let x = painter.put(1, 0, &command, Ink::Bold);
    let rest: String = parts[1..].iter().map(|part| format!(" · {part}")).collect();
    painter.put(x, 0, &shortened(&rest, room.saturating_sub(x)), Ink::Plain);
    painter.put_right(painter.width().saturating_sub(1), 0, &mark, ink);
}

/// A command whose absolute paths are file names: what tells one job from another stands at their end.
fn short_words(command: &[String]) -> Vec<String> {
    let short = |word: &String| match word.starts_with('/') {
        true => word.rsplit('/').next().unwrap_or_default().to_owned(),
        false => word.clone(),
    };
    command.iter().map(short).collect()
}

/// Where in time the screen stands.
fn mark(view: &View) -> (String, Ink) {
    if let Some(at) = view.at {
        let behind = view.history.last().map_or(0.0, |last| last.at.since(at));
        let behind = format::duration(behind.round());
        let text = match view.standing {
            Standing::Live => format!("FROZEN {behind} ago"),
            _ => format!("{behind} before the end"),
        };
        return (text, Ink::Warn);
    }
    match &view.standing {
        Standing::Reading => ("READING".into(), Ink::Warn),
        Standing::Live => ("LIVE".into(), Ink::Good),
        Standing::Ended(_) => ("ENDED".into(), Ink::Bold),
        Standing::Lost(_) => ("LOST".into(), Ink::Bad),
    }
}

fn memory_line(view: &View, state: &JobState, painter: &mut Painter<'_>) {
    let memory = &state.memory;
    let mut x = painter.put(1, 1, &format::bytes(memory.bytes), Ink::Bold);
    if memory.error_bytes > memory.bytes / 100 {
        x = painter.put(x, 1, &format!(" ±{}", format::bytes(memory.error_bytes)), Ink::Dim);
    }
    let until = view.at.unwrap_or(At(u64::MAX));
    let width = painter.width().saturating_sub(x + 44).clamp(10, 60);
    let levels = trend(&view.history.totals(until), width);
    x = painter.put(x + 1, 1, &line(&levels), Ink::Good);
    if let Some(speed) = state.bytes_per_second {
        let rate = format::rate(speed, "bytes");
        let sign = if speed > 0.0 && rate != "steady" { "+" } else { "" };
        x = painter.put(x + 1, 1, &format!("{sign}{rate}"), Ink::Plain);
    }
    if let Some(growth) = &state.growth {
        let (word, ink) = growth_word(growth.class);
        let process =
            growth.process.as_ref().map(|process| format!(", {} {}", process.role.label(), process.id.pid));
        painter.put(x + 2, 1, &format!("{word}{}", process.unwrap_or_default()), ink);
    }
}

/// The word of a kind of growth; only what does not stop by itself is a warning.
fn growth_word(class: GrowthClass) -> (String, Ink) {
    let ink = match class {
        GrowthClass::None | GrowthClass::Plateau | GrowthClass::WarmUp => Ink::Good,
        GrowthClass::PageCache | GrowthClass::MappedFiles => Ink::Plain,
        _ => Ink::Warn,
    };
    let word = match class {
        GrowthClass::None => "no growth".into(),
        class => class.id().replace('-', " "),
    };
    (word, ink)
}

fn limit_line(view: &View, state: &JobState, painter: &mut Painter<'_>) {
    // What is over meets no limit any more.
    let over = match (&view.standing, view.at) {
        (Standing::Ended(how), None) => Some(how),
        _ => None,
    };
    let x = match state.limits.first().and_then(text::nearest) {
        _ if over.is_some() => painter.put(1, 2, over.map_or("", |how| how), Ink::Bold),
        Some(nearest) => painter.put(1, 2, &nearest, limit_ink(&state.limits[0])),
        None => painter.put(1, 2, "no limit was judged yet", Ink::Dim),
    };
    let worst = view.verdict.as_ref().and_then(|verdict| verdict.findings.first());
    if let Some(finding) = worst.filter(|finding| finding.severity > ullage_model::Severity::Note) {
        let room = painter.width().saturating_sub(x + 8);
        let title = shortened(&finding.title, room);
        painter.put(x + 3, 2, &format!("{title} (6)"), Ink::Warn);
    }
}

/// How a limit is marked.
pub(crate) fn limit_ink(state: &LimitState) -> Ink {
    if state.warning {
        Ink::Bad
    } else if state.time_left_s.is_some() {
        Ink::Warn
    } else {
        Ink::Plain
    }
}

fn last_line(view: &View, painter: &mut Painter<'_>) {
    if view.typing || !view.filter.is_empty() {
        let x = painter.put(1, 0, "filter: ", Ink::Dim);
        let x = painter.put(x, 0, &view.filter, Ink::Bold);
        let hint = if view.typing { "▏ Enter keeps it, Esc removes it" } else { "  Esc removes it" };
        painter.put(x, 0, hint, Ink::Dim);
        return;
    }
    let mut x = 1;
    for (key, name, screen) in Screen::ALL {
        let ink = if screen == view.screen { Ink::Bold } else { Ink::Dim };
        x = painter.put(x, 0, &format!("{key} {name}"), ink) + 1;
    }
    // The longest that there is room for.
    for hint in [
        "←→ time  space freeze  / filter  s sort  Enter fold  q quit",
        "←→ time  space freeze  q quit",
        "q quit",
    ] {
        if x + 1 + hint.chars().count() < painter.width() {
            painter.put(x + 1, 0, hint, Ink::Dim);
            break;
        }
    }
}

/// The text, or its beginning and `…`.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    if most > 0 {
        short.push('…');
    }
    short
}
