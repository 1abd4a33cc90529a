//! What does an exported table have that a recorded one has not? In each row of a sample the seconds since the start; and of
//! a process its role and its resident set. Each comes of what is recorded: a recording holds facts only.

use crate::columns::{Cells, Columns};
use crate::table::{f64, text, u64, Column, Table, ALL};
use std::collections::HashMap;
use std::sync::LazyLock;
use ullage_model::{ClockTicks, Event, EventKind, Item, ProcessId};

const NS_PER_S: f64 = 1e9;

static EXPORTED: LazyLock<Vec<Table>> = LazyLock::new(|| ALL.iter().map(|table| with_more(table)).collect());

/// The table as it is exported: its columns, and the derived ones behind them.
pub(crate) fn exported(table: &'static Table) -> &'static Table {
    EXPORTED.iter().find(|one| one.name == table.name).unwrap_or(table)
}

fn with_more(table: &Table) -> Table {
    let mut columns = table.columns.to_vec();
    columns.push(f64("seconds"));
    if table.name == "processes" {
        columns.extend([text("role"), u64("rss_bytes")]);
    }
    // Once for the life of the program.
    Table { name: table.name, columns: columns.leak(), sorted_by: table.sorted_by }
}

/// What the derived columns come of.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// When each sample was taken, by its tick.
    at_ns: HashMap<u64, u64>,
    /// The role that was known last.
    roles: HashMap<ProcessId, String>,
}

impl Derived {
    /// Takes in what a replay gives.
    pub(crate) fn item(&mut self, item: &Item) {
        match item {
            Item::Event(Event { what: EventKind::ProcessSeen { facts }, .. }) => {
                self.roles.insert(facts.id, facts.role.label());
            }
            Item::Event(Event { what: EventKind::RoleKnown { id, role }, .. }) => {
                self.roles.insert(*id, role.label());
            }
            _ => {}
        }
    }

    /// Takes in the rows of a table that says when samples were taken; `ticks` is exported first.
    pub(crate) fn times(&mut self, columns: &Columns) {
        let Some(at) = place(columns, "at_ns").filter(|_| columns.table.name == "ticks") else { return };
        let rows = (0..columns.rows).filter_map(|row| Some((columns.u64(0, row)?, columns.u64(at, row)?)));
        self.at_ns.extend(rows);
    }

    /// The derived columns of these rows.
    pub(crate) fn cells(&self, columns: &Columns) -> Vec<Cells> {
        let more = &exported(columns.table).columns[columns.table.columns.len()..];
        more.iter().map(|column| self.column(column, columns)).collect()
    }

    fn column(&self, column: &Column, columns: &Columns) -> Cells {
        let rows = 0..columns.rows;
        let number = |name: &str, row: usize| columns.u64(place(columns, name)?, row);
        match column.name {
            "role" => Cells::Text(rows.map(|row| self.role(columns, row)).collect()),
            "rss_bytes" => {
                let parts = ["anonymous_bytes", "file_bytes", "shared_bytes"];
                let sum = |row| parts.iter().try_fold(0u64, |sum, part| Some(sum + number(part, row)?));
                Cells::U64(rows.map(sum).collect())
            }
            _ => {
                let at =
                    |row| number("at_ns", row).or_else(|| self.at_ns.get(&columns.u64(0, row)?).copied());
                Cells::F64(rows.map(|row| at(row).map(|at| at as f64 / NS_PER_S)).collect())
            }
        }
    }

    fn role(&self, columns: &Columns, row: usize) -> Option<String> {
        let pid = columns.i32(place(columns, "pid")?, row)?;
        let start = ClockTicks(columns.u64(place(columns, "start_ticks")?, row)?);
        self.roles.get(&ProcessId { pid, start }).cloned()
    }
}

fn place(columns: &Columns, name: &str) -> Option<usize> {
    columns.table.columns.iter().position(|column| column.name == name)
}
