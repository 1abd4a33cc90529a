//! What did a part or a tail hold? Its columns in memory, whatever format they came from.

use crate::batch::Batch;
use crate::table::{Kind, Table};

/// The cells of one column.
#[derive(Clone, Debug)]
pub(crate) enum Cells {
    U64(Vec<Option<u64>>),
    I32(Vec<Option<i32>>),
    F64(Vec<Option<f64>>),
    Bool(Vec<Option<bool>>),
    Text(Vec<Option<String>>),
}

/// All columns of a part or a tail, in the order of the table; a column that the file lacks is all null.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) table: &'static Table,
    pub(crate) cells: Vec<Cells>,
    pub(crate) rows: usize,
}

impl Cells {
    pub(crate) fn nulls(kind: Kind, rows: usize) -> Cells {
        match kind {
            Kind::U64 => Cells::U64(vec![None; rows]),
            Kind::I32 => Cells::I32(vec![None; rows]),
            Kind::F64 => Cells::F64(vec![None; rows]),
            Kind::Bool => Cells::Bool(vec![None; rows]),
            Kind::Text => Cells::Text(vec![None; rows]),
        }
    }

    /// One column of a tail's batches.
    pub(crate) fn of_batches(kind: Kind, name: &str, batches: &[Batch]) -> Cells {
        let rows = batches.iter().map(|batch| batch.rows).sum();
        let mut cells = Cells::nulls(kind, 0);
        cells.reserve(rows);
        for batch in batches {
            let Some(column) = batch.column(name, kind) else {
                cells.extend_nulls(batch.rows);
                continue;
            };
            match &mut cells {
                Cells::U64(out) => out.extend(batch.u64s(column)),
                Cells::I32(out) => out.extend(batch.i32s(column)),
                Cells::F64(out) => out.extend(batch.f64s(column)),
                Cells::Bool(out) => out.extend(batch.bools(column)),
                Cells::Text(out) => out.extend(batch.texts(column).map(|text| text.map(str::to_owned))),
            }
        }
        cells
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Cells::U64(cells) => cells.len(),
            Cells::I32(cells) => cells.len(),
            Cells::F64(cells) => cells.len(),
            Cells::Bool(cells) => cells.len(),
            Cells::Text(cells) => cells.len(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Cells::U64(cells) => cells.clear(),
            Cells::I32(cells) => cells.clear(),
            Cells::F64(cells) => cells.clear(),
            Cells::Bool(cells) => cells.clear(),
            Cells::Text(cells) => cells.clear(),
        }
    }

    pub(crate) fn extend_nulls(&mut self, rows: usize) {
        match self {
            Cells::U64(cells) => cells.resize(cells.len() + rows, None),
            Cells::I32(cells) => cells.resize(cells.len() + rows, None),
            Cells::F64(cells) => cells.resize(cells.len() + rows, None),
            Cells::Bool(cells) => cells.resize(cells.len() + rows, None),
            Cells::Text(cells) => cells.resize(cells.len() + rows, None),
        }
    }

    fn reserve(&mut self, rows: usize) {
        match self {
            Cells::U64(cells) => cells.reserve_exact(rows),
            Cells::I32(cells) => cells.reserve_exact(rows),
            Cells::F64(cells) => cells.reserve_exact(rows),
            Cells::Bool(cells) => cells.reserve_exact(rows),
            Cells::Text(cells) => cells.reserve_exact(rows),
        }
    }
}

impl Columns {
    /// All columns of a tail.
    pub(crate) fn of_batches(table: &'static Table, batches: &[Batch]) -> Columns {
        let column = |c: &crate::table::Column| Cells::of_batches(c.kind, c.name, batches);
        Columns {
            table,
            cells: table.columns.iter().map(column).collect(),
            rows: batches.iter().map(|batch| batch.rows).sum(),
        }
    }

    pub(crate) fn u64(&self, column: usize, row: usize) -> Option<u64> {
        match self.cells.get(column)? {
            Cells::U64(cells) => *cells.get(row)?,
            _ => None,
        }
    }

    pub(crate) fn i32(&self, column: usize, row: usize) -> Option<i32> {
        match self.cells.get(column)? {
            Cells::I32(cells) => *cells.get(row)?,
            _ => None,
        }
    }

    pub(crate) fn bool(&self, column: usize, row: usize) -> Option<bool> {
        match self.cells.get(column)? {
            Cells::Bool(cells) => *cells.get(row)?,
            _ => None,
        }
    }

    pub(crate) fn text(&self, column: usize, row: usize) -> Option<&str> {
        match self.cells.get(column)? {
            Cells::Text(cells) => cells.get(row)?.as_deref(),
            _ => None,
        }
    }

    /// The largest tick (or event number) of the rows; none where there are none.
    pub(crate) fn last_number(&self) -> Option<u64> {
        (0..self.rows).filter_map(|row| self.u64(0, row)).max()
    }
}
