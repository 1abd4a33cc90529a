//! How do a day's readings fit on a page, or a screen? Of each stretch of time the smallest and the largest reading are there, so that a
//! peak of one second is.
//!
//! The stretches double when there are too many of them: a run of any length takes the same room, and each reading is looked
//! at once.

use ullage_model::At;

/// One reading: when, its figure, and what else belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point<T> {
    /// When.
    pub at: At,
    /// Its figure.
    pub value: u64,
    /// What else belongs to it.
    pub of: T,
}

#[derive(Clone, Debug)]
struct Bucket<T> {
    index: u64,
    smallest: Point<T>,
    /// None where it is the smallest.
    largest: Option<Point<T>>,
}

/// A series of readings in bounded room.
#[derive(Clone, Debug)]
pub struct Thinned<T> {
    most: usize,
    width: u64,
    buckets: Vec<Bucket<T>>,
}

/// Width of the first stretches, in nanoseconds: shorter than any tick.
const FIRST_WIDTH: u64 = 50_000_000;

impl<T: Clone> Thinned<T> {
    /// Of `most` stretches at most, so of twice as many points.
    pub fn new(most: usize) -> Self {
        Thinned { most: most.max(2), width: FIRST_WIDTH, buckets: Vec::new() }
    }

    /// Adds a reading; readings come in order of time.
    pub fn push(&mut self, at: At, value: u64, of: T) {
        let point = Point { at, value, of };
        let index = at.0 / self.width;
        match self.buckets.last_mut() {
            Some(bucket) if bucket.index == index => bucket.add(point),
            _ => self.buckets.push(Bucket { index, smallest: point, largest: None }),
        }
        while self.buckets.len() > self.most {
            self.double();
        }
    }

    fn double(&mut self) {
        self.width *= 2;
        let mut merged: Vec<Bucket<T>> = Vec::with_capacity(self.buckets.len());
        for mut bucket in self.buckets.drain(..) {
            bucket.index /= 2;
            match merged.last_mut() {
                Some(before) if before.index == bucket.index => {
                    before.add(bucket.smallest);
                    if let Some(largest) = bucket.largest {
                        before.add(largest);
                    }
                }
                _ => merged.push(bucket),
            }
        }
        self.buckets = merged;
    }

    /// The readings that are left, in order of time.
    pub fn points(&self) -> Vec<&Point<T>> {
        let mut points = Vec::with_capacity(2 * self.buckets.len());
        for bucket in &self.buckets {
            match &bucket.largest {
                Some(largest) if largest.at < bucket.smallest.at => {
                    points.extend([largest, &bucket.smallest])
                }
                Some(largest) => points.extend([&bucket.smallest, largest]),
                None => points.push(&bucket.smallest),
            }
        }
        points
    }
}

impl<T> Bucket<T> {
    fn add(&mut self, point: Point<T>) {
        let largest = self.largest.as_ref().map_or(self.smallest.value, |largest| largest.value);
        if point.value > largest {
            self.largest = Some(point);
        } else if point.value < self.smallest.value {
            let before = std::mem::replace(&mut self.smallest, point);
            self.largest.get_or_insert(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn thinned(most: usize, values: &[u64]) -> Thinned<usize> {
        let mut series = Thinned::new(most);
        for (n, value) in values.iter().enumerate() {
            series.push(At(n as u64 * 1_000_000_000), *value, n);
        }
        series
    }

    #[test]
    fn each_reading_of_a_short_run_stays() {
        let values: Vec<u64> = (0..40).map(|n| n * n % 17).collect();
        let series = thinned(100, &values);
        assert_eq!(series.points().iter().map(|point| point.value).collect::<Vec<_>>(), values);
    }

    #[test]
    fn a_peak_of_one_reading_in_a_day_is_there() {
        let mut values = vec![5; 86_400];
        values[54_321] = 900;
        let series = thinned(300, &values);
        let points = series.points();
        assert!(points.len() <= 600, "{}", points.len());
        assert!(points.iter().any(|point| point.value == 900 && point.of == 54_321));
    }

    proptest! {
        #[test]
        fn smallest_and_largest_stay_and_time_rises(values in prop::collection::vec(0_u64..1000, 1..600), most in 2_usize..50) {
            let series = thinned(most, &values);
            let points = series.points();
            prop_assert!(points.len() <= 2 * most);
            let left = || points.iter().map(|point| point.value);
            prop_assert_eq!(left().max(), values.iter().copied().max());
            prop_assert_eq!(left().min(), values.iter().copied().min());
            prop_assert!(points.windows(2).all(|pair| pair[0].at < pair[1].at));
            prop_assert!(points.iter().all(|point| values[point.of] == point.value));
        }
    }
}
