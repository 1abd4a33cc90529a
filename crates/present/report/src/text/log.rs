//! What does a log without a recording show? Findings from messages alone, each with the line it rests on.

use super::layout::Screen;
use super::style::{Ink, Style};
use super::verdict::known;
use crate::format;
use ullage_model::{Finding, Status};

/// What `ullage explain FILE` found in a log.
#[derive(Clone, Copy, Debug)]
pub struct LogView<'a> {
    /// Name of the file, or `standard input`.
    pub source: &'a str,
    /// Lines read.
    pub lines: u64,
    /// Findings, most likely first. Their evidence quotes the lines.
    pub findings: &'a [Finding],
    /// The first line that says that the memory of a GPU ran out.
    pub gpu_out_of_memory_line: Option<u64>,
    /// What else is to be said: the file was cut, bytes were not text. One sentence each.
    pub notes: &'a [String],
}

/// Candidates listed after the first.
const OTHERS_SHOWN: usize = 3;

/// What a log says, for a screen; ends with a newline.
pub fn log(log: &LogView<'_>, style: &Style) -> String {
    let mut screen = Screen::new(*style);
    let lines = if log.lines == 1 { "1 line".into() } else { format!("{} lines", format::count(log.lines)) };
    let read = format!("{} ({lines} read)", format::clean(log.source));
    let Some(first) = log.findings.first() else {
        if let Some(line) = log.gpu_out_of_memory_line {
            gpu_memory(&mut screen, style, line, &read);
            notes(&mut screen, log.notes);
            return screen.finish();
        }
        screen.section("Verdict", Ink::Strong);
        screen.prose(0, 0, &style.paint(Ink::Strong, "No message of a known memory cause was found."));
        screen.prose(0, 0, &format!("In {read}."));
        screen.section("Do", Ink::Strong);
        screen.prose(0, 0, "Run the job again under ullage: a recording has measurements, a log has none.");
        screen.code(3, "ullage run -- COMMAND...");
        notes(&mut screen, log.notes);
        return screen.finish();
    };
    screen.section("Verdict", Ink::Bad);
    screen.prose(0, 0, &style.paint(Ink::Bad, &format::clean(&first.title)));
    screen.prose(0, 0, &format!("{}, {}.", format::clean(&first.cause), known(first.proof)));
    screen.prose(0, 0, &format!("From {read}."));
    screen.section("Why", Ink::Strong);
    for evidence in &first.evidence {
        let sentence = format::clean(&evidence.sentence);
        let source = format::clean(&evidence.source.to_string());
        screen.prose(0, 2, &format!("{sentence} {}", style.paint(Ink::Quiet, &format!("[{source}]"))));
        if !evidence.said {
            screen.code(2, &format::reading(&evidence.value, evidence.limit));
        }
    }
    screen.section("Do", Ink::Strong);
    for (i, fix) in first.fixes.iter().enumerate() {
        screen.prose(0, 3, &format!("{}. {}", i + 1, format::clean(&fix.title)));
        screen.paste(3, &fix.command);
    }
    if first.status() != Status::Established {
        let n = first.fixes.len() + 1;
        screen.prose(
            0,
            3,
            &format!("{n}. To be sure, run the job again under ullage: it measures, a log does not"),
        );
        screen.code(3, "ullage run -- COMMAND...");
    }
    screen.section("Or else", Ink::Strong);
    for other in log.findings.iter().skip(1).take(OTHERS_SHOWN) {
        let tag = format!("[{}]", format::clean(&other.cause));
        screen.prose(0, 2, &format!("{} {}", format::clean(&other.title), style.paint(Ink::Quiet, &tag)));
    }
    if let Some(line) = log.gpu_out_of_memory_line {
        let note =
            format!("Line {line} says that GPU memory ran out, too. ullage measures host memory only.");
        screen.section("Note", Ink::Strong);
        screen.prose(0, 2, &note);
    }
    notes(&mut screen, log.notes);
    screen.finish()
}

/// What to do where the memory of a GPU ran out, which this program does not measure: a title, and what to type.
const GPU_REMEDIES: [(&str, &str); 4] = [
    ("See what holds the memory, where the error is caught", "print(torch.cuda.memory_summary())"),
    (
        "Record every allocation; https://pytorch.org/memory_viz shows the file",
        "torch.cuda.memory._record_memory_history()\n# … the steps that fail …\ntorch.cuda.memory._dump_snapshot(\"snapshot.pickle\")",
    ),
    (
        "If much is \"reserved but unallocated\", reduce fragmentation",
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    ),
    ("Otherwise use a smaller batch, or checkpoint activations", "torch.utils.checkpoint.checkpoint(...)"),
];

fn gpu_memory(screen: &mut Screen, style: &Style, line: u64, read: &str) {
    screen.section("Verdict", Ink::Bad);
    screen.prose(0, 0, &style.paint(Ink::Bad, "GPU memory ran out."));
    screen.prose(0, 0, &format!("Line {line} of {read}. ullage measures host memory, not GPU memory."));
    screen.section("Do", Ink::Strong);
    for (i, (title, command)) in GPU_REMEDIES.iter().enumerate() {
        screen.prose(0, 3, &format!("{}. {title}", i + 1));
        screen.code(3, command);
    }
}

fn notes(screen: &mut Screen, notes: &[String]) {
    screen.section("Note", Ink::Strong);
    for note in notes {
        screen.prose(0, 2, &format::clean(note));
    }
}
