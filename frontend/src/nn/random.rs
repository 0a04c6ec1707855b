//! Random numbers of eager code: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011)
//! over the seed, the number of the call and the element's index, so that an element does not depend on how many were
//! made before it in the same call.

use std::cell::Cell;

thread_local! {
    static STATE: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Makes the random numbers that follow on this thread repeatable. The seed is 0 before the first call.
pub fn manual_seed(seed: u64) {
    STATE.set((seed, 0));
}

/// Numbers of one call.
pub(crate) struct Stream {
    seed: u64,
    call: u64,
}

impl Stream {
    pub(crate) fn next_call() -> Stream {
        let (seed, call) = STATE.get();
        STATE.set((seed, call + 1));
        Stream { seed, call }
    }

    fn bits(&self, i: u64) -> [u32; 4] {
        let mut c = [i as u32, (i >> 32) as u32, self.call as u32, (self.call >> 32) as u32];
        let mut k = [self.seed as u32, (self.seed >> 32) as u32];
        for _ in 0..10 {
            let a = 0xD251_1F53_u64 * u64::from(c[0]);
            let b = 0xCD9E_8D57_u64 * u64::from(c[2]);
            c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
            k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
        }
        c
    }

    /// 64 random bits for element `i`.
    pub(crate) fn word(&self, i: usize) -> u64 {
        let b = self.bits(i as u64);
        u64::from(b[0]) << 32 | u64::from(b[1])
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    pub(crate) fn uniform(&self, i: usize) -> f64 {
        (self.word(i) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&self, i: usize) -> f64 {
        let b = self.bits(i as u64);
        let scale = 1.0 / 4_294_967_296.0;
        let u = (f64::from(b[0]) + 1.0) * scale;
        let angle = f64::from(b[1]) * scale * std::f64::consts::TAU;
        (-2.0 * u.ln()).sqrt() * angle.cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answer of the algorithm's authors for a counter and key of zeros.
    #[test]
    fn philox_known_answer() {
        let s = Stream { seed: 0, call: 0 };
        assert_eq!(s.bits(0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }
}
