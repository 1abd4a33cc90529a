//! What kind of growth was it? One word, how fast, which limit it meets, and what that rests on.

use super::layout::Screen;
use super::style::{Ink, Style};
use crate::format;
use ullage_model::{Growth, GrowthClass};

/// Nothing where nothing grew.
pub(super) fn grew(screen: &mut Screen, style: Style, growth: &Growth) {
    if growth.class == GrowthClass::None {
        return;
    }
    screen.section("Growth", Ink::Strong);
    screen.prose(0, 2, &sentence(growth, &style.paint(Ink::Strong, growth.class.id())));
}

/// What kind, how much and how fast: `live tensors: 230 MiB, 7.63 MiB a second`.
pub(super) fn in_short(growth: &Growth) -> String {
    let class = growth.class.id().replace('-', " ");
    let fast = format::rate(growth.per_second, "bytes");
    let process = growth.process.as_ref().map(|process| format!(" in process {}", process.id.pid));
    let process = process.unwrap_or_default();
    format!("{class}{process}: {}, {fast} to the end of the run", format::bytes(growth.bytes))
}

fn sentence(growth: &Growth, class: &str) -> String {
    let mut head = class.to_owned();
    if growth.bytes > 0 {
        head = format!("{head}: {}", format::bytes(growth.bytes));
        let over =
            growth.per_second <= 0.0 || matches!(growth.class, GrowthClass::WarmUp | GrowthClass::Plateau);
        if !over {
            head = format!("{head}, {}", format::rate(growth.per_second, "bytes"));
        }
    }
    if let Some(until) = &growth.until {
        if let Some(left) = until.time_left_s {
            head = format!(
                "{head}; {} of {} {}",
                until.kind.name(),
                format::clean(&until.scope.to_string()),
                if left < 1.0 { "met".into() } else { format!("in {}", format::duration(left)) }
            );
        }
    }
    format!("{head}. {}", format::clean(&growth.because))
}
