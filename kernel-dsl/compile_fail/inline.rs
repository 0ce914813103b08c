//! Invalid inline PTX.

use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn operands(x: &[f32], y: &mut [u32]) {
    let i = thread::index();
    y[i] = ptx!("add.u32 {d}, {a}, {b};", a = in(u32) x[i], b = in(u32) 1, d = out(u32));
}

#[kernel(block = 32, grid = 1)]
pub fn result(y: &mut [u32]) {
    let (low, high): (u32, f32) = ptx!("mov.u32 {d}, 1; mov.u32 {e}, 2;", d = out(u32), e = out(u32));
    y[thread::index()] = low + high as u32;
}

#[kernel(block = 32, grid = 1)]
pub fn instructions(y: &mut [u32]) {
    let i = thread::index();
    y[i] = ptx!(
        "add.u32 {d}, {a};",
        "shfl.sync.idx.b32 {d}, {a}, 0, 31, -1;",
        a = in(u32) y[i],
        unused = in(u32) 3,
        d = out(u32),
    );
}

#[kernel(block = 32, grid = 1)]
pub fn memory(y: &mut [u32]) {
    y[0] = ptx!("ld.global.u32 {d}, [{a}];", a = in(u64) 0, d = out(u32));
}

#[device]
pub fn rounding(x: f32, y: f32) -> f32 {
    ptx!(
        "mul.f32 {d}, {x}, {y};",
        "ex2.approx.f32 {d}, {d};",
        x = in(f32) x,
        y = in(f32) y,
        d = out(f32),
    )
}

#[kernel(block = 32, grid = 1)]
pub fn form(y: &mut [u32]) {
    ptx!();
    ptx!("nanosleep.u32 {n};", n = 5);
    ptx!("nanosleep.u32 {n};", n = in(u32));
    ptx!("mov.u32 {d}, 1;", d = out(u32) y[0]);
    ptx!("mov.u32 {d}, 1;", d = out(String));
}

#[kernel(block = 32, grid = 1)]
pub fn target(y: &mut [u32]) {
    y[thread::index()] = mask(4);
}

#[device]
fn mask(n: u32) -> u32 {
    ptx!("bmsk.clamp.b32 {d}, 0, {n};", n = in(u32) n, d = out(u32))
}

pub fn of_the_host(x: u32) -> u32 {
    ptx!("brev.b32 {d}, {a};", a = in(u32) x, d = out(u32))
}

fn main() {}
