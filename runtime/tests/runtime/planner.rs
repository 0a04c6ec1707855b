//! Properties of the planner on random requests.

use tgc_runtime::{Request, plan};

use crate::machine::Random;

fn requests(random: &mut Random, n: u64) -> Vec<Request> {
    (0..n)
        .map(|_| {
            let first = random.below(30) as u32;
            Request {
                size: if random.below(8) == 0 { 0 } else { random.below(5000) },
                align: 1 << random.below(9),
                first,
                last: first + random.below(6) as u32,
                class: (random.below(4) == 0).then(|| random.below(5) as u32),
                fixed: None,
            }
        })
        .collect()
}

fn shares(a: &Request, b: &Request) -> bool {
    a.class.is_some() && a.class == b.class
}

/// The lifetime of a request with all of its class.
fn alive(all: &[Request], r: &Request) -> (u32, u32) {
    let group = all.iter().filter(|o| *o == r || shares(o, r));
    group.fold((r.first, r.last), |(f, l), o| (f.min(o.first), l.max(o.last)))
}

#[test]
fn places_are_aligned_disjoint_bounded_and_repeatable() {
    let mut random = Random(11);
    for round in 0..300 {
        let n = random.below(40);
        let all = requests(&mut random, n);
        let p = plan(&all).unwrap();
        assert_eq!(p, plan(&all).unwrap());
        assert!(p.size >= p.peak_live, "round {round}");
        let total: u64 = all.iter().map(|r| r.size + r.align).sum();
        assert!(p.size <= total);
        for (i, a) in all.iter().enumerate() {
            assert!(p.offsets[i].is_multiple_of(a.align) && p.offsets[i] + a.size <= p.size);
            for (j, b) in all.iter().enumerate().skip(i + 1) {
                if shares(a, b) {
                    assert_eq!(p.offsets[i], p.offsets[j]);
                    continue;
                }
                let ((af, al), (bf, bl)) = (alive(&all, a), alive(&all, b));
                let apart = al < bf || bl < af;
                let disjoint = p.offsets[i] + a.size <= p.offsets[j] || p.offsets[j] + b.size <= p.offsets[i];
                assert!(apart || disjoint || a.size == 0 || b.size == 0, "round {round}: {a:?} {b:?}");
            }
        }
    }
}

#[test]
fn fixed_places_stay_and_are_avoided() {
    let r = |size, first, last, fixed| Request { size, align: 64, first, last, class: None, fixed };
    let p =
        plan(&[r(100, 0, 5, Some(256)), r(200, 3, 4, None), r(300, 3, 4, None), r(300, 6, 7, None)]).unwrap();
    assert_eq!(p.offsets, [256, 0, 384, 0]);
    assert_eq!((p.size, p.peak_live), (684, 600));
}

#[test]
fn chains_reuse_two_places() {
    let chain: Vec<Request> = (0..50)
        .map(|i| Request { size: 1024, align: 64, first: i, last: i + 1, class: None, fixed: None })
        .collect();
    let p = plan(&chain).unwrap();
    assert_eq!((p.size, p.peak_live), (2048, 2048));
}

#[test]
fn absurd_sizes_have_no_plan() {
    let r = |size| Request { size, align: 64, first: 0, last: 0, class: None, fixed: None };
    assert!(plan(&[r(u64::MAX), r(u64::MAX)]).is_none());
    assert!(plan(&[r(1 << 62), r(1 << 62)]).is_none());
    assert!(plan(&[]).is_some_and(|p| p.size == 0));
}
