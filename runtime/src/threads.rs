//! The fork-join pool: workers spin for a moment, then park; the caller is worker 0, and does what no worker has begun when
//! it is done with its own part. What must not be here: what the work is or how it is cut.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{Code, Error};

/// How long an idle worker looks for work before it sleeps: longer than the serial gaps between kernels.
const SPIN: Duration = Duration::from_micros(200);
const MAX_THREADS: usize = 1024;

const IDLE: u32 = 0;
const WORK: u32 = 1;
const PARKED: u32 = 2;
const STOP: u32 = 3;
const BUSY: u32 = 4;

type Job = *const (dyn Fn(usize) + Sync);

/// Threads that run one piece of work together. One pool may serve many sessions; when two ask at once, the second runs
/// its work alone.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    turn: Mutex<()>,
}

struct Shared {
    /// What the signalled workers run; written only while none of them is signalled or busy.
    job: UnsafeCell<Option<Job>>,
    slots: Vec<AtomicU32>,
    /// Workers that run.
    started: AtomicUsize,
    pending: AtomicUsize,
    panicked: AtomicBool,
    spin: Duration,
}

// SAFETY: `job` is written by the caller that holds `turn` while no worker is signalled or busy, and read only by busy
// workers, all of which are done before `run` returns; the slots' acquire and release order the accesses.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is to a `Sync` closure that outlives its use, see `run`.
unsafe impl Send for Shared {}

impl Pool {
    /// A pool of this many threads, the caller included.
    pub fn new(threads: usize) -> Result<Pool, Error> {
        if threads == 0 || threads > MAX_THREADS {
            return Err(Error::new(
                Code::Threads,
                format!("{threads} threads asked for; 1 to {MAX_THREADS} are possible"),
                "leave the number out to use the CPUs this process may use",
            ));
        }
        // More threads than CPUs would spin in each other's way.
        let spin = if threads > available() { Duration::ZERO } else { SPIN };
        let shared = Arc::new(Shared {
            job: UnsafeCell::new(None),
            slots: (1..threads).map(|_| AtomicU32::new(IDLE)).collect(),
            started: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            spin,
        });
        let mut pool = Pool { shared, workers: Vec::new(), turn: Mutex::new(()) };
        for i in 1..threads {
            let shared = pool.shared.clone();
            let worker = thread::Builder::new().name(format!("tgc-{i}")).spawn(move || shared.work(i));
            // On failure the pool is dropped, which ends the workers that were started.
            pool.workers.push(worker.map_err(|e| {
                Error::new(
                    Code::Threads,
                    format!("thread {i} of {threads} could not start: {e}"),
                    "ask for fewer threads",
                )
            })?);
        }
        // What a thread does once, such as allocating its own state, is done before the first run.
        while pool.shared.started.load(Ordering::Acquire) + 1 < threads {
            thread::yield_now();
        }
        Ok(pool)
    }

    /// The process's own pool, made on first use: one thread for each CPU the process may use.
    pub(crate) fn global() -> Result<Arc<Pool>, Error> {
        static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
        if let Some(pool) = POOL.get() {
            return Ok(pool.clone());
        }
        let made = Arc::new(Pool::new(available().min(MAX_THREADS))?);
        Ok(POOL.get_or_init(|| made).clone())
    }

    /// How many threads it has, the caller included.
    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `f(0)` .. `f(workers - 1)`, each once, and returns when all are done: whether none of them panicked. The calls
    /// run at the same time where they can.
    pub(crate) fn run(&self, workers: usize, f: &(dyn Fn(usize) + Sync)) -> bool {
        let others = workers.saturating_sub(1).min(self.workers.len());
        let turn = if others == 0 { None } else { self.turn.try_lock().ok() };
        if turn.is_none() {
            (0..workers).for_each(f);
            return true;
        }
        // SAFETY: only the lifetime changes; `Finish` below waits, also on unwinding, until no worker uses the closure.
        let job = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(f) };
        // SAFETY: we hold `turn` and no worker is signalled or busy, so nobody reads the cell now.
        unsafe { *self.shared.job.get() = Some(job) };
        self.shared.pending.store(others, Ordering::Relaxed);
        let finish = Finish(&self.shared);
        for (slot, worker) in self.shared.slots.iter().zip(&self.workers).take(others) {
            if slot.swap(WORK, Ordering::AcqRel) == PARKED {
                worker.thread().unpark();
            }
        }
        f(0);
        (others + 1..workers).for_each(f);
        // A worker that sleeps, or has lost its CPU, would only be waited for.
        for (i, slot) in self.shared.slots.iter().enumerate().take(others).rev() {
            if slot.compare_exchange(WORK, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                let done = Done(&self.shared);
                f(i + 1);
                drop(done);
            }
        }
        drop(finish);
        !self.shared.panicked.swap(false, Ordering::Relaxed)
    }
}

/// Counts one part of the work as done when dropped.
struct Done<'a>(&'a Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Release);
    }
}

