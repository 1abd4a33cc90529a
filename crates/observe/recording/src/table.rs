//! Which tables and columns does a recording have? The one list that writers and readers go by.
//!
//! The surprise: every column is nullable in the files. A null always has its reason in the row's last column,
//! `absent` (`limit_bytes=unlimited swap_bytes=kernel-too-old`), so that "could not know" never looks like zero.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U64,
    I32,
    F64,
    Bool,
    Text,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// One table. Its first column counts up: `tick`, or `number` of an event. `sorted_by` are the columns by which
/// rows are grouped in closed parts, so that a column's neighbours are readings of one and the same thing and
/// their differences small.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
    pub(crate) sorted_by: &'static [usize],
}

impl Table {
    const fn new(name: &'static str, columns: &'static [Column], sorted_by: &'static [usize]) -> Table {
        Table { name, columns, sorted_by }
    }

    /// File name of the live tail.
    pub(crate) fn tail_name(&self) -> String {
        format!("{}.arrows", self.name)
    }

    /// File name of closed part `number`.
    pub(crate) fn part_name(&self, number: u32) -> String {
        format!("{}-{number:06}.parquet", self.name)
    }

    /// The number of a closed part of this table, where `file` is the name of one.
    pub(crate) fn part_number(&self, file: &str) -> Option<u32> {
        let digits = file.strip_prefix(self.name)?.strip_prefix('-')?.strip_suffix(".parquet")?;
        (digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
    }
}

pub(crate) const fn u64(name: &'static str) -> Column {
    Column { name, kind: Kind::U64 }
}
const fn i32(name: &'static str) -> Column {
    Column { name, kind: Kind::I32 }
}
/// No recorded table has one: an exported one may.
pub(crate) const fn f64(name: &'static str) -> Column {
    Column { name, kind: Kind::F64 }
}
const fn bool(name: &'static str) -> Column {
    Column { name, kind: Kind::Bool }
}
pub(crate) const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}

/// One row a sample. The counts say how many rows of the other tables belong to it: it is complete only when
/// all of them are there.
pub(crate) static TICKS: Table = Table::new(
    "ticks",
    &[
        u64("tick"),
        u64("at_ns"),
        u64("process_rows"),
        u64("mapping_rows"),
        u64("descriptor_rows"),
        u64("filesystem_rows"),
        u64("cgroup_rows"),
        u64("forks_since_last"),
        u64("cost_cpu_ns"),
        u64("cost_peak_rss_bytes"),
        u64("total_bytes"),
        u64("free_bytes"),
        u64("available_bytes"),
        u64("swap_total_bytes"),
        u64("swap_free_bytes"),
        u64("shared_bytes"),
        u64("cached_bytes"),
        u64("anonymous_bytes"),
        u64("commit_limit_bytes"),
        u64("committed_bytes"),
        u64("oom_kills"),
        u64("swap_in_pages"),
        u64("swap_out_pages"),
        u64("memory_stall_full_us"),
        u64("memory_stall_some_us"),
        u64("open_files"),
        u64("open_files_limit"),
        u64("segment_rows"),
        u64("page_rows"),
        u64("buffers_bytes"),
        u64("slab_reclaimable_bytes"),
        u64("slab_unreclaimable_bytes"),
        u64("tables_bytes"),
        u64("hugetlb_bytes"),
        u64("hugetlb_free_bytes"),
        u64("anonymous_huge_bytes"),
        text("absent"),
    ],
    &[],
);

/// One row a process a sample.
pub(crate) static PROCESSES: Table = Table::new(
    "processes",
    &[
        u64("tick"),
        u64("position"),
        i32("pid"),
        u64("start_ticks"),
        i32("parent"),
        text("state"),
        text("comm"),
        u64("threads"),
        u64("cpu_ticks"),
        u64("minor_faults"),
        u64("major_faults"),
        u64("peak_virtual_bytes"),
        u64("virtual_bytes"),
        u64("locked_bytes"),
        u64("peak_resident_bytes"),
        u64("anonymous_bytes"),
        u64("file_bytes"),
        u64("shared_bytes"),
        u64("page_tables_bytes"),
        u64("swap_bytes"),
        u64("descriptors"),
        u64("exclusive_bytes"),
        u64("exclusive_error_bytes"),
        u64("run_delay_ns"),
        text("absent"),
    ],
    &[2, 3],
);

/// Rows only for processes whose mappings were counted in that sample.
pub(crate) static MAPPINGS: Table = Table::new(
    "mappings",
    &[
        u64("tick"),
        u64("position"),
        i32("pid"),
        u64("start_ticks"),
        u64("count"),
        u64("torch_shared"),
        u64("torch_shared_bytes"),
        u64("other_shared"),
        u64("anonymous"),
        u64("file"),
        u64("file_bytes"),
        u64("data_file_bytes"),
        u64("executable_bytes"),
    ],
    &[2, 3],
);

/// Rows only for processes whose descriptors were told apart by kind in that sample.
pub(crate) static DESCRIPTORS: Table = Table::new(
    "descriptors",
    &[
        u64("tick"),
        u64("position"),
        i32("pid"),
        u64("start_ticks"),
        u64("torch_shared"),
        u64("files"),
        u64("sockets"),
        u64("pipes"),
        u64("other"),
        text("folder"),
        u64("files_in_folder"),
        text("example_in_folder"),
    ],
    &[2, 3],
);

