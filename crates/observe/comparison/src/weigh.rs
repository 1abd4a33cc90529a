//! How strongly is one difference tied to what was seen? In this order: it is what the failing run came to; it brings
//! about a cause that was found; it moves a figure in which the runs differ; or nothing is known but how often it is
//! the reason.

use crate::known::known_bad;
use crate::table::{Effect, Row};
use crate::view::View;
use crate::Side;
use ullage_model::{names, Change, Fact, Limit, Tie};

/// A score from 0 to 1 and why.
#[derive(Clone, Debug)]
pub(crate) struct Weighed {
    pub(crate) score: f64,
    pub(crate) ties: Vec<Tie>,
}

/// From this share of a limit on, a run came to it: the last reading may be a second old.
const NEAR: f64 = 0.85;
/// Below this share of the tighter limit neither run came near it.
const FAR: f64 = 0.5;

pub(crate) fn weigh(row: &Row, change: &Change, view: &View<'_>) -> Weighed {
    let mut ties = Vec::new();
    let mut score = row.base;
    let mut strengthen = |to: f64, tie: Tie| {
        score = f64::max(score, to);
        ties.push((to, tie));
    };
    let looser = is_looser(row, change);
    // A bound with more room, or the harmless value, cannot be what the bad run came to.
    let place = view.found().position(|cause| row.causes().contains(&cause)).filter(|_| looser != Some(true));
    let mut tied = false;
    if let Some((place, cause)) = place.zip(place.and_then(|place| view.found().nth(place))) {
        strengthen(if place == 0 { 0.9 } else { 0.6 }, Tie::Found { cause: cause.to_owned() });
        tied = true;
    }
    let mut far = None;
    if let Effect::Bound { figure, ample } = row.effect {
        let use_of = bound_use(figure, change, view);
        match use_of {
            Use::Met(tie) if looser != Some(true) => {
                strengthen(if place == Some(0) { 0.98 } else { 0.8 }, tie);
                tied = true;
            }
            Use::Wanted(tie) => {
                strengthen(if place == Some(0) { 0.96 } else { 0.78 }, tie);
                tied = true;
            }
            Use::Far(tie) if place.is_none() => far = Some((0.1, tie)),
            _ if place.is_none() && both_ample(change, ample) => far = Some((0.1, Tie::Looser)),
            _ => {}
        }
    }
    let stake = view.stake();
    for figure in figures(row) {
        let at_stake = stake.filter(|(_, figures)| figures.contains(figure));
        if let Some((good, bad)) = view.moved(figure) {
            // A finding about something else is not explained by it.
            let to = match (at_stake, stake) {
                (Some(_), _) => 0.7,
                (None, None) => 0.6,
                (None, Some(_)) => 0.25,
            };
            let tie = Tie::Moved { figure: (*figure).to_owned(), good: good as u64, bad: bad as u64 };
            strengthen(to + row.base * 0.2, tie);
            tied |= to > 0.5;
        } else if let Some((cause, _)) = at_stake {
            strengthen(0.3 + row.base * 0.2, Tie::AtStake { cause: cause.to_owned() });
            tied = true;
        }
    }
    let version = |fact: &Fact| fact.text().and_then(|text| known_bad(&change.fact, text));
    if let (Some(what), true) = (version(&change.bad), version(&change.good).is_none()) {
        strengthen(0.5, Tie::KnownBad { what: what.to_owned() });
        tied = true;
    }
    if !tied {
        score *= match row.effect {
            Effect::Bound { .. } => size_of_step(change),
            _ => 1.0,
        };
        // Something went wrong, and this has nothing to do with it as far as is known.
        if view.has_run() && view.stake().is_some() {
            score *= 0.4;
        }
    }
    if looser == Some(true) {
        score *= 0.25;
        ties.push((0.0, Tie::Looser));
    }
    if let Some((factor, tie)) = far {
        score *= factor;
        if tie != Tie::Looser {
            ties.push((0.0, tie));
        }
    }
    ties.sort_by(|a, b| b.0.total_cmp(&a.0));
    ties.dedup_by(|a, b| matches!((&a.1, &b.1), (Tie::AtStake { .. }, Tie::AtStake { .. })));
    // Of equals, the one that is more often the reason.
    Weighed {
        score: (score + row.base * 0.02).min(1.0),
        ties: ties.into_iter().map(|(_, tie)| tie).collect(),
    }
}

/// The figures that a row moves.
fn figures(row: &Row) -> &'static [&'static str] {
    match row.effect {
        Effect::Bound { .. } => &[],
        Effect::Harm { figures, .. } | Effect::Moves(figures) => figures,
    }
}

/// Whether the bad side is the one with more room; none where that cannot be said.
fn is_looser(row: &Row, change: &Change) -> Option<bool> {
    match row.effect {
        Effect::Bound { .. } => {
            let (good, bad) = (change.good.limit()?, change.bad.limit()?);
            Some(good.tighter(bad) == good)
        }
        Effect::Harm { value, .. } => {
            let is = |fact: &Fact| word(fact) == value;
            match (is(&change.good), is(&change.bad)) {
                (true, false) => Some(true),
                (false, true) => Some(false),
                _ => None,
            }
        }
        Effect::Moves(_) => None,
    }
}

