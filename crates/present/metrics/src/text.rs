//! Samples as text: the classic format of Prometheus, and OpenMetrics.
//!
//! The surprise: node_exporter's textfile collector reads the classic format alone, and skips a file in which one line is a
//! timestamp or a type that it does not know. Source: Prometheus, "Exposition formats"; OpenMetrics 1.0.0, "Text format".

use crate::metric::{Kind, Metric};
use crate::samples::Samples;
use std::fmt::Write;

/// How samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text format 0.0.4.
    Classic,
    /// OpenMetrics 1.0.0: the name of a counter's family ends without `_total`, the text ends with `# EOF`.
    OpenMetrics,
}

impl Format {
    /// For a header of HTTP.
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All of them, each metric's help and type before its first.
pub fn text(samples: &Samples, format: Format) -> String {
    let mut out = String::with_capacity(samples.len() * 120);
    let mut metric_before = None;
    for (metric, run, labels, value) in samples.each() {
        if metric_before.replace(metric) != Some(metric) {
            head(&mut out, metric, format);
        }
        out.push_str(metric.name());
        out.push_str("{run=\"");
        escaped(&mut out, run);
        out.push('"');
        for (name, value) in metric.labels().iter().zip(labels) {
            out.push(',');
            out.push_str(name);
            out.push_str("=\"");
            escaped(&mut out, value);
            out.push('"');
        }
        // Writing to a String cannot fail; a whole number has no point.
        let _ = writeln!(out, "}} {value}");
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn head(out: &mut String, metric: Metric, format: Format) {
    let name = match format {
        Format::Classic => metric.name(),
        Format::OpenMetrics => metric.name().trim_end_matches("_total"),
    };
    let kind = match metric.kind() {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
    };
    let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", metric.help());
}

/// A label's value: backslash, quote and newline are escaped, in both formats.
fn escaped(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}
