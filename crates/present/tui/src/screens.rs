//! What does each screen list?

use crate::frame::{limit_ink, shortened};
use crate::painter::{bar, line, Ink, Painter};
use crate::rows::{Row, Sort};
use crate::view::{Screen, View};
use ullage_job_state::{JobState, Weight};
use ullage_model::Severity;
use ullage_report::text::Style;
use ullage_report::{format, text};

pub(crate) fn draw(view: &View, painter: &mut Painter<'_>) {
    match view.screen {
        Screen::Processes => processes(view, painter),
        Screen::Memory => memory(view, painter),
        Screen::Limits => limits(view, painter),
        Screen::Shared => shared(view, painter),
        Screen::Events => events(view, painter),
        Screen::Verdict => verdict(view, painter),
        Screen::Help => help(view, painter),
    }
}

/// Lines that a screen other than that of the processes would list.
pub(crate) fn lines(view: &View, screen: Screen) -> usize {
    let state = view.shown();
    match screen {
        Screen::Processes => 0,
        Screen::Memory => state.map_or(0, |state| memory_lines(state).len()),
        Screen::Limits => state.map_or(0, |state| state.limits.len()),
        Screen::Shared => state.and_then(|state| state.segments.as_ref()).map_or(0, |list| list.len()),
        Screen::Events => view.events().len(),
        Screen::Verdict => verdict_lines(view, usize::from(view.size.0)).len(),
        Screen::Help => HELP.len(),
    }
}

/// From which line on so many lines of `count` are shown.
fn top(scroll: usize, count: usize, room: usize) -> usize {
    scroll.min(count.saturating_sub(room))
}

/// A column of figures: its heading, its width, and the least width of a screen that has it.
struct Column {
    heading: &'static str,
    width: usize,
    from: usize,
    text: fn(&Row<'_>) -> String,
}

const COLUMNS: [Column; 7] = [
    Column { heading: "private", width: 9, from: 0, text: |row| bytes(row.figures.private) },
    Column { heading: "shared", width: 9, from: 60, text: |row| bytes(row.figures.shared) },
    Column { heading: "swap", width: 9, from: 90, text: |row| bytes(row.figures.swap) },
    Column { heading: "files", width: 7, from: 70, text: |row| count(row.figures.files) },
    Column { heading: "maps", width: 8, from: 75, text: |row| count(row.figures.mappings) },
    Column { heading: "cpu", width: 7, from: 50, text: |row| share(row.figures.cpu) },
    Column { heading: "private over time", width: 18, from: 100, text: |row| line(&row.process.line) },
];

/// Three digits and a letter: columns are narrow.
fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "?".into(), |bytes| if bytes == 0 { "0".into() } else { format::bytes(bytes) })
}

fn count(count: Option<u64>) -> String {
    count.map_or_else(|| "?".into(), format::count)
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "?".into(), |share| format!("{:.0} %", share * 100.0))
}

fn processes(view: &View, painter: &mut Painter<'_>) {
    let rows = view.rows();
    let width = painter.width();
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| width >= column.from).collect();
    let figures: usize = columns.iter().map(|column| column.width).sum();
    let names = width.saturating_sub(figures + 1).clamp(12, 64);
    let heading = match view.sort {
        Sort::Tree if view.filter.is_empty() => "process (sum of its subtree)".to_owned(),
        Sort::Tree => "process".to_owned(),
        sort => format!("process, by {}", sort.name()),
    };
    painter.put(1, 0, &shortened(&heading, names.saturating_sub(1)), Ink::Heading);
    let mut end = names;
    for column in &columns {
        end += column.width;
        painter.put_right(end, 0, column.heading, Ink::Heading);
    }
    // What is left to the right, on a wide screen, shows what each runs.
    let command = names + figures + 2;
    let has_command = width >= command + 20;
    if has_command {
        painter.put(command, 0, "command", Ink::Heading);
    }
    let room = painter.height().saturating_sub(1);
    let place = view.place(&rows);
    // The selected one stays in the middle where there is more than fits.
    let from = top(place.saturating_sub(room / 2), rows.len(), room);
    for (y, row) in rows.iter().skip(from).take(room).enumerate() {
        let identity = &row.process.identity;
        let name = format!("{}{}{} {}", row.branch, label(row), tick(row), identity.id.pid);
        let y = y + 1;
        let ink = match &row.process.exited {
            Some(exit) if exit.failed => Ink::Bad,
            Some(_) => Ink::Dim,
            None => Ink::Plain,
        };
        let name = match row.folded {
            0 => name,
            folded => format!("{name} +{folded}"),
        };
        let x = painter.put(1, y, &shortened(&name, names.saturating_sub(1)), ink);
        if let Some(exit) = &row.process.exited {
            let how = format!("{} at {}", exit.how, format::duration(exit.at.seconds().round()));
            painter.put(x.max(names.min(x + 2)) + 1, y, &how, ink);
        } else {
            let mut end = names;
            for column in &columns {
                end += column.width;
                painter.put_right(end, y, &(column.text)(row), Ink::Plain);
            }
            if has_command {
                painter.put(
                    command,
                    y,
                    &shortened(&format::command(&identity.command), width - command),
                    Ink::Dim,
                );
            }
        }
        if from + y - 1 == place && view.selected.is_some() {
            painter.select(y);
        }
    }
    if rows.is_empty() {
        let text = match (view.shown().is_some(), view.filter.is_empty()) {
            (false, _) => "",
            (true, false) => "no process matches the filter",
            (true, true) => "no process of the job runs",
        };
        painter.put(1, 1, text, Ink::Dim);
    }
}

