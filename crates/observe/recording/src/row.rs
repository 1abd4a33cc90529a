//! How does one value become one cell, and come back the same? Fields are written and read in the order of the
//! table's columns; a value that is missing or unlimited becomes a null with a word in the `absent` column.

use crate::columns::{Cells, Columns};
use crate::table::Table;
use ullage_model::{Bytes, Limit, Measured, Missing};

/// A value of the model that is one row of one table.
pub(crate) trait Record: Sized {
    const TABLE: &'static Table;
    fn encode(&self, row: &mut RowWriter<'_>);
    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow>;
}

/// A row that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("column `{column}` {problem}")]
pub(crate) struct BadRow {
    pub(crate) column: &'static str,
    pub(crate) problem: &'static str,
}

const UNLIMITED: &str = "unlimited";

const fn word(reason: Missing) -> &'static str {
    match reason {
        Missing::NoPermission => "no-permission",
        Missing::KernelTooOld => "kernel-too-old",
        Missing::Vanished => "vanished",
        Missing::NotAsked => "not-asked",
        Missing::Unreadable => "unreadable",
    }
}

/// A word of a newer version, or a damaged one, is "unreadable".
fn reason(word: &str) -> Missing {
    match word {
        "no-permission" => Missing::NoPermission,
        "kernel-too-old" => Missing::KernelTooOld,
        "vanished" => Missing::Vanished,
        "not-asked" => Missing::NotAsked,
        _ => Missing::Unreadable,
    }
}

/// Collects rows of one table.
pub(crate) struct TableBuilder {
    columns: Vec<Cells>,
    rows: usize,
}

impl TableBuilder {
    pub(crate) fn new(table: &'static Table) -> TableBuilder {
        TableBuilder {
            columns: table.columns.iter().map(|column| Cells::nulls(column.kind, 0)).collect(),
            rows: 0,
        }
    }

    pub(crate) fn push(&mut self, record: &impl Record) {
        let mut row = RowWriter { columns: self.columns.iter_mut(), absent: String::new() };
        record.encode(&mut row);
        row.finish();
        self.rows += 1;
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The rows collected so far, by column.
    pub(crate) fn columns(&self) -> &[Cells] {
        &self.columns
    }

    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        self.columns.iter_mut().for_each(Cells::clear);
    }
}

/// Writes the cells of one row, left to right. A record that writes other cells than its table has yields
/// columns of unequal length, which [`crate::message::batch`] refuses.
pub(crate) struct RowWriter<'a> {
    columns: std::slice::IterMut<'a, Cells>,
    absent: String,
}

impl RowWriter<'_> {
    fn null(&mut self) {
        if let Some(cells) = self.columns.next() {
            cells.extend_nulls(1);
        }
    }

    pub(crate) fn nulls(&mut self, cells: usize) {
        for _ in 0..cells {
            self.null();
        }
    }

    pub(crate) fn u64(&mut self, value: u64) {
        if let Some(Cells::U64(cells)) = self.columns.next() {
            cells.push(Some(value));
        }
    }

    pub(crate) fn bytes(&mut self, value: Bytes) {
        self.u64(value.0);
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.optional_i32(Some(value));
    }

    pub(crate) fn optional_i32(&mut self, value: Option<i32>) {
        if let Some(Cells::I32(cells)) = self.columns.next() {
            cells.push(value);
        }
    }

    pub(crate) fn bool(&mut self, value: bool) {
        if let Some(Cells::Bool(cells)) = self.columns.next() {
            cells.push(Some(value));
        }
    }

    pub(crate) fn optional_u64(&mut self, value: Option<u64>) {
        if let Some(Cells::U64(cells)) = self.columns.next() {
            cells.push(value);
        }
    }

    pub(crate) fn optional_text(&mut self, value: Option<&str>) {
        if let Some(Cells::Text(cells)) = self.columns.next() {
            cells.push(value.map(str::to_owned));
        }
    }

    pub(crate) fn text(&mut self, value: &str) {
        if let Some(Cells::Text(cells)) = self.columns.next() {
            cells.push(Some(value.to_owned()));
        }
    }

    /// Says why the cells of `name` are null.
    pub(crate) fn absent(&mut self, name: &str, why: Missing) {
        self.note(name, word(why));
    }

    fn note(&mut self, name: &str, why: &str) {
        if !self.absent.is_empty() {
            self.absent.push(' ');
        }
        self.absent.push_str(name);
        self.absent.push('=');
        self.absent.push_str(why);
    }

    pub(crate) fn measured(&mut self, name: &str, value: Measured<u64>) {
        match value {
            Measured::Known(value) => self.u64(value),
            Measured::Missing(why) => {
                self.absent(name, why);
                self.null();
            }
        }
    }

    pub(crate) fn limit(&mut self, name: &str, value: Limit) {
        match value {
            Limit::At(value) => self.u64(value),
            Limit::Unlimited => {
                self.note(name, UNLIMITED);
                self.null();
            }
        }
    }

    pub(crate) fn measured_limit(&mut self, name: &str, value: Measured<Limit>) {
        match value {
            Measured::Known(limit) => self.limit(name, limit),
            Measured::Missing(why) => {
                self.absent(name, why);
                self.null();
            }
        }
    }

    pub(crate) fn measured_bool(&mut self, name: &str, value: Measured<bool>) {
        match value {
            Measured::Known(value) => self.bool(value),
            Measured::Missing(why) => {
                self.absent(name, why);
                self.null();
            }
        }
    }

    /// The last cell of tables that have an `absent` column.
    fn finish(mut self) {
        if let Some(Cells::Text(cells)) = self.columns.next() {
            cells.push((!self.absent.is_empty()).then_some(self.absent));
        }
    }
}

