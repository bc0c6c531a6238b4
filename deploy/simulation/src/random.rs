//! Random numbers: xoshiro256++, so that a seed gives the same run on every machine.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct RandomStream {
    state: [u64; 4],
}

impl RandomStream {
    pub fn new(seed: u64) -> Self {
        // SplitMix64 fills the state, as the authors of xoshiro advise.
        let mut word = seed;
        let state = std::array::from_fn(|_| {
            word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = word;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        });
        Self { state }
    }

    pub fn next_word(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// From 0 (included) to 1 (excluded).
    pub fn next_unit(&mut self) -> f64 {
        (self.next_word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `limit`.
    pub fn next_index(&mut self, limit: usize) -> usize {
        ((u128::from(self.next_word()) * limit as u128) >> 64) as usize
    }

    /// Exponentially distributed.
    pub fn next_exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next_unit()).ln()
    }
}
