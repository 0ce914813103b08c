//! Kernels compiled by clang and LLVM, against plain Rust. Without optimization every variable is
//! in local memory and every function is called; the other two modules are optimized.
//! `clang/README.md` has the commands.

use super::launch::{Kernel, module, numbers};
use kernel_dsl::compiler::ptx::Module;

/// Returns the modules of all compilers.
fn modules() -> [Module; 3] {
    [include_str!("unoptimized.ptx"), include_str!("optimized.ptx"), include_str!("llvm_22.ptx")].map(module)
}

#[test]
fn a_stack_machine_computes_its_programs() {
    let (n, length) = (48, 20);
    let programs: Vec<u8> = numbers(1).map(|x| x as u8).take(n * length).collect();
    let operate = |what: u8, a: i32, b: i32| match what {
        0 => a.wrapping_add(b),
        1 => a.wrapping_sub(b),
        2 => a.wrapping_mul(b),
        3 => a.checked_div(b).unwrap_or(-1),
        4 => a.checked_rem(b).unwrap_or(-2),
        5 => a.wrapping_shl(b as u32),
        6 => a.wrapping_shr(b as u32),
        7 => a ^ b,
        _ => a.max(b),
    };
    let expected: Vec<i32> = programs
        .chunks_exact(length)
        .map(|program| {
            let mut stack: Vec<i32> = Vec::new();
            for &code in program {
                if code < 128 {
                    stack.push(i32::from(code) - 64);
                    stack.truncate(16);
                } else if let [.., a, b] = stack[..] {
                    stack.truncate(stack.len() - 2);
                    stack.push(operate(code % 9, a, b));
                }
            }
            stack.iter().rev().fold(0, |sum: i32, x| sum.wrapping_mul(31).wrapping_add(*x))
        })
        .collect();
    for module in modules() {
        let kernel = Kernel::of(&module, "machine", 2, 32).read(&programs).bits(length as u64);
        assert_eq!(kernel.written(&[0i32; 48]).bits(n as u64).run().get::<i32>(0), expected);
    }
}

