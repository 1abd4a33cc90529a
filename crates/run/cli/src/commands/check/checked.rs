//! One thing that was checked: as it is shown, and its figures for programs.

use ullage_model::Limit;
use ullage_report::text::{CheckRow, CheckState};

#[derive(Debug)]
pub(super) struct Check {
    pub(super) row: CheckRow,
    used: Option<u64>,
    limit: Option<Limit>,
    unit: &'static str,
}

impl Check {
    pub(super) fn fine(what: &str, value: String) -> Check {
        let row = CheckRow {
            state: CheckState::Fine,
            what: what.into(),
            value,
            meaning: String::new(),
            fix: String::new(),
        };
        Check { row, used: None, limit: None, unit: "" }
    }

    /// It could not be read.
    pub(super) fn unknown(what: &str, why: String) -> Check {
        let mut check = Check::fine(what, why);
        check.row.state = CheckState::Unknown;
        check
    }

    pub(super) fn figures(mut self, used: Option<u64>, limit: Limit, unit: &'static str) -> Check {
        (self.used, self.limit, self.unit) = (used, Some(limit), unit);
        self
    }

    pub(super) fn judged(
        mut self,
        state: CheckState,
        meaning: impl Into<String>,
        fix: impl Into<String>,
    ) -> Check {
        (self.row.state, self.row.meaning, self.row.fix) = (state, meaning.into(), fix.into());
        self
    }

    /// It may become a limit.
    pub(super) fn careful(self, meaning: impl Into<String>, fix: impl Into<String>) -> Check {
        self.judged(CheckState::Warning, meaning, fix)
    }

    pub(super) fn json(&self) -> serde_json::Value {
        let limit = self.limit.map(|limit| match limit {
            Limit::At(number) => serde_json::json!(number),
            Limit::Unlimited => serde_json::json!("unlimited"),
        });
        let row = &self.row;
        serde_json::json!({
            "name": row.what, "state": word(row.state), "value": row.value, "used": self.used, "limit": limit,
            "unit": self.unit, "meaning": row.meaning, "fix": row.fix,
        })
    }
}

fn word(state: CheckState) -> &'static str {
    match state {
        CheckState::Fine => "fine",
        CheckState::Warning => "warning",
        CheckState::Bad => "bad",
        CheckState::Unknown => "unknown",
    }
}