/// Waits for the workers when dropped.
struct Finish<'a>(&'a Shared);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let since = Instant::now();
        let mut spins = 0u32;
        while self.0.pending.load(Ordering::Acquire) != 0 {
            spins = spins.wrapping_add(1);
            if self.0.spin.is_zero() || (spins.is_multiple_of(64) && since.elapsed() > self.0.spin) {
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Shared {
    fn work(&self, i: usize) {
        let slot = &self.slots[i - 1];
        self.started.fetch_add(1, Ordering::Release);
        loop {
            if self.wait(slot) == STOP {
                return;
            }
            // The caller may have taken the work back.
            if slot.compare_exchange(WORK, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            // SAFETY: this worker is busy, so the cell holds the running job, see `Shared`'s `Sync`.
            let job = unsafe { *self.job.get() };
            if let Some(job) = job {
                // SAFETY: the caller of `run` keeps the closure alive until `pending` is 0.
                let f = unsafe { &*job };
                if catch_unwind(AssertUnwindSafe(|| f(i))).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                }
            }
            // Idle before done: the caller may signal this slot again as soon as `pending` is 0.
            let stop = slot.compare_exchange(BUSY, IDLE, Ordering::Release, Ordering::Relaxed).is_err();
            self.pending.fetch_sub(1, Ordering::Release);
            if stop {
                return;
            }
        }
    }

    /// Waits until the slot says something other than that there is nothing to do.
    fn wait(&self, slot: &AtomicU32) -> u32 {
        let since = Instant::now();
        let mut spins = 0u32;
        loop {
            let now = slot.load(Ordering::Acquire);
            if now != IDLE {
                return now;
            }
            spins = spins.wrapping_add(1);
            if self.spin.is_zero() || (spins.is_multiple_of(64) && since.elapsed() > self.spin) {
                break;
            }
            std::hint::spin_loop();
        }
        if slot.compare_exchange(IDLE, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            while slot.load(Ordering::Acquire) == PARKED {
                thread::park();
            }
        }
        slot.load(Ordering::Acquire)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (slot, worker) in self.shared.slots.iter().zip(&self.workers) {
            slot.store(STOP, Ordering::Release);
            worker.thread().unpark();
        }
        for worker in self.workers.drain(..) {
            // A worker catches panics of its work; there is nothing to learn from the result.
            let _ = worker.join();
        }
    }
}

/// CPUs this process may use: affinity and cgroup quota counted.
fn available() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_runs_once_also_with_more_work_than_threads() {
        for threads in [1, 2, 3, 5] {
            let pool = Pool::new(threads).unwrap();
            for workers in [0, 1, 2, 3, 7] {
                for round in 0..200 {
                    let seen: Vec<AtomicU32> = (0..workers).map(|_| AtomicU32::new(0)).collect();
                    assert!(pool.run(workers, &|i| {
                        seen[i].fetch_add(1, Ordering::Relaxed);
                    }));
                    assert!(
                        seen.iter().all(|s| s.load(Ordering::Relaxed) == 1),
                        "{threads} {workers} {round}"
                    );
                }
            }
        }
    }

    #[test]
    fn parked_workers_wake() {
        let pool = Pool::new(2).unwrap();
        let count = AtomicU32::new(0);
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(2));
            assert!(pool.run(2, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            }));
        }
        assert_eq!(count.into_inner(), 10);
    }

    #[test]
    fn a_panicking_worker_is_reported_and_the_pool_lives_on() {
        let pool = Pool::new(2).unwrap();
        // The caller waits until the worker has begun, or it would take the work, and panic itself.
        let begun = AtomicBool::new(false);
        assert!(!pool.run(2, &|i| {
            begun.fetch_or(i == 1, Ordering::Relaxed);
            while !begun.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            assert!(i == 0, "worker {i} panics on purpose");
        }));
        assert!(pool.run(2, &|_| {}));
    }

    /// More threads than any machine has CPUs free: parts are taken back, which leaves the most to the scheduler; none is lost or
    /// done twice.
    #[test]
    fn work_that_nobody_began_is_done_by_the_caller() {
        let pool = Pool::new(24).unwrap();
        let all = AtomicU32::new(0);
        for _ in 0..300 {
            assert!(pool.run(24, &|i| {
                all.fetch_add(1 << (i % 2 * 16), Ordering::Relaxed);
            }));
            assert_eq!(all.swap(0, Ordering::Relaxed), 12 << 16 | 12);
        }
    }

    #[test]
    fn nested_and_concurrent_use_runs_alone() {
        let pool = Arc::new(Pool::new(2).unwrap());
        let count = AtomicU32::new(0);
        let inner = pool.clone();
        assert!(pool.run(2, &|_| {
            inner.run(2, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }));
        assert_eq!(count.load(Ordering::Relaxed), 4);
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..500 {
                        pool.run(2, &|_| {
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 4 + 4 * 500 * 2);
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(Pool::new(0).is_err());
        assert!(Pool::new(MAX_THREADS + 1).is_err());
    }
}
