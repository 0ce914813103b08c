//! The choice of kernel for a product, by its shape: a table of the kernels' costs, and a search
//! over it. [`TunedPlans`](crate::tuned::TunedPlans) has precedence where a plan was measured.

use crate::tuned;
use std::fmt;
use std::str::FromStr;

/// Extents and layout of a batch of products.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProductShape {
    /// The number of products.
    pub batch: usize,
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Products for each element of C.
    pub k: usize,
    /// Whether A is stored as [K, M].
    pub transpose_a: bool,
    /// Whether B is stored as [N, K].
    pub transpose_b: bool,
}

/// A way to compute C, M × N, with `K` products per element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum GemmPlan {
    /// [`gemm`](super::tiled::gemm) with this tile; the depth is split into this number of parts.
    Tiles(GemmTile, usize),
    /// [`gemv_n`](super::gemv::gemv_n), with a number of rows per block, and a number of
    /// lanes for the columns.
    GemvN(usize, GemvWidth),
    /// [`gemv_t`](super::gemv::gemv_t), with a number of rows per warp.
    GemvT(usize),
}

/// The tiles that `gemm` is compiled for, rows by columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GemmTile {
    /// 128 × 128: 8 × 8 elements per thread.
    T128x128,
    /// 64 × 128: 8 × 8 elements per thread, for fewer rows, or if large tiles would not fill the
    /// device.
    T64x128,
    /// 16 × 128: 4 × 4 elements per thread, for few rows.
    T16x128,
}

/// The width of a block of `gemv_n`, with four columns per lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GemvWidth {
    /// 32 columns: 128 bytes of a row of B at a time.
    Columns32,
    /// 16 columns: 64 bytes at a time, 10 % slower, with twice the blocks.
    Columns16,
}

/// The costs of the kernels on a device, from which a plan is chosen. `kernels bench --suite plan`
/// measures the costs.
///
/// Costs are per multiprocessor. The work of a multiprocessor per clock has not changed since
/// Pascal. Therefore another device's costs are those of an H200 times a factor, and lead to the
/// same choice. The exception is memory time per multiprocessor, which is up to three times as long
/// on older devices.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GemmCosts {
    /// Time in nanoseconds that a busy multiprocessor takes for one product of each element of a
    /// 128 × 128 block.
    pub tile_128x128_ns: f64,
    /// Time in nanoseconds for one product of each element of a 64 × 128 block.
    pub tile_64x128_ns: f64,
    /// Time in nanoseconds for one product of each element of a 16 × 128 block.
    pub tile_16x128_ns: f64,
    /// Time in nanoseconds that a multiprocessor takes to store an element of a partial sum and to
    /// load it again.
    pub part_ns: f64,
    /// Time in nanoseconds that a multiprocessor takes to read an element of B that is not shared.
    pub stream_ns: f64,
    /// Time in nanoseconds of a second launch.
    pub launch_ns: f64,
}

impl GemmCosts {
    /// Measured on an H200. The cost of a part lies between the H200's 0.13 and the 0.7 of a Tesla
    /// P40.
    pub const H200: GemmCosts = GemmCosts {
        tile_128x128_ns: 82.0,
        tile_64x128_ns: 42.0,
        tile_16x128_ns: 16.4,
        part_ns: 0.2,
        stream_ns: 0.124,
        launch_ns: 2e3,
    };

    /// Returns the time for one product of each element of a block.
    fn depth_ns(&self, tile: GemmTile) -> f64 {
        match tile {
            GemmTile::T128x128 => self.tile_128x128_ns,
            GemmTile::T64x128 => self.tile_64x128_ns,
            GemmTile::T16x128 => self.tile_16x128_ns,
        }
    }
}

impl GemmTile {
    /// All tiles.
    pub const ALL: [GemmTile; 3] = [GemmTile::T128x128, GemmTile::T64x128, GemmTile::T16x128];

    /// Returns the rows and columns of C of a block, and its number of warps.
    pub fn shape(self) -> [usize; 3] {
        match self {
            GemmTile::T128x128 => [128, 128, 8],
            GemmTile::T64x128 => [64, 128, 4],
            GemmTile::T16x128 => [16, 128, 4],
        }
    }
}

impl GemmPlan {
    /// Returns why this plan cannot compute a product of these operands, if it cannot.
    pub(super) fn unsuitable(self, transpose_a: bool, transpose_b: bool) -> Option<&'static str> {
        match self {
            GemmPlan::Tiles(_, 0) => Some("a product by tiles has at least one part"),
            GemmPlan::Tiles(..) => None,
            GemmPlan::GemvN(rows, _) | GemmPlan::GemvT(rows) if !matches!(rows, 1 | 2 | 4 | 8) => {
                Some("a block of a plan for few rows computes 1, 2, 4 or 8 rows")
            }
            GemmPlan::GemvN(..) if transpose_a || transpose_b => {
                Some("`GemmPlan::GemvN` takes neither A nor B transposed")
            }
            GemmPlan::GemvT(_) if transpose_a || !transpose_b => {
                Some("`GemmPlan::GemvT` takes B transposed and A not transposed")
            }
            GemmPlan::GemvN(..) | GemmPlan::GemvT(_) => None,
        }
    }
}

