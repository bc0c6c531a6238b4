//! Welch's t-test: how likely two samples of equal means differ this much by chance.

/// Two-sided p-value.
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    let ((mean_a, error_a), (mean_b, error_b)) = (moments(a), moments(b));
    let error = error_a + error_b;
    if error == 0.0 {
        return if mean_a == mean_b { 1.0 } else { 0.0 };
    }
    let t2 = (mean_a - mean_b).powi(2) / error;
    let part = |error: f64, count: usize| error * error / (count as f64 - 1.0);
    let freedom = error * error / (part(error_a, a.len()) + part(error_b, b.len()));
    incomplete_beta(freedom / (freedom + t2), freedom / 2.0, 0.5)
}

/// Mean, and squared standard error of the mean.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, squares / (count - 1.0) / count)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz's method).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly on this side only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    let tiny = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / tiny(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..300 {
        let m = f64::from(m);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / tiny(1.0 + numerator * d);
            c = tiny(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction / a
}

/// Stirling's series, after moving the argument to where it is exact enough.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use super::{ln_gamma, p_value};

    #[test]
    fn p_values_are_those_of_the_tables() {
        // t = 1.095 with 6 degrees of freedom; t = 24.5 with 4; equal means.
        let cases: [(&[f64], &[f64], f64); 4] = [
            (&[1.0, 2.0, 3.0, 4.0], &[2.0, 3.0, 4.0, 5.0], 0.315_333),
            (&[10.0, 10.1, 9.9], &[12.0, 12.1, 11.9], 1.65e-5),
            (&[5.0, 7.0, 6.0, 9.0, 8.0], &[6.5, 7.5, 7.0], 1.0),
            (&[1.0, 1.0], &[1.0, 1.0], 1.0),
        ];
        for (a, b, expected) in cases {
            let p = p_value(a, b);
            assert!((p - expected).abs() < 1e-4, "{a:?} {b:?}: {p}, expected {expected}");
        }
        assert_eq!(p_value(&[1.0, 1.0], &[2.0, 2.0]), 0.0);
    }

    #[test]
    fn ln_gamma_of_factorials() {
        for (x, gamma) in [(1.0, 1.0_f64), (2.0, 1.0), (5.0, 24.0), (11.0, 3_628_800.0)] {
            assert!((ln_gamma(x) - gamma.ln()).abs() < 1e-9, "{x}");
        }
    }
}
