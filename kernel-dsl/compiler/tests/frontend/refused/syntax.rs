//! Rust that has no meaning on the device: refused where it is read.

#[kernel(block = 32, grid = 1)]
fn a_match(y: &mut [f32]) {
    y[0] = match thread::x() {
        0 => 1.0,
        _ => 2.0,
    };
}

#[kernel(block = 32, grid = 1)]
fn a_closure(y: &mut [f32]) {
    let f = |x: f32| x + 1.0;
    y[0] = f(1.0);
}

#[kernel(block = 32, grid = 1)]
fn macros(y: &mut [f32]) {
    println!("{}", y.len());
    let v = vec![1.0];
    assert!(y.len() > 1);
    y[0] = todo!();
}

#[kernel(block = 32, grid = 1)]
fn text(y: &mut [f32]) {
    let name = "y";
    let letter = 'y';
    let bytes = b"y";
}

#[kernel(block = 32, grid = 1)]
fn wide_literals(y: &mut [f32]) {
    let a = 1u128;
    let b = 1isize;
    let c = 0x1_0000_0000_0000_0000;
    let d = 1.0f16;
}

#[kernel(block = 32, grid = 1)]
fn ranges(y: &mut [f32]) {
    for i in 0..=3 {
        y[i] = 0.0;
    }
    for i in 4.. {
        y[i] = 0.0;
    }
}

#[kernel(block = 32, grid = 1)]
fn patterns(y: &mut [f32]) {
    let Some(a) = b else { return };
    let ref c = y[0];
    if let Some(d) = e {}
    while let Some(f) = g {}
    for (h, 0) in 0..1 {}
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
    'block: {}
    let t = const { 4 };
    _ = 3;
}

#[kernel(block = 32, grid = 1)]
fn types(a: *const f32, b: fn(f32) -> f32, c: impl Copy, d: &dyn Copy, e: !) {
    let f: [f32; 2 + 2] = [0.0; 4];
    let g: Option<fn(f32)> = 0;
}

#[kernel(block = 32, grid = 1)]
async unsafe extern "C" fn qualified(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1)]
fn generic<T, 'a, const N: u32>((a, b): (f32, f32), y: &mut [f32])
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