/// Formats a plan as tables of tuned plans write it: `tiles 64x128 3`, `gemv-n 1 32` or
/// `gemv-t 4`.
impl fmt::Display for GemmPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            GemmPlan::Tiles(tile, splits) => {
                let [rows, cols, _] = tile.shape();
                write!(f, "tiles {rows}x{cols} {splits}")
            }
            GemmPlan::GemvN(rows, GemvWidth::Columns32) => write!(f, "gemv-n {rows} 32"),
            GemmPlan::GemvN(rows, GemvWidth::Columns16) => write!(f, "gemv-n {rows} 16"),
            GemmPlan::GemvT(rows) => write!(f, "gemv-t {rows}"),
        }
    }
}

/// Reads what [`Display`](fmt::Display) writes. The error says what is wrong.
impl FromStr for GemmPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<GemmPlan, String> {
        let number = |word: &str| tuned::number(word, text);
        let plan = match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["tiles", tile, splits] => {
                let shape = |tile: &GemmTile| format!("{}x{}", tile.shape()[0], tile.shape()[1]);
                let Some(of_shape) = GemmTile::ALL.into_iter().find(|known| shape(known) == tile) else {
                    let known = GemmTile::ALL.iter().map(shape).collect::<Vec<_>>().join(", ");
                    return Err(format!("there is no tile `{tile}`; the tiles are {known}"));
                };
                match number(splits)? {
                    splits @ 1..=MAX_PARTS => GemmPlan::Tiles(of_shape, splits),
                    splits => return Err(format!("{splits} parts; a plan has from 1 to {MAX_PARTS}")),
                }
            }
            ["gemv-n", rows, "32"] => GemmPlan::GemvN(number(rows)?, GemvWidth::Columns32),
            ["gemv-n", rows, "16"] => GemmPlan::GemvN(number(rows)?, GemvWidth::Columns16),
            ["gemv-t", rows] => GemmPlan::GemvT(number(rows)?),
            _ => {
                return Err(format!("`{text}` is not a plan; write `tiles 64x128 3`, `gemv-n 1 32` or `gemv-t 4`"));
            }
        };
        Ok(plan)
    }
}

/// The maximum size of the partial sums of C, in bytes.
const MAX_PART_BYTES: usize = 64 << 20;
/// The number of warps that keep a multiprocessor busy.
pub const BUSY_WARPS: usize = 16;
/// The maximum number of parts.
const MAX_PARTS: usize = 32;
/// The minimum number of products of a part.
const MIN_PART_DEPTH: usize = 32;

/// Returns the plan with the least cost for products of this shape on a device with the given
/// number of multiprocessors. The kernels for few rows require an A stored as [M, K].
pub fn plan(costs: &GemmCosts, shape: ProductShape, multiprocessors: u32) -> GemmPlan {
    let mut best = (f64::INFINITY, GemmPlan::Tiles(GemmTile::T128x128, 1));
    each_plan(costs, shape, multiprocessors, |ns, plan| {
        if ns < best.0 {
            best = (ns, plan);
        }
    });
    best.1
}

