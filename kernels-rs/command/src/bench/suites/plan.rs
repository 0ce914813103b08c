//! Costs of the matrix product kernels on this device: a new selection table.

use super::{Timer, drawn, in_turns};
use crate::error::Error;
use crate::statistics;
use ::runtime::Device;
use ::runtime::testing::Random;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::gemm::plan::{BUSY_WARPS, GemmPlan, GemmTile, GemvWidth};
use kernels_rs::gemm::tiled::sum_splits;
use kernels_rs::gemm::{Gemm, GemmCosts};
use serde::Serialize;

/// Measured costs and the device they were measured on.
#[derive(Serialize)]
pub(super) struct Planned {
    pub device: String,
    #[serde(with = "CostsJson")]
    pub costs: GemmCosts,
}

/// Fields of [`GemmCosts`] in JSON.
#[derive(Serialize)]
#[serde(remote = "GemmCosts")]
struct CostsJson {
    tile_128x128_ns: f64,
    tile_64x128_ns: f64,
    tile_16x128_ns: f64,
    part_ns: f64,
    stream_ns: f64,
    launch_ns: f64,
}

/// Extents of a product: batch, M, N, K.
#[derive(Clone, Copy)]
struct ProductExtents {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
}

pub(super) fn measure(rounds: usize) -> Result<Planned, Error> {
    let device = Device::cuda(0).map_err(Error::Device)?;
    let timer = Timer::new(&device)?;
    let multiprocessors = device.facts().multiprocessors.max(1) as usize;
    let streamed = ProductExtents { batch: 1, m: 1, n: 8192, k: 8192 };
    let stream = product(&timer, GemmPlan::GemvN(1, GemvWidth::Columns32), streamed, rounds)?;
    let costs = GemmCosts {
        tile_128x128_ns: tile(&timer, GemmTile::T128x128, multiprocessors, rounds)?,
        tile_64x128_ns: tile(&timer, GemmTile::T64x128, multiprocessors, rounds)?,
        tile_16x128_ns: tile(&timer, GemmTile::T16x128, multiprocessors, rounds)?,
        part_ns: parts(&timer, [2048, 2048], 8, rounds)? * multiprocessors as f64 / (9.0 * 2048.0 * 2048.0),
        stream_ns: stream * multiprocessors as f64 / (streamed.n * streamed.k) as f64,
        launch_ns: parts(&timer, [1, 128], 1, rounds)?,
    };
    Ok(Planned { device: device.to_string(), costs })
}

/// Returns the nanoseconds of a multiprocessor per block and step of the depth, with enough blocks
/// to keep each multiprocessor busy.
fn tile(timer: &Timer, tile: GemmTile, multiprocessors: usize, rounds: usize) -> Result<f64, Error> {
    let [rows, cols, warps] = tile.shape();
    let each = BUSY_WARPS.div_ceil(warps);
    // For few rows the blocks split the depth, as in the products for which such a tile is chosen:
    // their data is not in the caches.
    let (shape, splits) = match tile {
        GemmTile::T16x128 => (ProductExtents { batch: 1, m: rows, n: cols * multiprocessors, k: 4096 }, each),
        _ => (ProductExtents { batch: 1, m: rows * multiprocessors, n: cols * each, k: 4096 }, 1),
    };
    let ns = product(timer, GemmPlan::Tiles(tile, splits), shape, rounds)?;
    Ok(ns / (each * shape.k / splits) as f64)
}

/// Returns the nanoseconds that a product takes under a plan.
fn product(timer: &Timer, plan: GemmPlan, shape: ProductExtents, rounds: usize) -> Result<f64, Error> {
    let ProductExtents { batch, m, n, k } = shape;
    let (device, mut random) = (timer.stream().device(), Random::new(1));
    let a = drawn::<f32>(device, &mut random, batch * m * k)?;
    let b = drawn::<f32>(device, &mut random, batch * k * n)?;
    let mut c = device.zeros::<f32>(batch * m * n).map_err(Error::Device)?;
    median(timer, rounds, || {
        let (a, b, mut c) = (a.view([batch, m, k])?, b.view([batch, k, n])?, c.view_mut([batch, m, n])?);
        Gemm::new().plan(plan).run(timer.stream(), &a, &b, &mut c)
    })
}

/// Returns the nanoseconds taken to combine `splits` partial results of a matrix.
fn parts(timer: &Timer, [m, n]: [usize; 2], splits: usize, rounds: usize) -> Result<f64, Error> {
    let device = timer.stream().device();
    let parts = drawn::<f32>(device, &mut Random::new(1), splits * m * n)?;
    let mut c = device.zeros::<f32>(m * n).map_err(Error::Device)?;
    median(timer, rounds, || {
        let (parts, mut c) = (parts.view([splits, m, n])?, c.view_mut([1, m, n])?);
        // SAFETY: the launch compares the extents, and the kernel stays within them: the oracle ran
        // it (`kernels check`).
        unsafe {
            sum_splits::<f32, Identity, 4>::launch_unchecked(
                timer.stream(),
                1.0,
                parts,
                splits,
                0.0,
                &mut c,
                0,
                Identity,
            )
        }
    })
}

fn median(timer: &Timer, rounds: usize, work: impl FnMut() -> ::runtime::Result<()>) -> Result<f64, Error> {
    let times = in_turns(&mut [timer.timed("ours", 10, work)], rounds, || ())?;
    Ok(times.first().map_or(0.0, |times| statistics::median(times) * 1e6))
}