/// One row a filesystem a sample.
pub(crate) static FILESYSTEMS: Table = Table::new(
    "filesystems",
    &[
        u64("tick"),
        u64("position"),
        text("used_for"),
        text("path"),
        u64("device"),
        bool("tmpfs"),
        u64("size_bytes"),
        u64("used_bytes"),
        u64("inodes"),
        u64("inodes_used"),
        text("absent"),
    ],
    &[1],
);

/// One row a cgroup a sample.
pub(crate) static CGROUPS: Table = Table::new(
    "cgroups",
    &[
        u64("tick"),
        u64("position"),
        text("version"),
        text("path"),
        u64("current_bytes"),
        u64("limit_bytes"),
        u64("high_bytes"),
        u64("peak_bytes"),
        u64("swap_bytes"),
        u64("swap_limit_bytes"),
        u64("oom_kills"),
        u64("oom_kills_subtree"),
        u64("limit_hits"),
        bool("oom_group"),
        u64("anonymous_bytes"),
        u64("file_bytes"),
        u64("shared_bytes"),
        u64("inactive_file_bytes"),
        u64("kernel_bytes"),
        u64("pids"),
        u64("pids_limit"),
        u64("pids_refused"),
        u64("high_hits"),
        u64("anonymous_huge_bytes"),
        text("absent"),
    ],
    &[1],
);

/// Rows only where shared segments were read in that sample: one a segment, or a group of small ones that are alike.
pub(crate) static SEGMENTS: Table = Table::new(
    "segments",
    &[
        u64("tick"),
        u64("position"),
        text("kind"),
        text("name"),
        u64("count"),
        u64("device"),
        u64("inode"),
        u64("size_bytes"),
        u64("allocated_bytes"),
        bool("at_least"),
        bool("deleted"),
        bool("before"),
        i32("creator_pid"),
        u64("creator_start_ticks"),
        text("creator_by"),
        text("mappers"),
        text("holders"),
        bool("outsiders"),
        text("absent"),
    ],
    &[2, 3],
);

/// Rows only where a survey of pages was made: of the whole job (without a pid), and of processes.
pub(crate) static PAGES: Table = Table::new(
    "pages",
    &[
        u64("tick"),
        u64("position"),
        i32("pid"),
        u64("start_ticks"),
        text("kind"),
        u64("bytes"),
        u64("error_bytes"),
        u64("exclusive_bytes"),
        u64("shared_bytes"),
        u64("outside_bytes"),
        u64("proportional_bytes"),
        u64("beside_shared_bytes"),
        u64("beside_own_bytes"),
        u64("swapped_bytes"),
        u64("unexplained_bytes"),
    ],
    &[2, 3, 4],
);

/// One row an event; `tick` is that of the sample written next after it.
pub(crate) static EVENTS: Table = Table::new(
    "events",
    &[u64("number"), u64("tick"), u64("at_ns"), text("event"), i32("pid"), text("payload")],
    &[],
);

/// All of them. Ticks come last: what belongs to a tick is written before the row that makes it count.
pub(crate) static ALL: [&Table; 9] =
    [&EVENTS, &PROCESSES, &MAPPINGS, &DESCRIPTORS, &FILESYSTEMS, &CGROUPS, &SEGMENTS, &PAGES, &TICKS];

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/recording-format.md");

    /// Where the page tells of a table: from `**name**` to the next table or heading.
    fn section(table: &Table) -> &'static str {
        let begin = format!("\n**{}**", table.name);
        let (_, rest) = PAGE.split_once(&begin).unwrap_or_else(|| panic!("no {begin} in the documents"));
        let end = [rest.find("\n**"), rest.find("\n#")].into_iter().flatten().min();
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Words in backticks.
    fn quoted(text: &str) -> Vec<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn the_documents_name_every_table_and_every_column() {
        let listed = PAGE.split_once("The tables are ").and_then(|(_, rest)| rest.split_once(';'));
        let mut listed = quoted(listed.unwrap_or_default().0);
        let mut tables = ALL.map(|table| table.name);
        listed.sort_unstable();
        tables.sort_unstable();
        assert_eq!(listed, tables);
        for table in ALL {
            let words = quoted(section(table));
            for column in table.columns.iter().filter(|column| column.name != "absent") {
                assert!(words.contains(&column.name), "{}: `{}` is not told", table.name, column.name);
            }
        }
    }

    #[test]
    fn the_documents_name_no_column_that_is_not_there() {
        let is_column = |word: &&&str| {
            ["_bytes", "_rows", "_ns", "_us", "_ticks", "_pages", "_faults", "_limit"]
                .iter()
                .any(|unit| word.ends_with(unit))
        };
        let mut checked = 0;
        for table in ALL {
            for word in quoted(section(table)).iter().filter(is_column) {
                checked += 1;
                let known = table.columns.iter().any(|column| column.name == *word);
                assert!(known, "{}: `{word}` is told, and is no column", table.name);
            }
        }
        assert!(checked > 50, "{checked}");
    }
}