enum Use {
    Met(Tie),
    Wanted(Tie),
    Far(Tie),
    Unknown,
}

fn bound_use(figure: &str, change: &Change, view: &View<'_>) -> Use {
    let (good, bad) = view.peaks(figure);
    let (Some(of_good), Some(of_bad)) = (change.good.limit(), change.bad.limit()) else {
        return Use::Unknown;
    };
    let name = || figure.to_owned();
    if let (Some(used), Limit::At(limit)) = (bad, of_bad) {
        if used >= NEAR * limit as f64 {
            return Use::Met(Tie::Met { figure: name(), used: used as u64, limit });
        }
    }
    if let (Some(used), Limit::At(limit)) = (good, of_bad) {
        if used > limit as f64 {
            return Use::Wanted(Tie::Wanted { figure: name(), used: used as u64, limit });
        }
    }
    let most = match (good, bad) {
        (Some(good), Some(bad)) => good.max(bad),
        (None, Some(only)) => only,
        _ => return Use::Unknown,
    };
    match of_good.tighter(of_bad) {
        Limit::At(limit) if most < FAR * limit as f64 => {
            Use::Far(Tie::Far { figure: name(), used: most as u64, limit })
        }
        _ => Use::Unknown,
    }
}

fn both_ample(change: &Change, ample: u64) -> bool {
    let is_ample = |fact: &Fact| fact.limit().is_some_and(|limit| limit.at().is_none_or(|n| n >= ample));
    is_ample(&change.good) && is_ample(&change.bad)
}

/// A limit of a thousandth matters more often than one of nine tenths: 0.3 to 1.
fn size_of_step(change: &Change) -> f64 {
    match (change.good.limit(), change.bad.limit()) {
        (Some(Limit::At(good)), Some(Limit::At(bad))) => {
            let ratio = (good.max(1) as f64 / bad.max(1) as f64).log10().abs();
            0.3 + 0.7 * ratio.min(2.0) / 2.0
        }
        _ => 1.0,
    }
}

/// A fact as it is typed.
fn word(fact: &Fact) -> String {
    match fact {
        Fact::Number(n) => n.to_string(),
        Fact::Flag(flag) => flag.to_string(),
        Fact::Text(text) => text.clone(),
        Fact::Unlimited(_) => "unlimited".into(),
        Fact::Missing { .. } => "?".into(),
    }
}

/// The commands of a row with the values and the job in their places.
pub(crate) fn test(row: &Row, change: &Change, good: &Side, bad: &Side) -> String {
    let command = bad.command.as_deref().or(good.command.as_deref());
    let job = command.unwrap_or("ullage run -- python train.py");
    let (of_good, of_bad) = (word(&change.good), word(&change.bad));
    // What is run by another `ullage run` than that which stands there for a job that nobody knows.
    let bare = job.trim_start_matches("ullage run -- ");
    let torch = good.facts.get("torch.version").map(word).unwrap_or_default();
    let name = change.fact.rsplit('.').next().unwrap_or_default();
    let cores = change.good.number().unwrap_or(1).max(1) - 1;
    let kib = change.good.number().map_or_else(|| of_good.clone(), |bytes| (bytes / 1024).to_string());
    let places = [
        ("{good}", of_good.clone()),
        ("{bad}", of_bad),
        ("{good_kib}", kib),
        ("{good_last}", cores.to_string()),
        ("{good_public}", of_good.split('+').next().unwrap_or_default().to_owned()),
        ("{good_torch}", torch.split('+').next().unwrap_or_default().to_owned()),
        ("{good_digits}", of_good.replace('.', "")),
        ("{good_lower}", of_good.to_lowercase()),
        ("{last}", name.to_owned()),
        ("{package}", change.fact.trim_start_matches("package.").to_owned()),
        ("{sysctl}", change.fact.trim_start_matches("sysctl.").to_owned()),
        ("{env_test}", environment(change)),
        ("{swap_test}", swap(change)),
        ("{fix_test}", remedies(change, bare)),
        ("{bare}", bare.to_owned()),
        ("{job}", job.to_owned()),
    ];
    places.iter().fold(row.test.to_owned(), |text, (place, value)| text.replace(place, value))
}

/// The job as the good one had it: what ULLAGE_FIX names only `ullage run` applies.
fn remedies(change: &Change, job: &str) -> String {
    match &change.good {
        Fact::Text(text) if text == "not set" => format!("env -u {} ullage run -- {job}", names::ENV_FIX),
        good => format!("ullage run --fix={} -- {job}", word(good).replace(' ', "")),
    }
}

fn environment(change: &Change) -> String {
    let name = change.fact.trim_start_matches("env.");
    match &change.good {
        Fact::Text(text) if text == "not set" => format!("env -u {name}"),
        good => format!("env {name}='{}'", word(good).replace('\'', r"'\''")),
    }
}

fn swap(change: &Change) -> String {
    match change.good.number() {
        Some(0) => "swapoff -a".into(),
        Some(bytes) => format!(
            "fallocate -l {bytes} /swapfile && chmod 600 /swapfile && mkswap /swapfile && swapon /swapfile"
        ),
        None => "swapon --show".into(),
    }
}
