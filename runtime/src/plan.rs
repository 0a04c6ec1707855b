//! Places buffers with lifetimes in one arena: deterministic best fit in several orders, of which the smallest result counts.
//! The compiler uses the same function to predict memory. What must not be here: where sizes come from, or allocation.

use std::collections::BTreeMap;

/// A buffer to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes.
    pub size: u64,
    /// Alignment of its offset, a power of two.
    pub align: u64,
    /// The first step at which it holds something.
    pub first: u32,
    /// The last such step, inclusive.
    pub last: u32,
    /// Requests of one class share one place that fits the largest and lives through all their lifetimes.
    pub class: Option<u32>,
    /// Where it already is, if it may not move.
    pub fixed: Option<u64>,
}

/// Where everything goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// An offset for each request, in their order.
    pub offsets: Vec<u64>,
    /// The arena's size.
    pub size: u64,
    /// The greatest sum of sizes alive at one step: no placement can be smaller.
    pub peak_live: u64,
}

/// So many places are sought in one order only, as the time grows with the square.
const MANY: usize = 4096;

struct Group {
    request: Request,
    members: Vec<usize>,
}

/// A group's place and when it is used: side by side, as every later group looks at all of them.
#[derive(Clone, Copy)]
struct Placed {
    begin: u64,
    end: u64,
    group: usize,
    first: u32,
    last: u32,
}

/// Places the requests; `None` if the arena would exceed 2^63 bytes. The result depends on the requests only.
pub fn plan(requests: &[Request]) -> Option<Plan> {
    let groups = group(requests);
    let peak_live = peak(&groups)?;
    let mut best: Option<(Vec<u64>, u64)> = None;
    for order in orders(&groups) {
        if best.as_ref().is_some_and(|b| b.1 <= peak_live || groups.len() > MANY) {
            break;
        }
        if let Some(placed) = place(&groups, &order)
            && best.as_ref().is_none_or(|b| placed.1 < b.1)
        {
            best = Some(placed);
        }
    }
    let (places, size) = best?;
    let mut offsets = vec![0; requests.len()];
    for (Group { members, .. }, place) in groups.iter().zip(places) {
        members.iter().for_each(|&m| offsets[m] = place);
    }
    Some(Plan { offsets, size, peak_live })
}

/// What comes first has the greatest key, of the request and the number of steps it lives.
type Key = fn(&Request, u64) -> (u128, u128);

/// Orders to place the groups in, those that serve most programs first; what has its place already always comes first.
fn orders(groups: &[Group]) -> impl Iterator<Item = Vec<usize>> {
    let span = |r: &Request| u64::from(r.last.max(r.first) - r.first) + 1;
    let keys: [Key; 5] = [
        |r, _| (u128::from(r.size), 0),
        |r, span| (u128::from(r.size) * u128::from(span), 0),
        |r, span| (u128::from(span), u128::from(r.size)),
        |r, _| (u128::from(u32::MAX - r.first), u128::from(r.size)),
        |r, _| (u128::from(r.last), u128::from(r.size)),
    ];
    keys.into_iter().map(move |key| {
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&g| {
            let r = &groups[g].request;
            (r.fixed.is_none(), std::cmp::Reverse(key(r, span(r))), r.first, g)
        });
        order
    })
}

/// An offset for each group, placed in this order, and the size of the whole.
fn place(groups: &[Group], order: &[usize]) -> Option<(Vec<u64>, u64)> {
    let mut placed: Vec<Placed> = Vec::new();
    let (mut places, mut size) = (vec![0; groups.len()], 0);
    for &g in order {
        let r = &groups[g].request;
        if r.size == 0 {
            continue;
        }
        let offset = match r.fixed {
            Some(offset) => offset,
            None => best_fit(r, &placed)?,
        };
        let end = offset.checked_add(r.size).filter(|e| *e <= i64::MAX as u64)?;
        let at = placed.partition_point(|p| (p.begin, p.group) < (offset, g));
        placed.insert(at, Placed { begin: offset, end, group: g, first: r.first, last: r.last });
        places[g] = offset;
        size = size.max(end);
    }
    Some((places, size))
}

fn group(requests: &[Request]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut classes: BTreeMap<u32, usize> = BTreeMap::new();
    for (i, r) in requests.iter().enumerate() {
        let known = r.class.and_then(|c| classes.get(&c).copied());
        match known {
            Some(g) => {
                let Group { request, members } = &mut groups[g];
                request.size = request.size.max(r.size);
                request.align = request.align.max(r.align);
                request.first = request.first.min(r.first);
                request.last = request.last.max(r.last);
                request.fixed = request.fixed.or(r.fixed);
                members.push(i);
            }
            None => {
                if let Some(c) = r.class {
                    classes.insert(c, groups.len());
                }
                groups.push(Group { request: *r, members: vec![i] });
            }
        }
    }
    groups
}

fn peak(groups: &[Group]) -> Option<u64> {
    let mut events: Vec<(u64, bool, u64)> = Vec::new();
    for Group { request: r, .. } in groups {
        events.push((u64::from(r.first), true, r.size));
        events.push((u64::from(r.last.max(r.first)) + 1, false, r.size));
    }
    events.sort_unstable();
    let (mut live, mut peak) = (0u64, 0u64);
    for (_, begins, size) in events {
        live = if begins { live.checked_add(size)? } else { live - size };
        peak = peak.max(live);
    }
    Some(peak)
}

/// The start of the smallest gap that fits among the places of what lives at the same time; behind all of it otherwise.
fn best_fit(r: &Request, placed: &[Placed]) -> Option<u64> {
    let mut best: Option<(u64, u64)> = None;
    let mut cursor = 0u64;
    for &Placed { begin, end, first, last, .. } in placed {
        if last < r.first || r.last < first {
            continue;
        }
        let start = align_up(cursor, r.align)?;
        if start.checked_add(r.size)? <= begin {
            let gap = begin - cursor;
            if best.is_none_or(|(smallest, _)| gap < smallest) {
                best = Some((gap, start));
            }
        }
        cursor = cursor.max(end);
    }
    match best {
        Some((_, start)) => Some(start),
        None => align_up(cursor, r.align),
    }
}

fn align_up(v: u64, align: u64) -> Option<u64> {
    v.checked_next_multiple_of(align.max(1))
}
