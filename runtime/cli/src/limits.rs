//! What the machine can do at most: fused multiply-adds a second and bytes read a second, measured with as many threads as
//! a run has. What must not be here: what is compared with it. `unsafe` is here because the vector instructions that reach
//! the peak exist on some CPUs only: each loop is called when its instructions were found.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Time each of the two measurements takes, several rounds of it; the best round counts.
const ROUND: Duration = Duration::from_millis(4);
const ROUNDS: usize = 8;
/// Bytes read by all threads together: more than caches hold.
const READ: usize = 96 << 20;
/// Chains that are independent of each other: more than the latency times the rate of multiply-adds, and with the factors
/// no more than 16 registers.
const CHAINS: usize = 12;

/// The machine's limits for some number of threads.
pub(crate) struct Limits {
    /// Operations a second, a multiply-add being two; `None` where no loop is written for the CPU.
    pub(crate) flops: Option<f64>,
    /// Bytes a second from memory.
    pub(crate) bytes: f64,
    /// The instructions that were measured.
    pub(crate) instructions: &'static str,
}

/// Measures; takes about a tenth of a second.
pub(crate) fn measure(threads: usize) -> Limits {
    let (instructions, peak) = peak_loop();
    let flops = peak.map(|f| together(threads, |_| rounds_per_second(f)) * f.flops as f64);
    let part = (READ / threads.max(1)).max(1 << 20) / 8;
    let bytes = together(threads, |_| words_per_second(part)) * 8.0;
    Limits { flops, bytes, instructions }
}

/// The sum over threads that work at the same time.
fn together(threads: usize, work: impl Fn(usize) -> f64 + Sync) -> f64 {
    let (start, work) = (Barrier::new(threads), &work);
    thread::scope(|s| {
        let all: Vec<_> = (0..threads)
            .map(|i| {
                let start = &start;
                s.spawn(move || {
                    start.wait();
                    work(i)
                })
            })
            .collect();
        all.into_iter().map(|t| t.join().unwrap_or(0.0)).sum()
    })
}

/// Words a second read from memory by this thread.
fn words_per_second(words: usize) -> f64 {
    // Written before it is read: untouched pages would all be one page of zeros.
    let data: Vec<u64> = (0..words as u64).collect();
    let mut best = 0.0f64;
    for _ in 0..3 {
        let began = Instant::now();
        let mut sums = [0u64; 8];
        for w in data.as_chunks::<8>().0 {
            for (s, v) in sums.iter_mut().zip(w) {
                *s = s.wrapping_add(*v);
            }
        }
        black_box(sums);
        best = best.max(words as f64 / began.elapsed().as_secs_f64());
    }
    best
}

/// A loop that does nothing but multiply-adds.
#[derive(Clone, Copy)]
struct Peak {
    /// Runs this many rounds, where the CPU has the instructions.
    run: fn(u64),
    /// Operations of a round.
    flops: usize,
}

/// Rounds a second of this thread.
fn rounds_per_second(peak: Peak) -> f64 {
    let mut rounds = 1 << 12;
    let mut best = 0.0f64;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        (peak.run)(rounds);
        let took = began.elapsed();
        best = best.max(rounds as f64 / took.as_secs_f64());
        if took < ROUND {
            rounds = (rounds as f64 * ROUND.as_secs_f64() / took.as_secs_f64().max(1e-6)) as u64 + 1;
        }
    }
    best
}

#[cfg(target_arch = "x86_64")]
fn peak_loop() -> (&'static str, Option<Peak>) {
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512F, as just found.
        ("avx512f", Some(Peak { run: |n| unsafe { x86::avx512(n) }, flops: CHAINS * 16 * 2 }))
    } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has AVX2 and FMA, as just found.
        ("avx2+fma", Some(Peak { run: |n| unsafe { x86::avx2(n) }, flops: CHAINS * 8 * 2 }))
    } else {
        ("none with fma", None)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CHAINS, black_box};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512(rounds: u64) {
        let (a, b) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(0.001)));
        let mut chains = [_mm512_set1_ps(1.0); CHAINS];
        for _ in 0..rounds {
            chains.iter_mut().for_each(|c| *c = _mm512_fmadd_ps(*c, a, b));
        }
        black_box(chains);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2(rounds: u64) {
        let (a, b) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(0.001)));
        let mut chains = [_mm256_set1_ps(1.0); CHAINS];
        for _ in 0..rounds {
            chains.iter_mut().for_each(|c| *c = _mm256_fmadd_ps(*c, a, b));
        }
        black_box(chains);
    }
}

#[cfg(target_arch = "aarch64")]
fn peak_loop() -> (&'static str, Option<Peak>) {
    if std::arch::is_aarch64_feature_detected!("neon") {
        // SAFETY: the CPU has NEON, as just found.
        ("neon", Some(Peak { run: |n| unsafe { arm::neon(n) }, flops: CHAINS * 4 * 2 }))
    } else {
        ("none with fma", None)
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{CHAINS, black_box};
    use std::arch::aarch64::*;

    #[target_feature(enable = "neon")]
    pub(super) fn neon(rounds: u64) {
        let (a, b) = (vdupq_n_f32(black_box(0.999)), vdupq_n_f32(black_box(0.001)));
        let mut chains = [vdupq_n_f32(1.0); CHAINS];
        for _ in 0..rounds {
            chains.iter_mut().for_each(|c| *c = vfmaq_f32(b, *c, a));
        }
        black_box(chains);
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn peak_loop() -> (&'static str, Option<Peak>) {
    ("none with fma", None)
}
