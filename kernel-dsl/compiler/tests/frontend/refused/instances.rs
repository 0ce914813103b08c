//! Instances with mistakes, rejected by lowering or by a pass.

#[device]
fn helper_apply(f: impl Fn(f32) -> f32, x: f32) -> f32 {
    f(x)
}

#[device]
fn helper_either(c: bool, f: impl Fn(f32) -> f32, g: impl Fn(f32) -> f32, x: f32) -> f32 {
    helper_apply(if c { f } else { g }, x)
}

#[device]
fn helper_barrier(x: f32) -> f32 {
    warp::sum(x)
}

#[device]
fn helper_pick(v: [f32; 4], i: usize) -> f32 {
    v[i]
}

#[kernel(block = 32, grid = 1, instances(N = 4 | 5))]
fn assertions<const N: usize>(n: usize, y: &mut [f32]) {
    const { assert!(N % 2 == 0, "N is even") }
    const { assert!(N > 9) }
    const { assert!(n > 9) }
}

#[kernel(block = 32, grid = 1, instances(N = -3, M = 18446744073709551616))]
fn wide_assertions<const N: i64, const M: u128>(y: &mut [f32]) {
    const { assert!(N * 2 == -6 && M.wrapping_mul(M) == 0) }
    const { assert!(M >> 3 == 1 << 61 && M / 3 > 6148914691236517204, "M is 2 to the 64th") }
    const { assert!(M - 1 > M, "M exceeds its predecessor") }
    const { assert!(N >= 0, "N is not negative") }
}

#[kernel(block = 2048, grid = 1)]
fn threads(y: &mut [f32]) {}

#[kernel(block = (0, 1), grid = 1)]
fn no_threads(y: &mut [f32]) {}

#[kernel(block = y.len(), grid = 1)]
fn block_of_an_argument(y: &mut [f32]) {}

#[kernel(block = N - 1, grid = 1, instances(N = 0))]
fn block_below_zero<const N: usize>(y: &mut [f32]) {}

#[kernel(block = 48, grid = 1)]
fn half_warps(y: &mut [f32]) {
    y[warp::lane()] = warp::sum(1.0);
    y[warp::index()] = helper_barrier(1.0);
    warp::sync();
}

#[kernel(block = 32, grid = 1)]
fn shared_shapes(n: usize, y: &mut [f32]) {
    let a = Shared::<f32, 1>::new([n]);
    let b = Shared::<f32, 2>::with_pitch([4, 4], 3);
    let c = Shared::<f32, 2>::with_pitch([4, 4], n);
    let shape = [4, 4];
    let d = Shared::<f32, 2>::new(shape);
    y[0] = b.dim(n) as f32 + b.dim(2) as f32;
}

#[kernel(block = 32, grid = 1)]
fn shared_memory(y: &mut [f32]) {
    let a = Shared::<f32, 2>::new([64, 96]);
    let mut b = Shared::<f64, 1>::new([3073]);
    b[0] = 1.0;
}

#[kernel(block = 32, grid = 1)]
fn huge_shared_memory(x: View<f32, 2>) {
    let a = Shared::<f32, 2>::new([65536, 65536]);
    let b = Shared::<f32, 2>::padded([2, 4294967295]);
    a.copy_from(x);
    b.copy_from(x);
}

#[kernel(block = 32, grid = 1)]
fn which_array(c: bool, y: &mut [f32]) {
    let a = Shared::<f32, 1>::new([32]);
    let b = Shared::<f32, 1>::new([32]);
    let s = if c { a } else { b };
    y[0] = s[0];
}

#[kernel(block = 32, grid = 1)]
fn plane_of_a_branch(c: bool, y: &mut [f32]) {
    let a = Shared::<f32, 2>::new([2, 32]);
    let s = if c { a.at(1) } else { return };
    y[0] = s[0];
}

