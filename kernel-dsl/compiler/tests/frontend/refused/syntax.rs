//! Rust that has no meaning on the device, rejected by the parser.

#[kernel(block = 32, grid = 1)]
fn matches(n: usize, y: &mut [f32]) {
    y[0] = match n {
        Point { x } => x,
        ref m => 2.0,
        Err(e) => 3.0,
        "four" => 4.0,
        _ => 5.0,
    };
    let b = n > 1 && let Some(a) = y.get(0);
}

#[kernel(block = 32, grid = 1)]
fn closures(y: &mut [f32]) {
    let f = move |x: f32| x + 1.0;
    let g = async |x: f32| x;
    y[0] = (|x: f32| x)(1.0);
}

#[device]
fn parameters(a: impl Copy, b: impl Fn(f32) -> f32 + Send, c: &dyn Fn(f32)) {}

#[kernel(block = 32, grid = 1)]
fn macros(y: &mut [f32]) {
    println!("{}", y.len());
    let v = vec![1.0];
    assert!(y.len() > 1, "{:>8}", y.len());
    assert!(y.len() > 1, "{");
    assert!(y.len() > 1, y.len());
    assert_eq!(y.len());
    assert!(y.len());
}

#[kernel(block = 32, grid = 1)]
fn text(y: &mut [f32]) {
    let name = "y";
    let letter = 'y';
}

#[kernel(block = 32, grid = 1)]
fn wide_literals(y: &mut [f32]) {
    let a = 1i128;
    let b = 1isize;
    let c = 0x1_0000_0000_0000_0000_0000_0000_0000_0000;
    let d = 1.0f16;
}

#[kernel(block = 32, grid = 1)]
fn ranges(y: &mut [f32]) {
    for i in 4.. {
        y[i] = 0.0;
    }
}

#[kernel(block = 32, grid = 1)]
fn patterns(y: &mut [f32]) {
    let ref c = y[0];
    for box h in 0..1 {}
}

#[kernel(block = 32, grid = 1)]
fn structures(y: &mut [f32]) {
    let p = Point { x: 1.0 };
    y[0] = p.x;
    fn inner() {}
    struct Local;
}

#[kernel(block = 32, grid = 1)]
fn hosts_only(y: &mut [f32]) {
    unsafe { y[0] = 1.0 };
    y[1] = later.await;
    y[2] = result?;
    (y.f)(1.0);
    async {};
    let t = const { 4 };
    let a = _ + 3;
}

#[kernel(block = 32, grid = 1)]
fn types(a: *const f32, b: fn(f32) -> f32, c: impl Copy, d: &dyn Copy, e: !) {
    let f: [f32; 2 + 2] = [0.0; 4];
    let g: Option<fn(f32)> = 0;
}

#[kernel(block = 32, grid = 1)]
async unsafe extern "C" fn qualified(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1)]
fn generic<T, 'a, const C: char>((a, b): (f32, f32), y: &mut [f32])
where
    T: Copy,
{
}

#[device]
fn constant_block(x: f32) -> f32 {
    const {
        let n = 1;
        assert!();
    }
    x
}

#[kernel(block = 32, grid = 1)]
fn foreign(y: &mut [f32]) {
    let i = threadIdx.x;
    for a in warp::stride(n) {}
    thread::w();
    fence::device();
    y[i] = __shfl_down_sync(u32::MAX, y[i], 1) + thread::sync_threads();
    let x: f32 = Default::default();
}
