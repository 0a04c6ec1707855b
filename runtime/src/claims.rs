//! Which worker runs which tiles of a launch: each begins with a contiguous part of its own and takes pieces from its front,
//! smaller and smaller ones, then pieces of the parts that others have not finished. A worker that comes late, or whose CPU
//! is busy with something else, so delays the launch by one piece at most. What must not be here: running anything.

use std::sync::atomic::{AtomicI64, Ordering};

/// A worker takes a part of what is left at a time, so that the last pieces are small: one in this many.
const PIECES: i64 = 4;

/// The parts of one launch after another; one for each thread of a pool.
pub(crate) struct Claims(Box<[Part]>);

/// Tiles `next..end` are not taken. Two cache lines each: neighbours are written by different threads.
#[repr(align(128))]
#[derive(Default)]
struct Part {
    next: AtomicI64,
    end: AtomicI64,
}

impl Claims {
    pub(crate) fn new(threads: usize) -> Claims {
        Claims((0..threads).map(|_| Part::default()).collect())
    }

    /// Shares tiles `0..tiles` out to this many workers. Only while nobody takes.
    pub(crate) fn share(&self, tiles: i64, workers: usize) {
        for (w, p) in self.0.iter().enumerate().take(workers) {
            let (begin, end) = part(tiles, workers, w);
            p.next.store(begin, Ordering::Relaxed);
            p.end.store(end, Ordering::Relaxed);
        }
    }

    /// Calls `f(begin, end)` for pieces of at least `least` tiles (or what is left), worker `w`'s own before those of the
    /// others, until none of the `workers` parts has any.
    pub(crate) fn work(&self, w: usize, workers: usize, least: i64, mut f: impl FnMut(i64, i64)) {
        let (before, from) = self.0[..workers].split_at(w);
        for part in from.iter().chain(before) {
            while let Some((begin, end)) = part.take(least) {
                f(begin, end);
            }
        }
    }
}

/// The tiles worker `w` begins with: contiguous, ascending, sizes differing by one at most.
pub(crate) fn part(tiles: i64, workers: usize, w: usize) -> (i64, i64) {
    let (n, w) = (workers as i64, w as i64);
    let begin = |w: i64| (tiles / n) * w + (tiles % n).min(w);
    (begin(w), begin(w + 1))
}

impl Part {
    fn take(&self, least: i64) -> Option<(i64, i64)> {
        let end = self.end.load(Ordering::Relaxed);
        let mut begin = self.next.load(Ordering::Relaxed);
        loop {
            let left = end - begin;
            if left <= 0 {
                return None;
            }
            let to = begin + (left / PIECES).max(least).min(left);
            match self.next.compare_exchange_weak(begin, to, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some((begin, to)),
                Err(now) => begin = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Also with workers that never come (only some call), and with more parts than tiles.
    #[test]
    fn every_tile_is_taken_once() {
        let claims = Claims::new(5);
        for (tiles, workers, least) in [(1, 2, 1), (3, 5, 1), (7, 2, 3), (1000, 5, 1), (1001, 3, 1 << 40)] {
            for callers in 1..=workers {
                claims.share(tiles, workers);
                let taken = Mutex::new(Vec::new());
                std::thread::scope(|s| {
                    for w in 0..callers {
                        let (claims, taken) = (&claims, &taken);
                        s.spawn(move || {
                            claims.work(w, workers, least, |b, e| taken.lock().unwrap().push((b, e)))
                        });
                    }
                });
                let mut taken = taken.into_inner().unwrap();
                taken.sort_unstable();
                let mut at = 0;
                for (begin, end) in taken {
                    assert_eq!(begin, at, "{tiles} tiles, {workers} workers");
                    assert!(end > begin);
                    at = end;
                }
                assert_eq!(at, tiles);
            }
        }
    }

    #[test]
    fn one_worker_gets_its_own_part_in_order_first() {
        let claims = Claims::new(2);
        claims.share(100, 2);
        let mut begins = Vec::new();
        claims.work(1, 2, 1, |b, _| begins.push(b));
        let own = begins.iter().position(|b| *b < 50).unwrap();
        assert!(
            begins[..own].is_sorted() && begins[own..].is_sorted() && begins[own..].iter().all(|b| *b < 50)
        );
    }

    /// The greatest numbers there are: no sum leaves the range.
    #[test]
    fn absurdly_many_tiles_are_shared_out() {
        let claims = Claims::new(3);
        claims.share(i64::MAX, 3);
        let mut covered = 0;
        claims.work(2, 3, 1 << 61, |b, e| covered += e - b);
        assert_eq!(covered, i64::MAX);
    }
}
