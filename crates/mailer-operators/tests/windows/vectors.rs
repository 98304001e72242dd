//! Which windows a record belongs to, each case as data.

use crate::{by_key, last, ms, record};
use mailer_operators::harness::{Input, check_script};
use mailer_operators::{Assigner, Session, Sliding, Tumbling, Windows};

/// Times of records, and the windows with their counts, in seconds.
type Vector<W> = (W, &'static [i64], &'static [(i64, i64, u64)]);

fn check<W: Assigner>(vectors: Vec<Vector<W>>) {
    for (assigner, times, expected) in vectors {
        let mut script: Vec<_> = times.iter().map(|time| record(time * 1_000, "k", 1)).collect();
        script.push(Input::Watermark(i64::MAX));
        let counted = |&(start, end, count): &(i64, i64, u64)| last("k", start * 1_000, end * 1_000, count);
        let expected: Vec<_> = expected.iter().map(counted).collect();
        check_script(by_key(Windows::of(assigner).count("counts")), &script, &expected).unwrap();
    }
}

const MINUTE: i64 = 60;

#[test]
fn tumbling() {
    let size = |seconds: u64| Tumbling::of(ms(seconds * 1_000));
    check(vec![
        (size(300), &[7 * MINUTE + 30], &[(5 * MINUTE, 10 * MINUTE, 1)]),
        (size(300), &[10 * MINUTE], &[(10 * MINUTE, 15 * MINUTE, 1)]),
        (size(300).offset(ms(60_000)), &[7 * MINUTE], &[(6 * MINUTE, 11 * MINUTE, 1)]),
        (size(5), &[-1], &[(-5, 0, 1)]),
        (size(5), &[-5, -6, 0, 4], &[(-10, -5, 1), (-5, 0, 1), (0, 5, 2)]),
    ]);
}

#[test]
fn sliding() {
    let of = |size: u64, slide: u64| Sliding::of(ms(size * 1_000), ms(slide * 1_000));
    check(vec![
        (of(10, 5), &[7], &[(0, 10, 1), (5, 15, 1)]),
        (of(10, 5), &[3], &[(-5, 5, 1), (0, 10, 1)]),
        (of(10, 5), &[3, 7], &[(-5, 5, 1), (0, 10, 2), (5, 15, 1)]),
        (of(10, 4), &[0, 9], &[(-8, 2, 1), (-4, 6, 1), (0, 10, 2), (4, 14, 1), (8, 18, 1)]),
        (of(6, 6), &[1], &[(0, 6, 1)]),
        (of(4, 2).offset(ms(1_000)), &[1], &[(-1, 3, 1), (1, 5, 1)]),
    ]);
}

#[test]
fn sessions() {
    let gap = |seconds: u64| Session::gap(ms(seconds * 1_000));
    check(vec![
        (gap(30), &[0, 25], &[(0, 55, 2)]),
        (gap(30), &[0, 30], &[(0, 30, 1), (30, 60, 1)]),
        (gap(30), &[0, 50, 25], &[(0, 80, 3)]),
        (gap(30), &[50, 0], &[(0, 30, 1), (50, 80, 1)]),
        (gap(30), &[0, 60, 120, 29, 89], &[(0, 59, 2), (60, 119, 2), (120, 150, 1)]),
        (gap(30), &[0, 60, 30], &[(0, 30, 1), (30, 60, 1), (60, 90, 1)]),
        (gap(30).inclusive(), &[0, 60, 30], &[(0, 90, 3)]),
        (gap(30).inclusive(), &[0, 30], &[(0, 60, 2)]),
        (gap(5), &[-1, -4], &[(-4, 4, 2)]),
    ]);
}
