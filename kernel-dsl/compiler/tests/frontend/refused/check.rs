//! Mistakes of names, types and mutability, rejected by the checker.

#[device]
fn helper(x: f32, v: &mut f32) -> f32 {
    *v = x;
    x
}

#[device]
fn helper_of<const N: usize>(v: [f32; N]) -> f32 {
    v[0]
}

#[kernel(block = 32, grid = 1)]
fn unknown_names(y: &mut [f32]) {
    y[i] = z;
    missing(1.0);
    y[0] = f32::NOTHING;
    y[1] = usize::MAX as f32;
}

#[kernel(block = 32, grid = 1)]
fn mixed(a: f32, n: usize, y: &mut [f32]) {
    y[0] = a + n;
    y[1] = 1;
    y[n] = a * 2;
    let b: f64 = a;
    let c: bool = n;
    if n {}
    y[2] = -n as f32;
    y[3] = !a;
}

#[kernel(block = 32, grid = 1)]
fn operators(a: f32, b: bool, y: &mut [f32]) {
    let c = b + b;
    let d = a & a;
    let e = a << 1;
    let f = 1 << a;
    let i = b as f32;
    let j = a as bool;
    let k = *a;
    let l = a % a;
    let m = (&mut *y, &*y);
}

#[kernel(block = 32, grid = 1)]
fn immutable(n: usize, x: &[f32], v: View<f32, 1>, w: ViewMut<f32, 1>, y: &mut [f32]) {
    let a = 1.0;
    a = 2.0;
    a += 2.0;
    n = 1;
    x[0] = 1.0;
    v[0] = 1.0;
    w[0] = 1.0;
    let t = (1, [2, 3]);
    t.1[0] = 4;
    (a, n) = (1.0, 2);
    helper(1.0, &mut a);
    n + 1 = 2;
    for i in 0..4 {
        i += 1;
    }
}

#[kernel(block = 32, grid = 1)]
fn calls(y: &mut [f32]) {
    let mut a = 0.0;
    helper(1.0);
    helper(1, &mut a);
    helper(1.0, a);
    helper(1.0, &a);
    helper_of::<1, 2>([1.0]);
    helper_of::<3>([1.0]);
    helper_of::<f32>([1.0]);
    thread::x(1);
    warp::sum(true);
    warp::sum(1u8);
    warp::shuffle(1.0f32, 1u32);
    unroll(0..4);
    f32::from_bits(1.0);
    f32::frobnicate(1.0);
}

#[kernel(block = 32, grid = 1)]
fn methods(a: f32, n: usize, v: View<f32, 3>, y: &mut [f32]) {
    a.sin();
    1.0.sqrt();
    n.abs();
    y.push(1.0);
    y.len(1);
    v.rows();
    v.offset((1, 2));
    v.at(1.0);
    a.mul_add(1.0, n);
    a.max::<f32>(1.0);
    3u32.carrying_add(1, true);
    u64::widening_mul(1, 2);
    y.load_volatile(0);
    v.atomic_load((0, 0, 0));
}

#[kernel(block = 32, grid = 1)]
fn indices(n: u32, a: (f32, f32), v: View<f32, 2>, y: &mut [f32]) {
    y[n] = 1.0;
    y[0][1] = 2.0;
    y[(0, 1)] = 3.0;
    y[0] = v[0];
    y[1] = v[(0, 1, 2)];
    y[2] = v[[0, 1, 2]];
    y[3] = n.0;
    y[4] = (1.0, 2.0).2;
    y[5] = n[0];
}

#[kernel(block = 32, grid = 1)]
fn parameters(a: usize, b: &mut [usize], c: &[bool], d: View<usize, 1>, e: View<f32, 6>, f: Shared<f32, 6>, g: View<f32>) {
}

#[kernel(block = 32, grid = 1)]
fn not_passable(a: (f32, f32), b: [f32; 4], c: &mut f32, d: Shared<f32, 1>, e: Vec<f32>, g: ()) {}

#[kernel(block = 1, grid = 1)]
fn slice_by_value(f: [f32]) {}

#[kernel(block = 32, grid = 1)]
fn gives(y: &mut [f32]) -> f32 {
    y[0]
}

#[kernel(block = 32, grid = 1)]
fn thirty_two_bits(a: u64, b: i64, y: &mut [f32]) {
    let c: usize = 0x1_0000_0000;
    let d = a as usize;
    let e = b as usize;
    let f = 300u8;
    let g = 0x1_0000_0000u64 as usize;
    let h = (b >> 40) as usize;
    let fine = (a & 0xffff_ffff) as usize + (a >> 32) as usize + (a % 100) as usize;
}

