//! Cases of the example `scan`.

use super::trial::{Trial, trials, whole, wide};
use crate::examples::scan::monoid::{ArgMax, Monoid};
use crate::examples::scan::{argmax, csr_spmv, segmented_scan};
use runtime::testing::{Bound, Expected, Input};

trials!(argmax, |_| {
    let all = |threads: usize| {
        let n = 1000 + threads;
        let different = (0..n).map(|i| (i * 4289 % 10_007) as f32).collect::<Vec<_>>();
        let falling = (0..n).map(|i| -(i as f32)).collect::<Vec<_>>();
        // In each block a later thread reaches the largest value before the first thread does.
        let twice = |later: [usize; 3]| {
            let mut x = vec![0.0; 6 * threads];
            for (block, thread) in later.into_iter().enumerate() {
                x[block * threads + thread % threads] = 1.0;
                x[(3 + block) * threads] = 1.0;
            }
            x
        };
        let nothing = vec![f32::NEG_INFINITY; n];
        [
            ("ties", whole(n, 9)),
            ("all different", different),
            ("falling", falling),
            ("the largest in warps 0 and the last, 8, and 1", twice([threads - 1, 256, 32])),
            ("the largest in warps 0 and 4, 2, and 16", twice([128, 64, 512])),
            ("nothing but −∞", nothing),
            ("NaNs before −∞", (0..n).map(|i| if i < 3 * threads { f32::NAN } else { f32::NEG_INFINITY }).collect()),
            ("none for the last block", vec![1.0; 2 * threads]),
        ]
        .map(|(what, x)| largest(what, &x, threads))
    };
    [32, 96, 992, 1024].into_iter().flat_map(all).collect()
});

fn largest(what: &str, x: &[f32], threads: usize) -> Trial {
    let best = |all: &[(f32, u32)]| all.iter().copied().reduce(ArgMax::join).unwrap_or(ArgMax::ZERO);
    let part = |block: usize| {
        let mine = |i: &usize| *i % (3 * threads) / threads == block;
        best(&(0..x.len()).filter(mine).map(|i| (x[i].max(f32::NEG_INFINITY), i as u32)).collect::<Vec<_>>())
    };
    let parts: Vec<_> = (0..3).map(part).collect();
    let expected = [
        Expected::new(1, parts.iter().map(|p| f64::from(p.0)).collect(), Bound::Exact),
        Expected::new(2, parts.iter().map(|p| f64::from(p.1)).collect(), Bound::Exact),
    ];
    let inputs = [Input::slice(x), Input::slice(&[0f32; 3]), Input::slice(&[0u32; 3])];
    Trial::new(format!("{} elements, {what}, 3 blocks", x.len()), inputs, expected).with_block(threads)
}

trials!(segmented_scan, |_| {
    vec![
        segments("a head every 37 elements", 1000, |i| i % 37 == 5),
        // Segments that span warps, begin at a warp or end at one; a block without flags; a warp
        // with flags everywhere.
        segments("few heads", 1300, |i| matches!(i, 70 | 128 | 767 | 900..=906 | 1023 | 1279)),
    ]
});

fn segments(name: &str, n: usize, head: impl Fn(usize) -> bool) -> Trial {
    let (x, blocks) = (whole(n, 9), n.div_ceil(256));
    let heads: Vec<u8> = (0..n).map(|i| u8::from(head(i))).collect();
    let (mut y, mut carry, mut carry_head) = (vec![0f32; n], vec![0f32; blocks], vec![0u8; blocks]);
    for i in 0..n {
        let anew = heads[i] != 0 || i % 256 == 0;
        y[i] = if anew { x[i] } else { y[i - 1] + x[i] };
        carry_head[i / 256] |= heads[i];
        carry[i / 256] = y[i];
    }
    // Threads of the last block beyond the end add nothing.
    let expected = [
        Expected::new(2, wide(&y), Bound::Exact),
        Expected::new(3, wide(&carry), Bound::Exact),
        Expected::new(4, carry_head.iter().map(|h| f64::from(*h)).collect(), Bound::Exact),
    ];
    let inputs = [
        Input::slice(&x),
        Input::slice(&heads),
        Input::slice(&vec![0f32; n]),
        Input::slice(&vec![0f32; blocks]),
        Input::slice(&vec![0u8; blocks]),
    ];
    Trial::new(format!("{n} elements, {name}"), inputs, expected)
}

trials!(csr_spmv<8>, |_| {
    vec![
        sparse("50 rows of 20", &[20; 50]),
        // Several blocks; rows of all lengths, some empty.
        sparse("150 rows of 0 to 22", &std::array::from_fn::<usize, 150, _>(|r| r * 7 % 23)),
    ]
});

fn sparse(name: &str, lengths: &[usize]) -> Trial {
    let mut rows = vec![0usize];
    lengths.iter().for_each(|n| rows.push(rows[rows.len() - 1] + n));
    let n = rows[lengths.len()];
    let (values, x) = (whole(n, 9), whole(n, 5));
    let columns: Vec<u32> = (0..n).map(|i| (i * 7 % n) as u32).collect();
    let sum = |row: &[usize]| (row[0]..row[1]).map(|j| values[j] * x[columns[j] as usize]).sum();
    let sums: Vec<f32> = rows.windows(2).map(sum).collect();
    let rows: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
    let y = Input::slice(&vec![0f32; lengths.len()]);
    let inputs = [Input::slice(&rows), Input::slice(&columns), Input::slice(&values), Input::slice(&x), y];
    Trial::new(name, inputs, [Expected::new(4, wide(&sums), Bound::Exact)])
}