#[kernel(block = 32, grid = 1)]
fn which_variable(c: bool, y: &mut [f32]) {
    let (mut a, mut b) = (1.0, 2.0);
    let r = if c { &mut a } else { &mut b };
    *r = 3.0;
    y[0] = a + b;
}

#[kernel(block = 32, grid = 1)]
fn moved_reference(y: &mut [f32]) {
    let (mut a, mut b) = (1.0, 2.0);
    let mut r = &mut a;
    *r = 3.0;
    r = &mut b;
    *r = 4.0;
    y[0] = a + b;
}

#[kernel(block = 32, grid = 1)]
fn assigned_arrays(y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([32]);
    s = Shared::<f32, 1>::new([16]);
    let later;
    later = s;
    y[0] = s[0] + later[0];
}

#[kernel(block = 32, grid = 1)]
fn switched_arrays(y: &mut [f32]) {
    let a = Shared::<f32, 1>::new([32]);
    let mut b = Shared::<f32, 1>::new([32]);
    let mut c = Shared::<f32, 1>::new([64]);
    let reversed = [b, a];
    let different = [a, c];
    std::mem::swap(&mut b, &mut c);
    {
        let mut inner = Shared::<f32, 1>::new([32]);
        std::mem::swap(&mut b, &mut inner);
    }
    y[0] = reversed[0][0] + different[1][0] + b[0];
}

#[kernel(block = 32, grid = 1)]
fn shared_out_of_loops(y: &mut [f32]) {
    let a = Shared::<f32, 1>::new([32]);
    let s = loop {
        break a;
    };
    y[0] = s[0];
}

#[kernel(block = 32, grid = 1)]
fn chosen_closures(y: &mut [f32]) {
    let by = y[0];
    y[1] = helper_either(by > 1.0, |v| v + by, |v| v - by, 2.0);
}

#[kernel(block = 32, grid = 1)]
fn options_of_names(x: &[f32], y: &mut [f32]) {
    let s = Shared::<f32, 1>::new([32]);
    let t = if y[0] > 1.0 { Some(s) } else { None };
    let r = if y[0] > 1.0 { x.get(1) } else { x.get(2) };
    y[1] = r.map_or(0.0, |v| *v) + t.map_or(0.0, |s| s[0]);
}

#[kernel(block = 32, grid = 1)]
fn aligned_inside(y: &mut [f32]) {
    if y.aligned(4) {
        y[0] = 1.0;
    }
}

#[kernel(block = 32, grid = 1)]
fn large_arrays(y: &mut [f32]) {
    let a = [0.0f32; 4_000_000_000];
    let b = [[0.0f32; 100]; 100];
    let c = [(); 4_000_000_000];
    let d = [[0.0f32; 0]; 4_000_000_000];
}

#[kernel(block = 32, grid = 1)]
fn step_of_zero(y: &mut [f32]) {
    for i in (0..4).step_by(0) {
        y[i] = 1.0;
    }
}

#[kernel(block = 32, grid = 1)]
fn unknown_bounds(n: usize, y: &mut [f32]) {
    for i in unroll(0..n) {
        y[i] = 1.0;
    }
}

#[kernel(block = 32, grid = 1)]
fn too_many_copies(y: &mut [f32]) {
    for i in unroll(0..1_000_000_000) {
        y[i] = 1.0;
    }
}

#[kernel(block = 32, grid = 1)]
fn index_of_a_rolled_loop(n: usize, y: &mut [f32]) {
    let mut v = [0.0; 4];
    for i in 0..4 {
        v[i % n] = y[i];
    }
    for i in rolled(0..4) {
        y[i] = v[i];
    }
    y[4] = helper_pick(v, n);
}

#[kernel(block = 32, grid = 1)]
fn index_beyond_an_array(y: &mut [f32]) {
    let v = [0.0; 4];
    y[0] = v[4];
}

#[device]
fn helper_1(x: f32) -> f32 {
    x + 1.0
}