/// Reads the cells of one row, left to right.
pub(crate) struct RowReader<'a> {
    columns: &'a Columns,
    row: usize,
    next: usize,
    absent: Option<&'a str>,
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(columns: &'a Columns, row: usize) -> RowReader<'a> {
        let last = columns.table.columns.len() - 1;
        let absent =
            if columns.table.columns[last].name == "absent" { columns.text(last, row) } else { None };
        RowReader { columns, row, next: 0, absent }
    }

    fn step(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn or_bad<T>(&self, value: Option<T>) -> Result<T, BadRow> {
        value.ok_or_else(|| self.bad("is empty and must not be"))
    }

    /// An error about the cell read last.
    pub(crate) fn bad(&self, problem: &'static str) -> BadRow {
        let last = self.next.saturating_sub(1);
        BadRow { column: self.columns.table.columns.get(last).map_or("?", |c| c.name), problem }
    }

    pub(crate) fn skip(&mut self, cells: usize) {
        self.next += cells;
    }

    pub(crate) fn optional_u64(&mut self) -> Option<u64> {
        let column = self.step();
        self.columns.u64(column, self.row)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, BadRow> {
        let value = self.optional_u64();
        self.or_bad(value)
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, BadRow> {
        self.u64().map(Bytes)
    }

    pub(crate) fn optional_bytes(&mut self) -> Option<Bytes> {
        self.optional_u64().map(Bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, BadRow> {
        let column = self.step();
        self.or_bad(self.columns.i32(column, self.row))
    }

    pub(crate) fn optional_i32(&mut self) -> Option<i32> {
        let column = self.step();
        self.columns.i32(column, self.row)
    }

    fn optional_bool(&mut self) -> Option<bool> {
        let column = self.step();
        self.columns.bool(column, self.row)
    }

    pub(crate) fn bool(&mut self) -> Result<bool, BadRow> {
        let value = self.optional_bool();
        self.or_bad(value)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, BadRow> {
        let column = self.step();
        self.or_bad(self.columns.text(column, self.row))
    }

    pub(crate) fn optional_text(&mut self) -> Option<&'a str> {
        let column = self.step();
        self.columns.text(column, self.row)
    }

    fn note(&self, name: &str) -> Option<&'a str> {
        let notes = self.absent?.split(' ');
        notes.filter_map(|note| note.split_once('=')).find(|(of, _)| *of == name).map(|(_, why)| why)
    }

    /// Why the cells of `name` are null, where a reason stands there.
    pub(crate) fn absent(&self, name: &str) -> Option<Missing> {
        self.note(name).map(reason)
    }

    fn why(&self, name: &str) -> Missing {
        self.absent(name).unwrap_or(Missing::Unreadable)
    }

    pub(crate) fn measured(&mut self, name: &str) -> Measured<u64> {
        match self.optional_u64() {
            Some(value) => Measured::Known(value),
            None => Measured::Missing(self.why(name)),
        }
    }

    pub(crate) fn limit(&mut self, name: &str) -> Result<Limit, BadRow> {
        match self.measured_limit(name) {
            Measured::Known(limit) => Ok(limit),
            Measured::Missing(_) => Err(self.bad("is neither a number nor unlimited")),
        }
    }

    pub(crate) fn measured_limit(&mut self, name: &str) -> Measured<Limit> {
        match self.optional_u64() {
            Some(value) => Measured::Known(Limit::At(value)),
            None if self.note(name) == Some(UNLIMITED) => Measured::Known(Limit::Unlimited),
            None => Measured::Missing(self.why(name)),
        }
    }

    pub(crate) fn measured_bool(&mut self, name: &str) -> Measured<bool> {
        match self.optional_bool() {
            Some(value) => Measured::Known(value),
            None => Measured::Missing(self.why(name)),
        }
    }
}