#[kernel(block = 32, grid = 1)]
fn control(n: usize, y: &mut [f32]) {
    break;
    continue 'outer;
    while n > 1 {
        break 1;
    }
    for i in n {}
    for i in y {}
    for i in (0..4).rev() {}
    for i in unroll(rolled(0..4)) {}
    for i in (0..4u32).step_by(2) {}
    for i in 0..4.0 {}
    for (a, b) in 0..4 {}
    let r = 0..4;
    let x: f32 = loop {
        break;
    };
    return 1.0;
}

#[kernel(block = 32, grid = 1)]
fn values(c: bool, y: &mut [f32]) {
    let a = if c { 1.0f32 } else { 2u32 };
    let b = if c { 1.0 };
    let (d, e) = (1, 2, 3);
    let [f, g] = [1, 2, 3];
    let h = [1.0, 2];
    let i: [f32; 2] = [0.0; 3];
    let k = [0.0; M];
    y[0] = { 1.0; };
}

#[kernel(block = 32, grid = 1)]
fn untold(y: &mut [f32]) {
    let j;
    y[0] = 1.0;
}

#[kernel(block = 32, grid = 1)]
fn shared(n: usize, x: View<f32, 2>, y: &mut [f32]) {
    let a = Shared::<f32, 2>::new([4]);
    let b = Shared::new([4]);
    let c = Shared::<bool, 1>::new([4]);
    let d = Shared::<f32, 6>::new([4; 6]);
    let e = Shared::<f32, 1>::sized(4);
    let f = Shared::<f32, 2>::with_pitch([4, 4]);
    let mut g = Shared::<f64, 2>::new([4, 4]);
    g.copy_from(x);
    g.at(1).at(1);
    g[(1, 1)] = 1.0f32;
    let h = Shared::<f64, 2>::new([4, 4]);
    h[(1, 1)] = 1.0;
}

#[kernel(block = 32, grid = 1)]
fn endless_types(y: &mut [f32]) {
    let a;
    a = (a, 1.0);
    let mut b = loop {};
    b = [b; 2];
}

#[kernel(block = 32, grid = 1)]
fn turbofish(y: &mut [f32]) {
    let a: f64 = warp::sum::<f32>(1.0);
    block::sync::<f32>();
}

#[kernel(block = y.len(), grid = a)]
#[requires(y.len(), a == 1, z > 1)]
fn launch_expressions(a: f32, y: &mut [f32]) {}

#[device]
fn in_a_device_function(x: f32) -> f32 {
    let y: f64 = x;
    if x > 1.0 {
        return;
    }
    z
}

#[kernel(block = 32, grid = 1)]
fn arms(n: usize, t: f32, y: &mut [f32]) {
    let a = match n {
        0 => 1.0,
        true => 2.0,
        1.0..2.0 => 3.0,
        (b, c) => 4.0,
        Some(d) => d,
        0..=0x1_0000_0000 => 5.0,
        e if e => 6.0,
        _ => 7u32,
    };
    let b = match (n, t) {
        (k, _) | (_, k) => k,
        (k, 1.0) | (_, m) => 2,
        (mut k, 1.0) | (k, 2.0) => k,
    };
    let mut pair = (n, 1);
    match &mut pair {
        (k, 1) | (1, k) => *k = 2,
        _ => {}
    }
    match t {
        f32::NOTHING => {}
        _ => {}
    }
    let Some(c) = y.get(0).copied() else { 1.0 };
}

#[kernel(block = 32, grid = 1)]
fn options(n: usize, y: &mut [f32]) {
    let a: Option<f32, f32> = None;
    let b: Option<f32> = Some(n);
    let c = y.get(n).copied();
    c.unwrap();
    c.filter(|v| v > 1.0);
    c.unwrap_or(1);
    c.map(1.0);
    c.map(|v, w| v);
    c.map_or(0.0);
    c.copied();
    c.and_then(|v| v);
    let d = c + 1.0;
    let e = None;
    y[0] = c;
}

#[device]
fn helper_apply(f: impl Fn(f32) -> f32, x: f32) -> f32 {
    f(x)
}

#[kernel(block = 32, grid = 1)]
fn run_time_closures(c: bool, n: usize, y: &mut [f32]) {
    let f = |v: f32| v + 1.0;
    let g = |v: f32| v + 2.0;
    let h = if c { f } else { g };
    let i = [f, f];
    let j = [f; 2];
    let k = Some(f);
    let l = y.get(0).map(|v| f);
    y[0] = f;
    y[1] = n(1.0);
    f(1.0, 2.0);
    f(n);
    helper_apply(1.0, 2.0);
    helper_apply(|v, w| v, 2.0);
    helper_apply(|v: usize| 1.0, 2.0);
    helper_apply(helper_of, 2.0);
    helper_apply(f32::max, 2.0);
    helper_apply(warp::sum, 2.0);
    let m = |v: f32| -> f32 {
        break;
        return 1u32;
    };
    let mut p = f;
    p = g;
}