/// Returns a pair in the layout of C: two doubles, a float, three shorts, a char.
fn pair(re: f64, im: f64, weight: f32, tags: [i16; 3], mark: i8) -> Vec<u8> {
    let mut bytes = [re.to_le_bytes(), im.to_le_bytes()].concat();
    bytes.extend(weight.to_le_bytes());
    bytes.extend(tags.iter().flat_map(|t| t.to_le_bytes()));
    bytes.extend([mark as u8, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn structures_are_passed_by_value() {
    let (re, im) = (0.5, -2.0);
    let (mut given, mut expected) = (Vec::new(), Vec::new());
    for i in 0..40u8 {
        let (x, y) = (f64::from(i) - 3.0, 1.0 / f64::from(i + 1));
        let (weight, tags, mark) = (f32::from(i) * 0.25, [i16::from(i), -1, 1000 - i16::from(i)], i as i8);
        given.extend(pair(x, y, weight, tags, mark));
        let (x, y) = (x * re - y * im, x * im + y * re);
        expected.extend(pair(x * re - y * im, x * im + y * re, weight, tags, mark + 2));
    }
    let by = [f64::to_le_bytes(re), f64::to_le_bytes(im)].concat();
    for module in modules() {
        let results = Kernel::of(&module, "turn", 2, 32).written(&given).structure(&by).bits(40).run();
        // The padding between the members is unspecified.
        for (ours, theirs) in results.get::<[u8; 32]>(0).iter().zip(expected.chunks_exact(32)) {
            assert_eq!(ours[..27], theirs[..27]);
        }
    }
}

#[test]
fn functions_of_a_table_are_called() {
    let x: Vec<f32> = (0..60u8).map(|i| f32::from(i) * 0.5 - 7.25).collect();
    let which: Vec<i32> = numbers(2).map(|x| (x & 63) as i32).take(60).collect();
    let expected = x.iter().zip(&which).map(|(x, which)| {
        (0..3).fold(*x, |v, k| match which >> (2 * k) & 3 {
            0 => v * v * 0.5,
            1 => (v + v) * 0.25,
            2 => (v - 3.0) * 2.0,
            _ => -(1.0 / v),
        })
    });
    let expected: Vec<f32> = expected.collect();
    for module in modules() {
        let kernel = Kernel::of(&module, "composed", 2, 32).read(&x).read(&which).written(&[0f32; 60]).bits(60);
        assert_eq!(kernel.run().get::<f32>(0), expected);
    }
}

#[test]
fn a_merge_sort_sorts_each_block() {
    let keys: Vec<u64> = numbers(3).map(|x| x >> (x & 63)).take(256).collect();
    let mut expected = keys.clone();
    expected.chunks_exact_mut(128).for_each(|block| block.sort_unstable());
    for module in modules() {
        assert_eq!(Kernel::of(&module, "merge_sort", 2, 128).written(&keys).run().get::<u64>(0), expected);
    }
}

#[test]
fn products_of_256_bits_are_exact() {
    let words = |seed| numbers(seed).map(|x| x as u32).take(33 * 8).collect::<Vec<u32>>();
    let (a, b) = (words(4), words(5));
    let mut expected = Vec::new();
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        // Column by column. The sum of a column of eight products has at most 67 bits.
        let mut carry = 0u128;
        for k in 0..16 {
            let column = (0..8).filter(|i| (0..8).contains(&(k - i)));
            carry += column.map(|i: i32| u128::from(a[i as usize]) * u128::from(b[(k - i) as usize])).sum::<u128>();
            expected.push(carry as u32);
            carry >>= 32;
        }
    }
    for module in modules() {
        let kernel = Kernel::of(&module, "long_products", 2, 32).read(&a).read(&b).written(&[0u32; 33 * 16]).bits(33);
        assert_eq!(kernel.run().get::<u32>(0), expected);
    }
}

#[test]
fn integers_of_every_width_agree_with_rust() {
    let a: Vec<i8> = numbers(6).map(|x| x as i8).take(64).collect();
    let b: Vec<u16> = numbers(7).map(|x| x as u16).take(64).collect();
    let c: Vec<i64> = numbers(8).map(|x| x as i64 >> (x & 31)).take(64).collect();
    let expected = (0..64).map(|i| {
        let (x, y) = (a[i].wrapping_mul(3), b[i].wrapping_sub(a[i] as u16));
        let z = c[i] / i64::from(if x == 0 { 1 } else { x }) + c[i] % (i64::from(y) + 1);
        let bits = c[i].count_ones() + u32::from(y | 1).leading_zeros() + (c[i] as u64 | 1 << 63).trailing_zeros();
        // By C's rules, int and unsigned give unsigned, which is then added to the long sum.
        let z = z.wrapping_add(i64::from(x >> 1)).wrapping_sub(i64::from(i32::from(y) << 2));
        let z = z.wrapping_add(i64::from(bits)).wrapping_add(i64::from((c[i] as u32).swap_bytes()));
        z.wrapping_add(((i128::from(c[i]) * i128::from(b[i])) >> 64) as i64)
    });
    let expected: Vec<i64> = expected.collect();
    for module in modules() {
        let kernel = Kernel::of(&module, "widths", 2, 32).read(&a).read(&b).read(&c).written(&[0i64; 64]).bits(64);
        assert_eq!(kernel.run().get::<i64>(0), expected);
    }
}

#[test]
fn atomics_count_and_sum() {
    // Small integers, whose sum is exact in any order.
    let x: Vec<f32> = numbers(9).map(|x| (x % 23) as f32).take(150).collect();
    let mut bins = [0i32; 8];
    x.iter().for_each(|x| bins[*x as usize & 7] += 1);
    for module in modules() {
        let kernel = Kernel::of(&module, "counted", 3, 64).read(&x).bits(150).written(&[0i32; 8]);
        let results = kernel.written(&[0f32]).written(&[0u32]).written(&[-1i32]).run();
        assert_eq!(results.get::<i32>(0), bins);
        assert_eq!(results.get::<f32>(1), [x.iter().sum::<f32>()]);
        assert_eq!((results.get::<u32>(2), results.get::<i32>(3)), (vec![3], vec![2]));
    }
}

#[test]
fn warps_sum_and_vote() {
    let x: Vec<i32> = numbers(10).map(|x| x as i32).take(128).collect();
    let sums: Vec<i32> = x.chunks_exact(32).map(|w| w.iter().fold(0, |s: i32, x| s.wrapping_add(*x))).collect();
    let odd = x.chunks_exact(32).map(|w| w.iter().rev().fold(0, |bits: u32, x| bits << 1 | (x & 1) as u32));
    let odd: Vec<u32> = odd.collect();
    for module in modules() {
        let results = Kernel::of(&module, "warps", 2, 64).read(&x).written(&[0i32; 4]).written(&[0u32; 4]).run();
        assert_eq!((results.get::<i32>(0), results.get::<u32>(1)), (sums.clone(), odd.clone()));
    }
}

#[test]
fn cubic_roots_have_the_bits_of_rust() {
    let x: Vec<f64> = (0..70u8).map(|i| f64::from(i) * 13.7 + 0.3).collect();
    let (mut roots, mut steps) = (Vec::new(), Vec::new());
    for &x in &x {
        let (mut r, mut k) = (if x > 1.0 { x } else { 1.0 }, 0);
        while k < 200 {
            let next = (2.0 * r + x / (r * r)) / 3.0;
            let change = if next > r { next - r } else { r - next };
            r = next;
            if change <= 1e-15 * r {
                break;
            }
            k += 1;
        }
        assert!((r * r * r - x).abs() < 1e-12 * x);
        roots.push(r);
        steps.push(k);
    }
    for module in modules() {
        let kernel = Kernel::of(&module, "roots", 3, 32).read(&x).written(&[0f64; 70]).written(&[0i32; 70]).bits(70);
        let results = kernel.run();
        assert_eq!((results.get::<f64>(0), results.get::<i32>(1)), (roots.clone(), steps.clone()));
    }
}
