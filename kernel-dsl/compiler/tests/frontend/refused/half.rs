//! Unsupported operations of 16-bit floats.

#[kernel(block = 32, grid = 1)]
fn casts(x: &[f16], n: i32, y: &mut [bf16]) {
    y[0] = n as bf16;
    let a = x[0] as f32;
    let b = x[1] as bf16;
    let c = 1.0 as f16;
}

#[kernel(block = 32, grid = 1)]
fn literals(y: &mut [f16]) {
    let a = 1.0f16;
    let b = 1bf16;
}

#[kernel(block = 32, grid = 1)]
fn numbers(y: &mut [f16]) {
    y[0] = 1.0;
    y[1] = y[1] * 2.0;
    y[2] = 3;
    let a: bf16 = 4.0;
}

#[kernel(block = 32, grid = 1)]
fn mixed(x: &[f16], z: &[bf16], y: &mut [f32]) {
    y[0] = x[0];
    y[1] = y[1] + x[1];
    let a = x[2] + z[2];
    let b = x[3] == z[3];
    let c = x[4].to_f32() + z[4];
}

#[kernel(block = 32, grid = 1)]
fn operators(x: &[f16], y: &mut [f16]) {
    y[0] = x[0] % x[1];
    y[1] = !x[1];
    y[2] = x[2] & x[3];
    y[3] = x[3] << 1;
    y[4] = x[4].sqrt();
    y[5] = f16::from_f64(1.0);
    y[6] = f16::PI;
    y[7] = f32::from_f32(1.0);
}

#[kernel(block = 32, grid = 1)]
fn lanes(x: &[f16], y: &mut [bf16]) {
    let a = warp::sum(x[0]);
}
