//! How does a table look as CSV? RFC 4180 in UTF-8, but for lines that end in LF alone; a header, then a line a row.
//!
//! A null is an empty field; text that is empty is `""`, so that the two stay apart.

use crate::columns::Cells;
use crate::table::Table;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(crate) struct CsvFile {
    out: BufWriter<File>,
}

impl CsvFile {
    pub(crate) fn create(path: &Path, table: &Table) -> Result<CsvFile, String> {
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600);
        let mut out = BufWriter::new(open.open(path).map_err(|e| e.to_string())?);
        let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        writeln!(out, "{}", names.join(",")).map_err(|e| e.to_string())?;
        Ok(CsvFile { out })
    }

    pub(crate) fn rows(&mut self, order: &[usize], cells: &[&Cells]) -> Result<(), String> {
        let mut line = String::new();
        for &row in order {
            line.clear();
            for (column, cells) in cells.iter().enumerate() {
                if column > 0 {
                    line.push(',');
                }
                push_cell(&mut line, cells, row);
            }
            line.push('\n');
            self.out.write_all(line.as_bytes()).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(), String> {
        self.out.flush().map_err(|e| e.to_string())
    }
}

fn push_cell(line: &mut String, cells: &Cells, row: usize) {
    match cells {
        Cells::U64(cells) => push(line, cells[row]),
        Cells::I32(cells) => push(line, cells[row]),
        Cells::F64(cells) => push(line, cells[row]),
        Cells::Bool(cells) => push(line, cells[row]),
        Cells::Text(cells) => {
            if let Some(text) = &cells[row] {
                push_text(line, text);
            }
        }
    }
}

fn push(line: &mut String, value: Option<impl ToString>) {
    if let Some(value) = value {
        line.push_str(&value.to_string());
    }
}

fn push_text(line: &mut String, text: &str) {
    let plain = !text.is_empty() && !text.contains([',', '"', '\n', '\r']) && text.trim() == text;
    if plain {
        line.push_str(text);
        return;
    }
    line.push('"');
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_where_it_must_be() {
        let quoted = |text| {
            let mut line = String::new();
            push_text(&mut line, text);
            line
        };
        assert_eq!(quoted("python"), "python");
        assert_eq!(
            quoted("limit_bytes=unlimited swap_bytes=kernel-too-old"),
            "limit_bytes=unlimited swap_bytes=kernel-too-old"
        );
        assert_eq!(quoted(""), "\"\"");
        assert_eq!(quoted(" a"), "\" a\"");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"no\"\n"), "\"say \"\"no\"\"\n\"");
    }

    #[test]
    fn nulls_are_empty() {
        let columns = Cells::Text(vec![None, Some(String::new())]);
        let mut line = String::new();
        push_cell(&mut line, &columns, 0);
        assert_eq!(line, "");
        push_cell(&mut line, &Cells::Bool(vec![Some(true)]), 0);
        push_cell(&mut line, &Cells::I32(vec![Some(-1)]), 0);
        push_cell(&mut line, &Cells::U64(vec![Some(u64::MAX)]), 0);
        assert_eq!(line, "true-118446744073709551615");
    }
}