#[device]
fn helper_4(x: f32) -> f32 {
    helper_1(helper_1(helper_1(helper_1(x))))
}

#[device]
fn helper_16(x: f32) -> f32 {
    helper_4(helper_4(helper_4(helper_4(x))))
}

#[device]
fn helper_64(x: f32) -> f32 {
    helper_16(helper_16(helper_16(helper_16(x))))
}

#[device]
fn helper_256(x: f32) -> f32 {
    helper_64(helper_64(helper_64(helper_64(x))))
}

#[device]
fn helper_1024(x: f32) -> f32 {
    helper_256(helper_256(helper_256(helper_256(x))))
}

#[device]
fn helper_4096(x: f32) -> f32 {
    helper_1024(helper_1024(helper_1024(helper_1024(x))))
}

#[kernel(block = 32, grid = 1)]
fn too_many_calls(y: &mut [f32]) {
    y[0] = helper_4096(helper_4096(helper_4096(helper_4096(helper_4096(helper_4096(helper_4096(y[1])))))));
}

#[kernel(block = 32, grid = 1)]
fn swizzled_rows(y: &mut [f32]) {
    let s = Shared::<f32, 2>::swizzled([4, 6]);
    y[0] = s[(0, 0)];
}

#[kernel(block = 32, grid = 1)]
fn sizes_of_the_launch(x: &[u32], y: &mut [f32]) {
    let a = Shared::<f32, 1>::dynamic([thread::x() + 1]);
    let b = Shared::<f32, 1>::dynamic([x[0] as usize]);
    for i in 0..y.len() {
        let c = Shared::<f32, 1>::dynamic([x.len()]);
        y[i] = a[0] + b[0] + c[0];
    }
    if y.len() > 3 {
        let d = Shared::<f32, 1>::dynamic([x.len()]);
        y[0] = d[0];
    }
}

#[kernel(block = 32, grid = 1)]
fn laid_over(n: usize, y: &mut [f32]) {
    let s = Shared::<f32, 2>::new([2, 16]);
    let t = Shared::<f64, 1>::over(s, [17]);
    y[0] = t[0] as f32;
}

#[kernel(block = 32, grid = 1)]
fn laid_over_planes(n: usize, y: &mut [f32]) {
    let s = Shared::<f32, 2>::new([2, 18]);
    let t = Shared::<u32, 1>::over(s.at(n), [16]);
    y[0] = t[0] as f32;
}

#[kernel(block = 32, grid = 1)]
fn laid_over_the_launchs(n: usize, y: &mut [f32]) {
    let s = Shared::<f32, 1>::dynamic([n]);
    let t = Shared::<u32, 1>::over(s, [16]);
    let odd = Shared::<f32, 2>::new([2, 3]).cast::<f64>();
    y[0] = t[0] as f32 + odd[(0, 0)] as f32;
}

#[kernel(block = 32, grid = 1)]
fn copied_ahead(x: View<f32, 2>, n: usize, y: &mut [f32]) {
    let s = Shared::<f32, 2>::new([128, 80]);
    s.copy_async(x).wait();
    let t = Shared::<f32, 2>::dynamic([n, 32]);
    t.copy_async(x).wait();
    y[0] = s[(0, 0)];
}

#[kernel(block = 32, grid = 1)]
fn tokens_that_are_left(x: View<f32, 2>, c: bool, y: &mut [f32]) {
    let s = Shared::<f32, 2>::new([2, 32]);
    let kept = Some(s.copy_async(x));
    let both = [s.copy_async(x), Pending::none()];
    let later;
    later = s.copy_async(x);
    later.wait();
}

#[kernel(block = 32, grid = 1)]
fn later_target(y: &mut [u32]) {
    let i = thread::x();
    y[i] = if target::SM >= 70 { warp::match_any(y[i]) } else { helper_match(y[i]) };
}

#[device]
fn helper_match(x: u32) -> u32 {
    warp::match_any(x)
}
