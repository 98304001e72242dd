//! From pairs of measurements to a difference and how sure it is: pure.

use mailer_state::testing::Rng;

/// So much is left out at each end: a pair in which something else had the machine says nothing.
const TRIM: f64 = 0.1;
/// How often the pairs are drawn anew.
const DRAWS: usize = 4_000;

/// A value, and between which bounds it is with 95 %.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// By how much the second of each pair is more than the first, as a share of it: the trimmed mean of the logarithms of
/// their ratios, with a bootstrap interval. Equal pairs give equal bounds: the draws have a seed.
pub(crate) fn difference(pairs: &[(f64, f64)]) -> Estimate {
    let logs: Vec<f64> = pairs.iter().map(|(plain, watched)| (watched / plain).ln()).collect();
    let mut rng = Rng::new(1);
    let mut draws: Vec<f64> =
        (0..DRAWS).map(|_| trimmed_mean((0..logs.len()).map(|_| logs[rng.below(logs.len())]).collect())).collect();
    draws.sort_by(f64::total_cmp);
    let bound = |share: f64| draws[((DRAWS - 1) as f64 * share).round() as usize].exp_m1();
    Estimate { value: trimmed_mean(logs).exp_m1(), low: bound(0.025), high: bound(0.975) }
}

fn trimmed_mean(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let cut = (values.len() as f64 * TRIM) as usize;
    let kept = &values[cut..values.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Among the tests: what is known beforehand is found, whatever a few pairs say.
pub(crate) fn check() {
    let mut rng = Rng::new(7);
    let noise = |rng: &mut Rng| 0.97 + rng.below(6_001) as f64 / 100_000.0;
    let mut pairs: Vec<_> = (0..200).map(|_| (noise(&mut rng), 1.02 * noise(&mut rng))).collect();
    pairs.extend([(1.0, 9.0), (1.0, 9.0), (1.0, 0.1)]);
    let Estimate { value, low, high } = difference(&pairs);
    assert!((value - 0.02).abs() < 0.005 && low < value && value < high, "{value} between {low} and {high}");
    assert!(high - low < 0.02, "between {low} and {high}");
}
