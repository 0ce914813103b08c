//! The choice of kernel for a product with quantized weights: a table of costs, and a search over
//! it.

/// A way to compute a product with quantized weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuantPlan {
    /// [`gemv_blocks`](super::few::gemv_blocks), in groups of up to 8 rows that are as equal as
    /// possible.
    Few,
    /// [`gemm_blocks`](super::many::gemm_blocks) with this tile, and K in this number of parts.
    Tiles(QuantTile, usize),
}

/// The tiles that `gemm_blocks` is compiled for, rows by columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuantTile {
    /// 16 × 128, by two warps.
    T16x128,
    /// 32 × 128, by four warps.
    T32x128,
    /// 64 × 128, by eight warps.
    T64x128,
}

impl QuantTile {
    /// All tiles.
    pub const ALL: [QuantTile; 3] = [QuantTile::T16x128, QuantTile::T32x128, QuantTile::T64x128];

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(self) -> usize {
        match self {
            QuantTile::T16x128 => 16,
            QuantTile::T32x128 => 32,
            QuantTile::T64x128 => 64,
        }
    }
}

/// The costs of the kernels, from which a plan is chosen: times in nanoseconds that a busy
/// multiprocessor takes. Only their ratios count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QuantCosts {
    /// Time for a unit of 32 weights with 1 row of activations, 2 rows, … 8 rows.
    pub few_ns: [f64; 8],
    /// Time for a unit of each of the 128 columns of a tile, in the order of [`QuantTile::ALL`].
    pub tile_ns: [f64; 3],
    /// Time to read a byte of weights from the L2 cache.
    pub read_ns: f64,
    /// Time to store an element of a partial sum and to load it again.
    pub part_ns: f64,
    /// Time of a second launch.
    pub launch_ns: f64,
}

impl QuantCosts {
    /// Costs on a Tesla P40 at 1.5 GHz: the issue slots of the machine code for Q4_0. Costs of
    /// tiles and of partial sums, relative to groups, are fitted to times on an H100: plans of up
    /// to 12 parts for 12 to 128 rows of four matrices, in Q4_0, Q4_K and Q6_K. The time of the
    /// chosen plan over that of the fastest, for 48 to 128 rows:
    ///
    /// | format | mean | largest |
    /// |---|---|---|
    /// | Q4_0 | 1.02 | 1.13 |
    /// | Q4_K | 1.02 | 1.09 |
    /// | Q6_K | 1.03 | 1.08 |
    pub const P40: QuantCosts = QuantCosts {
        few_ns: [0.28, 0.34, 0.39, 0.45, 0.53, 0.61, 0.68, 0.76],
        tile_ns: [230.0, 264.0, 510.0],
        read_ns: 0.02,
        part_ns: 0.13,
        launch_ns: 2e3,
    };
}

/// The number of warps that keep a multiprocessor busy.
const BUSY_WARPS: usize = 16;
/// The maximum number of parts.
const MAX_PARTS: usize = 16;
/// The minimum number of units of a part.
const MIN_PART_UNITS: usize = 16;
/// Columns of a block of `gemv_blocks`.
const FEW_COLUMNS: usize = 24;

/// Returns the plan with the least cost for a product of `rows` rows with `cols` rows of weights,
/// of `units` units of `unit_bytes` bytes each.
pub fn plan(costs: &QuantCosts, [rows, cols, units]: [usize; 3], unit_bytes: f64, multiprocessors: usize) -> QuantPlan {
    // Activations of so few rows lie in smaller groups than tiles read.
    if rows <= 8 {
        return QuantPlan::Few;
    }
    let sms = multiprocessors.max(1);
    // The time of blocks of `warps` warps, each of which takes `ns`.
    let time = |blocks: usize, warps: usize, ns: f64| {
        let each = blocks.div_ceil(sms);
        // Few warps cannot hide latency.
        let idle = BUSY_WARPS.saturating_sub(each * warps) as f64 / BUSY_WARPS as f64;
        each as f64 * ns * (1.0 + 0.4 * idle)
    };
    let read = costs.read_ns * unit_bytes;
    let groups = rows.div_ceil(8);
    let each = costs.few_ns[rows.div_ceil(groups).clamp(1, 8) - 1].max(read);
    let mut best = (time(groups * cols.div_ceil(FEW_COLUMNS), 8, (FEW_COLUMNS * units) as f64 * each), QuantPlan::Few);
    for (tile, ns) in QuantTile::ALL.into_iter().zip(costs.tile_ns) {
        let tiles = rows.div_ceil(tile.rows()) * cols.div_ceil(128);
        for splits in (1..=MAX_PARTS).filter(|splits| *splits == 1 || units / splits >= MIN_PART_UNITS) {
            let work = time(tiles * splits, tile.rows() / 8, units.div_ceil(splits) as f64 * ns.max(128.0 * read));
            let exchanged = ((splits + 1) * rows * cols) as f64 * costs.part_ns / sms as f64;
            let parts = if splits == 1 { 0.0 } else { exchanged + costs.launch_ns };
            if work + parts < best.0 {
                best = (work + parts, QuantPlan::Tiles(tile, splits));
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(shape: [usize; 3]) -> QuantPlan {
        plan(&QuantCosts::P40, shape, 18.0, 132)
    }

    #[test]
    fn tiles_are_for_many_rows() {
        for rows in 1..=8 {
            assert_eq!(planned([rows, 4096, 128]), QuantPlan::Few);
        }
        assert_eq!(planned([4096, 4096, 128]), QuantPlan::Tiles(QuantTile::T64x128, 1));
    }

    #[test]
    fn parts_fill_the_device() {
        // 64 tiles of 64 × 128 leave half of 132 multiprocessors idle.
        let QuantPlan::Tiles(tile, splits) = planned([128, 4096, 128]) else { panic!("few rows") };
        assert!(128usize.div_ceil(tile.rows()) * 32 * splits >= 132);
        // Parts have whole blocks of 256 numbers, and no part is empty.
        assert!(splits <= 128 / MIN_PART_UNITS);
    }

    #[test]
    fn extents_of_zero_have_a_plan() {
        assert_eq!(planned([0, 0, 0]), QuantPlan::Few);
        planned([100, 0, 1]);
    }
}
