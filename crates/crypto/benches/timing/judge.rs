//! Whether one of two classes of times is the slower: Welch's t of the times that were not interrupted, and what it
//! takes to believe it. After "dude, is my code constant time?" (Reparaz, Balasch, Verbauwhede, 2017).
//!
//! Unlike there, t is taken of spans in which few samples follow one another, and joined: on a machine with others on
//! it the same operation takes half as long again for a second, and that is not to hide nanoseconds.
//!
//! Nothing here reads a clock: times are arguments, and so is what takes them.

/// Nanoseconds of an operation, and whether it was of the second class.
pub(crate) type Sample = (f64, bool);

/// Above this, in magnitude, a difference is seen. Section 3 of the paper.
pub(crate) const THRESHOLD: f64 = 4.5;

/// In so many runs of as many it is seen before it is believed.
pub(crate) const RUN_COUNT: usize = 3;

/// Samples of a span: a few milliseconds of batches.
const SPAN: usize = 500;

/// The fastest part of the samples of a span that is kept: what is slower was interrupted, or met a cache that others
/// had used. Each part gives a t, and the one with the largest magnitude counts.
const KEPT_PARTS: [f64; 2] = [0.9, 0.5];

/// What one run showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    /// Welch's t, positive if the second class is the slower. What is no number was measured on nothing.
    pub(crate) t: f64,
    /// The mean of the second class less that of the first, in nanoseconds.
    pub(crate) ns: f64,
}

impl Difference {
    /// Of samples in the order in which they were taken. Those of each span are sorted.
    pub(crate) fn of(samples: &mut [Sample]) -> Self {
        samples.chunks_mut(SPAN).for_each(|span| span.sort_by(|a, b| a.0.total_cmp(&b.0)));
        let [whole, half] = KEPT_PARTS.map(|part| Difference::of_part(samples, part));
        if half.t.abs() > whole.t.abs() { half } else { whole }
    }

    /// Of the fastest part of each span, each weighted by how sure it is. Of one span it is Welch's t.
    fn of_part(samples: &[Sample], part: f64) -> Self {
        let (mut sum, mut weights) = (0.0, 0.0);
        for span in samples.chunks(SPAN) {
            let [first, second] = moments(&span[..(span.len() as f64 * part) as usize]);
            let variance = first.1 + second.1;
            // A span without two of each class has none.
            if variance > 0.0 {
                sum += (second.0 - first.0) / variance;
                weights += 1.0 / variance;
            }
        }
        Difference { t: sum / f64::sqrt(weights), ns: sum / weights }
    }

    fn is_seen(&self) -> bool {
        self.t.abs() > THRESHOLD
    }
}

/// Mean of each class, and the variance of that mean.
fn moments(samples: &[Sample]) -> [(f64, f64); 2] {
    [false, true].map(|class| {
        let values = || samples.iter().filter(|sample| sample.1 == class).map(|sample| sample.0);
        let count = values().count() as f64;
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    })
}

/// What runs showed of one pair of classes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Look {
    /// The runs, up to the first that decided.
    pub(crate) runs: Vec<Difference>,
}

impl Look {
    /// Whether in [`RUN_COUNT`] runs the same class was seen to be the slower.
    pub(crate) fn is_difference(&self) -> bool {
        let sign = self.runs[0].t.signum();
        let is_like_first = |run: &Difference| run.is_seen() && run.t.signum() == sign;
        self.runs.len() == RUN_COUNT && self.runs.iter().all(is_like_first)
    }

    /// Whether another run could change what is believed.
    fn is_open(&self) -> bool {
        let Some(first) = self.runs.first() else { return true };
        let is_like_first = |run: &Difference| run.is_seen() && run.t.signum() == first.t.signum();
        self.runs.len() < RUN_COUNT && self.runs.iter().all(is_like_first)
    }

    /// The t that decided: of all runs the one with the smallest magnitude.
    pub(crate) fn t(&self) -> f64 {
        let smallest = self.runs.iter().min_by(|a, b| a.t.abs().total_cmp(&b.t.abs()));
        smallest.expect("there is a run").t
    }

    /// The difference of the last run, in nanoseconds.
    pub(crate) fn ns(&self) -> f64 {
        self.runs.last().expect("there is a run").ns
    }
}

/// Looks at pairs of classes until nothing is open about any. `run` takes a number that differs between runs, and times
/// all pairs; there are as many each time, and one at least.
pub(crate) fn look_at_all(mut run: impl FnMut(u64) -> Vec<Difference>) -> Vec<Look> {
    let mut looks: Vec<Look> = Vec::new();
    for number in 1..=RUN_COUNT as u64 {
        if !looks.is_empty() && !looks.iter().any(Look::is_open) {
            break;
        }
        let seen = run(number);
        looks.resize(seen.len(), Look { runs: Vec::new() });
        for (look, seen) in looks.iter_mut().zip(seen) {
            if look.is_open() {
                look.runs.push(seen);
            }
        }
    }
    looks
}

/// Looks at one pair of classes.
pub(crate) fn look(mut run: impl FnMut(u64) -> Difference) -> Look {
    look_at_all(|number| vec![run(number)]).pop().expect("there is one pair")
}
