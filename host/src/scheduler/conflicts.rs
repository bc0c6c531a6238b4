//! How often it is said that a sequence begins anew before its end: clients that never send END would fill the log.

#[derive(Default)]
pub struct Conflicts {
    /// Nothing more is said before.
    quiet_until: u64,
    untold: u64,
}

impl Conflicts {
    const SILENCE_NS: u64 = 1_000_000_000;

    /// Whether to say this one; if so, how many were not said since the last.
    pub fn tell(&mut self, now: u64) -> Option<u64> {
        if now < self.quiet_until {
            self.untold += 1;
            return None;
        }
        self.quiet_until = now.saturating_add(Self::SILENCE_NS);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_told_once_a_second() {
        let mut conflicts = Conflicts::default();
        let times = [5, 6, 900_000_000, 1_000_000_006, 1_000_000_007, 3_000_000_000];
        let told = times.map(|now| conflicts.tell(now));
        assert_eq!(told, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