/// Returns all plans among which [`plan`] chooses, with their costs in nanoseconds, the least cost
/// first. A tuner measures these plans.
pub fn ranked(costs: &GemmCosts, shape: ProductShape, multiprocessors: u32) -> Vec<(f64, GemmPlan)> {
    let mut all = Vec::new();
    each_plan(costs, shape, multiprocessors, |ns, plan| all.push((ns, plan)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Passes the cost of each plan and the plan to `offer`.
fn each_plan(costs: &GemmCosts, shape: ProductShape, multiprocessors: u32, mut offer: impl FnMut(f64, GemmPlan)) {
    let ProductShape { batch, m, n, k, transpose_a, transpose_b } = shape;
    let sms = multiprocessors.max(1) as usize;
    for tile in GemmTile::ALL {
        let [tall, wide, warps] = tile.shape();
        let tiles = batch * m.div_ceil(tall) * n.div_ceil(wide);
        // If a number of parts does not fit, no larger number does.
        let fits = |splits: usize| k / splits >= MIN_PART_DEPTH && 4 * splits * batch * m * n <= MAX_PART_BYTES;
        for splits in (1..=MAX_PARTS).take_while(|splits| *splits == 1 || fits(*splits)) {
            let blocks = tiles * splits;
            let each = blocks.div_ceil(sms);
            // Few warps cannot hide latency: 4 warps were measured to take 1.3 × the time.
            let idle = BUSY_WARPS.saturating_sub(each * warps) as f64 / BUSY_WARPS as f64;
            let work = each as f64 * k.div_ceil(splits) as f64 * costs.depth_ns(tile) * (1.0 + 0.4 * idle);
            let exchanged = (splits + 1) as f64 * (batch * m * n) as f64 * costs.part_ns / sms as f64;
            let parts = if splits == 1 { 0.0 } else { exchanged + costs.launch_ns };
            offer(work + parts, GemmPlan::Tiles(tile, splits));
        }
    }
    if !transpose_a && m <= 8 {
        let rows = m.max(1).next_power_of_two();
        // Once every multiprocessor has a block, more blocks share its memory bandwidth.
        let streamed = |cols: usize, slower: f64| {
            ((batch * n.div_ceil(cols)) as f64 / sms as f64).max(1.0) * (k * cols) as f64 * costs.stream_ns * slower
        };
        if transpose_b {
            offer(streamed(8 * gemv_t_columns(rows), 1.0), GemmPlan::GemvT(rows));
        } else {
            offer(streamed(32, 1.0), GemmPlan::GemvN(rows, GemvWidth::Columns32));
            offer(streamed(16, 1.1), GemmPlan::GemvN(rows, GemvWidth::Columns16));
        }
    }
}

/// Returns the columns that each of the 8 warps of a block of `gemv_t` computes.
pub(super) const fn gemv_t_columns(rows: usize) -> usize {
    match rows {
        1 => 1,
        2 | 4 => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the shape of a product of matrices that are not transposed.
    fn untransposed([m, n, k]: [usize; 3]) -> ProductShape {
        ProductShape { batch: 1, m, n, k, transpose_a: false, transpose_b: false }
    }

    /// Compares with the plans that were measured on an H200 to be the fastest, or within 5 % of
    /// it.
    #[test]
    fn plans_are_as_measured() {
        let of = |shape| plan(&GemmCosts::H200, untransposed(shape), 132);
        assert_eq!(of([4096; 3]), GemmPlan::Tiles(GemmTile::T128x128, 1));
        assert_eq!(of([2048; 3]), GemmPlan::Tiles(GemmTile::T128x128, 1));
        assert!(matches!(of([1024; 3]), GemmPlan::Tiles(GemmTile::T128x128 | GemmTile::T64x128, 2..=4)));
        assert!(matches!(
            of([512, 6144, 2048]),
            GemmPlan::Tiles(GemmTile::T64x128, 1) | GemmPlan::Tiles(GemmTile::T128x128, 2)
        ));
        assert!(
            matches!(of([64, 6144, 2048]), GemmPlan::Tiles(GemmTile::T64x128, 7..=11)),
            "{:?}",
            of([64, 6144, 2048])
        );
        assert!(matches!(of([16, 6144, 2048]), GemmPlan::Tiles(GemmTile::T16x128, 8..=11)));
        assert_eq!(of([4, 6144, 2048]), GemmPlan::GemvN(4, GemvWidth::Columns32));
        assert_eq!(of([1, 6144, 2048]), GemmPlan::GemvN(1, GemvWidth::Columns32));
        assert_eq!(of([1, 2048, 2048]), GemmPlan::GemvN(1, GemvWidth::Columns16));
        assert_eq!(of([1, 8192, 8192]), GemmPlan::GemvN(1, GemvWidth::Columns32));
        for shape in [[1, 8192, 8192], [1, 2048, 6144], [1, 2048, 2048]] {
            let shape = ProductShape { transpose_b: true, ..untransposed(shape) };
            assert_eq!(plan(&GemmCosts::H200, shape, 132), GemmPlan::GemvT(1));
        }
    }

    /// Checks on a Tesla P40 that products which fill it are not split.
    #[test]
    fn products_that_fill_a_device_are_not_split() {
        let of = |shape| plan(&GemmCosts::H200, untransposed(shape), 30);
        for shape in [[8192; 3], [4096; 3], [2048; 3]] {
            assert_eq!(of(shape), GemmPlan::Tiles(GemmTile::T128x128, 1));
        }
        assert!(matches!(of([16, 6144, 2048]), GemmPlan::Tiles(GemmTile::T16x128, _)));
    }

    #[test]
    fn the_first_ranked_plan_is_chosen() {
        for shape in [[4096; 3], [1001; 3], [64, 6144, 2048], [4, 6144, 2048], [1, 2048, 2048]] {
            let shape = untransposed(shape);
            let all = ranked(&GemmCosts::H200, shape, 132);
            assert_eq!(all[0].1, plan(&GemmCosts::H200, shape, 132));
            assert!(all.is_sorted_by(|a, b| a.0 <= b.0));
            for (_, plan) in all {
                assert_eq!(plan.to_string().parse(), Ok(plan));
            }
        }
    }

    #[test]
    fn empty_products_have_a_plan() {
        for shape in [[0; 3], [0, 5, 5], [5, 0, 5], [5, 5, 0], [1, 1, 1]] {
            let shape = ProductShape { transpose_a: true, transpose_b: true, ..untransposed(shape) };
            plan(&GemmCosts::H200, shape, 1);
        }
        let none = ProductShape { batch: 0, ..untransposed([1; 3]) };
        assert!(matches!(plan(&GemmCosts::H200, none, 0), GemmPlan::GemvN(1, _) | GemmPlan::Tiles(..)));
    }
}
