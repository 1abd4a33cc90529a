//! The plots without a script: an SVG of memory by category with its limits, and a small line.
//!
//! The surprise: a figure is drawn from its readings alone, so two readings are joined by a straight line, whatever lay between.

use std::fmt::Write;
use ullage_job_state::Point;

/// Of the large picture, in its own units.
pub(crate) const WIDTH: f64 = 960.0;
pub(crate) const HEIGHT: f64 = 280.0;
/// Of a small one.
pub(crate) const LINE_WIDTH: f64 = 120.0;
pub(crate) const LINE_HEIGHT: f64 = 24.0;
/// Points of the large picture: more are not seen at its size.
const MOST_POINTS: usize = 480;

/// A layer of the picture: `points` of an SVG polygon.
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) points: String,
}

/// Where time and bytes lie in a picture.
pub(crate) struct Scale {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) top: f64,
}

impl Scale {
    pub(crate) fn x(&self, seconds: f64) -> f64 {
        let share = (seconds - self.from) / (self.to - self.from).max(1e-9);
        round(share.clamp(0.0, 1.0) * WIDTH)
    }

    pub(crate) fn y(&self, bytes: f64) -> f64 {
        round(HEIGHT - (bytes / self.top.max(1.0)).clamp(0.0, 1.0) * HEIGHT)
    }
}

fn round(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

/// One polygon a category, the first one at the bottom. `rows`: of each time the bytes of each category.
pub(crate) fn layers(names: &[String], times: &[f64], rows: &[Vec<u64>], scale: &Scale) -> Vec<Layer> {
    let shown = shown(rows);
    let sum = |row: &[u64], categories: usize| row.iter().take(categories).sum::<u64>() as f64;
    names
        .iter()
        .enumerate()
        .map(|(n, name)| {
            let mut points = String::new();
            for i in &shown {
                let _ = write!(points, "{},{} ", scale.x(times[*i]), scale.y(sum(&rows[*i], n + 1)));
            }
            for i in shown.iter().rev() {
                let _ = write!(points, "{},{} ", scale.x(times[*i]), scale.y(sum(&rows[*i], n)));
            }
            Layer { name: ullage_report::format::clean(name), points: points.trim_end().to_owned() }
        })
        .collect()
}

/// Which readings the picture has: of each stretch the largest.
fn shown(rows: &[Vec<u64>]) -> Vec<usize> {
    let step = rows.len().div_ceil(MOST_POINTS).max(1);
    let largest = |chunk: &[usize]| chunk.iter().copied().max_by_key(|i| rows[*i].iter().sum::<u64>());
    let all: Vec<usize> = (0..rows.len()).collect();
    let mut shown: Vec<usize> = all.chunks(step).filter_map(largest).collect();
    for end in [0, rows.len().saturating_sub(1)] {
        if end < rows.len() && !shown.contains(&end) {
            shown.push(end);
        }
    }
    shown.sort_unstable();
    shown
}

/// A line of one series, from the first to the last time of the run: `points` of an SVG polyline.
pub(crate) fn line<T>(points: &[&Point<T>], from: f64, to: f64) -> String {
    let top = points.iter().map(|point| point.value).max().unwrap_or(0).max(1) as f64;
    let mut line = String::new();
    for point in points {
        let x = (point.at.seconds() - from) / (to - from).max(1e-9) * LINE_WIDTH;
        let y = LINE_HEIGHT - 1.0 - point.value as f64 / top * (LINE_HEIGHT - 2.0);
        let _ = write!(line, "{},{} ", round(x.clamp(0.0, LINE_WIDTH)), round(y));
    }
    line.trim_end().to_owned()
}

/// Heights at which a scale of bytes has lines, three to six of them, at round figures.
pub(crate) fn ticks(top: u64) -> Vec<u64> {
    let mut step = 1_u64;
    while top / step > 5 {
        step = step.saturating_mul(2);
    }
    (1..=top / step).map(|n| n * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_lie_on_each_other() {
        let scale = Scale { from: 0.0, to: 10.0, top: 100.0 };
        let names = ["malloc".to_owned(), "file".to_owned()];
        let layers = layers(&names, &[0.0, 10.0], &[vec![50, 0], vec![50, 50]], &scale);
        assert_eq!(layers[0].points, "0,140 960,140 960,280 0,280");
        assert_eq!(layers[1].points, "0,140 960,0 960,140 0,140");
    }

    #[test]
    fn a_picture_of_many_readings_has_the_largest_one() {
        let mut rows = vec![vec![1]; 10_000];
        rows[7777] = vec![99];
        let shown = shown(&rows);
        assert!(shown.len() <= MOST_POINTS + 2);
        assert!(shown.contains(&7777) && shown.contains(&0) && shown.contains(&9999));
    }

    #[test]
    fn ticks_are_few_and_below_the_top() {
        for top in [1, 5, 1000, 3 << 30, u64::MAX] {
            let ticks = ticks(top);
            assert!((1..=5).contains(&ticks.len()), "{top}: {ticks:?}");
            assert!(ticks.iter().all(|tick| *tick <= top));
        }
    }
}