/// The role, and the name where the role says nothing.
fn label(row: &Row<'_>) -> String {
    use ullage_model::Role;
    let identity = &row.process.identity;
    match identity.role {
        Role::Other | Role::Helper | Role::Main => format!("{} ({})", identity.role.label(), identity.name),
        _ => identity.role.label(),
    }
}

fn tick(row: &Row<'_>) -> &'static str {
    if row.process.exited.is_some() {
        " †"
    } else {
        ""
    }
}

/// What the bytes are: a category, its bytes, its share, and whether it stands beside the total.
fn memory_lines(state: &JobState) -> Vec<(&str, u64, bool)> {
    let memory = &state.memory;
    let within = memory.categories.iter().map(|(name, bytes)| (name.as_str(), *bytes, false));
    let beside = memory.beside.iter().map(|(name, bytes)| (name.as_str(), *bytes, true));
    within.chain(beside).collect()
}

fn memory(view: &View, painter: &mut Painter<'_>) {
    const BYTES: usize = 46;
    const SHARE: usize = 60; // as wide as "under 0.01 %"
    painter.put(1, 0, "memory of the job, each page once", Ink::Heading);
    painter.put_right(BYTES, 0, "bytes", Ink::Heading);
    painter.put_right(SHARE, 0, "share", Ink::Heading);
    let Some(state) = view.shown() else { return };
    let lines = memory_lines(state);
    let room = painter.height().saturating_sub(1);
    let total = state.memory.bytes.max(1) as f64;
    for (y, (name, bytes, beside)) in
        lines.iter().skip(top(view.scroll, lines.len(), room)).take(room).enumerate()
    {
        let y = y + 1;
        let ink = if *beside { Ink::Dim } else { Ink::Plain };
        let name = if *beside { format!("beside it: {name}") } else { (*name).to_owned() };
        painter.put(1, y, &shortened(&name, 35), ink);
        painter.put_right(BYTES, y, &format::bytes(*bytes), ink);
        if !beside {
            let share = *bytes as f64 / total;
            painter.put_right(SHARE, y, &format::share(share), ink);
            let width = painter.width().saturating_sub(SHARE + 3).min(60);
            painter.put(SHARE + 2, y, &bar(share, width), Ink::Good);
        }
    }
}

fn limits(view: &View, painter: &mut Painter<'_>) {
    let width = painter.width();
    let names = width.saturating_sub(48).clamp(16, 70);
    painter.put(1, 0, "limit, nearest first", Ink::Heading);
    let ends = [names + 11, names + 22, names + 33];
    for (end, heading) in ends.iter().zip(["used", "limit", "left"]) {
        painter.put_right(*end, 0, heading, Ink::Heading);
    }
    painter.put(names + 35, 0, "time left", Ink::Heading);
    let Some(state) = view.shown() else { return };
    let room = painter.height().saturating_sub(1);
    let count = state.limits.len();
    for (y, state) in state.limits.iter().skip(top(view.scroll, count, room)).take(room).enumerate() {
        let y = y + 1;
        let ink = limit_ink(state);
        let [name, used, limit, left, time] = text::limit_row(state);
        painter.put(1, y, &shortened(&name, names.saturating_sub(1)), ink);
        for (end, text) in ends.iter().zip([used, limit, left]) {
            painter.put_right(*end, y, &text, ink);
        }
        painter.put(names + 35, y, &time, ink);
    }
    if count == 0 {
        painter.put(1, 1, "no limit was judged yet", Ink::Dim);
    }
}

fn shared(view: &View, painter: &mut Painter<'_>) {
    let names = painter.width().saturating_sub(56).clamp(12, 60);
    painter.put(1, 0, "segment, largest first", Ink::Heading);
    for (end, heading) in [(names + 10, "bytes"), (names + 18, "count"), (names + 29, "mapped by")] {
        painter.put_right(end, 0, heading, Ink::Heading);
    }
    painter.put(names + 31, 0, "kind, creator", Ink::Heading);
    let segments = view.shown().and_then(|state| state.segments.as_ref());
    let Some(segments) = segments else {
        painter.put(1, 1, "segments were not read yet", Ink::Dim);
        return;
    };
    let room = painter.height().saturating_sub(1);
    let from = top(view.scroll, segments.len(), room);
    for (y, segment) in segments.iter().skip(from).take(room).enumerate() {
        let y = y + 1;
        let ink = if segment.unused { Ink::Warn } else { Ink::Plain };
        painter.put(1, y, &shortened(&segment.name, names.saturating_sub(1)), ink);
        painter.put_right(names + 10, y, &format::bytes(segment.bytes), ink);
        painter.put_right(names + 18, y, &format::count(segment.count), ink);
        let mappers = if segment.unused { "nobody".into() } else { format::count(segment.mappers as u64) };
        painter.put_right(names + 29, y, &mappers, ink);
        let creator = segment.creator.map(|pid| format!(", {pid}")).unwrap_or_default();
        painter.put(names + 31, y, &format!("{}{creator}", segment.kind.word()), ink);
    }
    if segments.is_empty() {
        painter.put(1, 1, "the job has no shared segment", Ink::Dim);
    }
}

fn events(view: &View, painter: &mut Painter<'_>) {
    painter.put_right(12, 0, "at", Ink::Heading);
    painter.put(14, 0, "event, latest first", Ink::Heading);
    let events = view.events();
    let room = painter.height().saturating_sub(1);
    for (y, happened) in events.iter().skip(top(view.scroll, events.len(), room)).take(room).enumerate() {
        let y = y + 1;
        let ink = if happened.weight == Weight::Failure { Ink::Bad } else { Ink::Plain };
        painter.put_right(12, y, &format::duration(happened.at.seconds()), Ink::Dim);
        painter.put(14, y, &shortened(&happened.text, painter.width().saturating_sub(14)), ink);
    }
    if events.is_empty() {
        painter.put(1, 1, "no event so far", Ink::Dim);
    }
}

fn verdict_lines(view: &View, width: usize) -> Vec<String> {
    let Some(verdict) = &view.verdict else {
        return view.known.iter().flat_map(|known| known.findings.clone()).collect();
    };
    let plain = Style::plain(width.saturating_sub(2).clamp(20, 120));
    text::verdict(verdict, &plain).lines().map(str::to_owned).collect()
}

fn verdict(view: &View, painter: &mut Painter<'_>) {
    let lines = verdict_lines(view, painter.width());
    if view.verdict.is_none() && lines.is_empty() {
        painter.put(1, 0, "no verdict yet", Ink::Dim);
        return;
    }
    let findings = view.verdict.iter().flat_map(|verdict| &verdict.findings);
    let ink = match findings.map(|finding| finding.severity).next() {
        Some(Severity::Fatal) => Ink::Bad,
        Some(Severity::Warning) => Ink::Warn,
        _ => Ink::Bold,
    };
    let room = painter.height();
    let from = top(view.scroll, lines.len(), room);
    for (y, text) in lines.iter().skip(from).take(room).enumerate() {
        painter.put(1, y, text, if from + y == 0 { ink } else { Ink::Plain });
    }
}

const HELP: [&str; 20] = [
    "1 to 6          show a screen",
    "↑ ↓  j k        select a process, or scroll; page up, page down, home, end",
    "← →             step through the recording; with Shift, or [ ], 30 steps",
    "g  G            go to the first reading, back to the newest",
    "space           freeze the screen at this reading, and go on",
    "Enter           fold the processes below the selected one",
    "s               sort by the next column",
    "/               show what matches: role, name, pid, argument, event",
    "Esc             remove the filter, then go back to the newest reading",
    "q               quit; the job continues",
    "",
    "private         memory that the process alone holds",
    "shared          shared pages that it maps; of a subtree the largest",
    "swap            private memory in swap",
    "files, maps     open descriptors, and mappings as last counted",
    "cpu             share of one core since the reading before",
    "†               exited; it stays for 60 s, with its cause",
    "",
    "Older readings are thinned: the lowest and the highest of each stretch of",
    "time stay. The verdict is of all that was read, at whatever time you look.",
];

fn help(view: &View, painter: &mut Painter<'_>) {
    let room = painter.height();
    for (y, text) in HELP.iter().skip(top(view.scroll, HELP.len(), room)).take(room).enumerate() {
        painter.put(1, y, text, Ink::Plain);
    }
}