#[kernel(block = 32, grid = 1)]
fn closure_parameter(f: impl Fn(f32) -> f32, y: &mut [f32]) {}

#[device]
fn gives_a_closure(x: f32) -> impl Fn(f32) -> f32 {
    |v| v + 1.0
}

#[kernel(block = 32, grid = 1)]
fn no_such_target_fact(y: &mut [u32]) {
    y[0] = target::SN;
    let sm: usize = target::SM;
    y[1] = target::sm();
}

#[kernel(block = 32, grid = 1)]
fn collectives(n: usize, x: &[f32], y: &mut [f32]) {
    let a = warp::reduce(y[0], |a| a);
    let b = warp::reduce(x, |a, b| a);
    let c = warp::scan((1.0, x), |a, b| a);
    let d: f32 = warp::shuffle_up(y[0], 1);
    let e = warp::shuffle_down(y[0], 1u32);
    let f = block::scan(y[0], 0, |a, b| a + b);
    let g = block::sum((1.0, 2.0));
    let h = warp::group::<8>().reduce(1.0, n);
    let i = warp::reduce::<f32>(1.0, |a, b| a + b);
    let j = block::count(n);
    let k = warp::scan(1.0, missing_join);
    y[0] = grid::stride(n);
    y[1] = block::share([n, 2]);
}

#[kernel(block = 32, grid = 1)]
fn iteration(n: usize, y: &mut [f32]) {
    for [a, b, c] in block::share([n, 2]) {}
    for a in block::share(n) {}
    for [a] in block::share([n]).rev() {}
    for (a, b) in (0..n).enumerate().step_by(2) {}
    for (a, b) in (0..n).enumerate().enumerate() {}
    for a in (0..n).enumerate() {
        y[a] = 1.0;
    }
    for (a, b) in unroll_by::<2>((0..n).enumerate()) {}
    for a in grid::stride(1.0) {}
    for a in y.iter() {}
    for a in rolled([1, 2]) {}
}

#[kernel(block = 32, grid = 1)]
fn arrays(n: usize, y: &mut [f32]) {
    let a = [1.0, 2.0].map(|v, w| v);
    let b = [1.0, 2.0].len(1);
    let c = [1.0, 2.0].iter();
    let d: [f32; 2] = std::array::from_fn(|i| i);
    let e = std::array::from_fn(|i| i as f32);
    let f = size_of::<Nothing>() + size_of();
    let g = [0.0; 2].map(|v| |w| w);
    let h: [f32; 3] = [1.0, 2.0].map(|v| v);
}

#[kernel(block = 32, grid = 1)]
fn shifts(n: usize, y: &mut [f32]) {
    let a = 1u32 << 32;
    let b = n >> 40;
    let mut c = 1u8;
    c <<= 8;
    let d = 5 << 31;
    let e = 5 << 32;
    let f = n << (32 + 1);
}

#[kernel(block = 32, grid = 1)]
fn taken_apart(n: usize, y: &mut [f32]) {
    let (mut a, b) = (1.0, 2.0);
    (a, b) = (2.0, 3.0);
    (a, _) = (n, 1);
    (a, ..) = n;
    [a, ..] = [1.0, 2.0, 3.0, n];
    (a, .., a, ..) = (1.0, 2.0, 3.0);
    (n + 1, a) = (1, 2.0);
    let (c, ..) = 1.0;
    let [.., d] = [1.0];
    let (e, f, g, ..) = (1.0, 2.0);
}

#[kernel(block = 32, grid = 1)]
fn labeled_blocks(n: usize, y: &mut [f32]) {
    let a = 'a: {
        if n > 1 {
            break 'a 1.0;
        }
        n
    };
    'b: {
        continue 'b;
    }
    'c: {
        break;
    }
    'd: {
        break 'e;
    }
}

#[kernel(block = 32, grid = 1)]
fn shared_arrays_by_others(x: View<f16, 2>, y: &mut [f32]) {
    let s = Shared::<f32, 2>::new([4, 4]);
    let a = Shared::<f32, 1>::over(x, [4]);
    let b = s.cast();
    let c = s.cast::<f32>(1);
    s.copy_async(x).wait();
    s.copy_async_map(x.at(0), |v| v.to_f32()).wait();
    s.copy_async_map(x, |v| v).wait();
    s.copy_async_map(y, |v| v).wait();
    s.copy_async(x).and(1).wait();
    y[0] = x.streaming(1)[0];
}
