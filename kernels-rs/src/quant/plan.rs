//! The choice of kernel for a product with quantized weights: a table of costs, and a search over
//! it. [`TunedPlans`](crate::tuned::TunedPlans) has precedence where a plan was measured.

use super::format::Format;
use crate::tuned;
use kernel_dsl::compiler::ir::SHARED_LIMIT;
use std::fmt;
use std::str::FromStr;

/// A way to compute a product with quantized weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuantPlan {
    /// [`gemv_blocks`](super::few::gemv_blocks) with this block, in groups of up to 8 rows that are
    /// as equal as possible. The block does not change a bit of the result: a lane always adds the
    /// same units in the same order.
    Few(GemvBlock),
    /// [`gemm_blocks`](super::many::gemm_blocks) with this tile, and K in this number of parts.
    Tiles(QuantTile, usize),
}

/// The constants of a thread block of [`gemv_blocks`](super::few::gemv_blocks).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GemvBlock {
    /// The rows of weights, columns of Y, that a warp computes.
    pub columns: usize,
    /// The number of threads.
    pub threads: usize,
    /// The number of activations of a row in shared memory.
    pub piece: usize,
    /// The number of units of a row of weights that a lane loads before the multiplication.
    pub ahead: usize,
}

/// Returns the rows of a group, for `rows` rows in groups that are as equal as possible.
pub(super) fn group_rows(rows: usize) -> usize {
    rows.div_ceil(rows.div_ceil(8).max(1))
}

/// Returns the columns of a warp for which a product takes the least time, and the number of waves.
/// A wave is a block of 16 warps on each multiprocessor. By times of Q4_0 on an H200, a wave takes
/// 0.44 µs, and 0.67 µs for each column of a warp. From four waves on, their number counts less
/// than the work, which four columns share best.
fn columns_and_waves(columns_of_warp: &[usize], cols: usize, multiprocessors: usize) -> (usize, usize) {
    let waves = |columns: usize| cols.div_ceil(16 * columns * multiprocessors.max(1));
    let least = columns_of_warp.iter().copied().min_by_key(|columns| waves(*columns).saturating_mul(2 + 3 * columns));
    let columns = least.filter(|_| waves(4) < 4).unwrap_or(4);
    (columns, waves(columns))
}

impl GemvBlock {
    /// Returns the block for rows that the kernel quantizes one by one, with `k` activations and
    /// `cols` columns of all rows together.
    ///
    /// Few columns are shared by more warps. `kernels tune weights` chose the blocks on an H200,
    /// for Q4_0, Q4_K, Q6_K and Q8_0, and K from 2048 to 14,336. A product with 2048 or 4096
    /// columns takes 0.81 to 0.93 of the time of two columns a warp, 256 threads and two units. One
    /// column with 256 threads takes 2 to 7 % longer.
    ///
    /// If K is 2048, a block ends soon, and [the number of waves](columns_and_waves) counts. Time
    /// over that of blocks with 4 columns and 512 threads, for K = 2048:
    ///
    /// | columns | Q4_0 | Q4_K | Q6_K | Q8_0 |
    /// |---|---|---|---|---|
    /// | 6144: 3 columns, 512 threads | 0.94 | 0.96 | 0.94 | |
    /// | 12,288: 6 columns, 512 threads; 3 columns, 256 threads | 0.78 | 0.94 | | |
    /// | 49,152: 4 columns, 256 threads | 0.91 | 0.95 | 0.94 | 0.96 |
    pub(super) fn of_single_rows(format: Format, k: usize, cols: usize, multiprocessors: usize) -> GemvBlock {
        let (is_light, is_narrow) = (format.is_light(), cols < 32 * multiprocessors);
        let columns_of_warp: &[usize] = if is_light { &[4, 3, 6] } else { &[4, 3] };
        // A block quantizes complete pieces of K, so a piece is as short as K permits.
        let [columns, threads, piece, ahead] = match (is_narrow, is_light, k) {
            (true, _, ..=1024) => [1, 256, 1024, 1],
            (true, _, ..=4096) => [1, 512, 2048, 1],
            (true, ..) => [1, 512, 4096, 1],
            (_, _, ..=1024) => [4, 256, 1024, 1],
            (_, _, ..=2048) => match columns_and_waves(columns_of_warp, cols, multiprocessors) {
                (3, 2..) => [3, 256, 2048, 1],
                (columns @ (3 | 6), _) => [columns, 512, 2048, 1],
                (_, waves) => [4, if waves > 1 { 256 } else { 512 }, 2048, if is_light { 2 } else { 1 }],
            },
            (_, true, ..=4096) => [4, 512, 4096, 2],
            (_, true, _) => [4, 512, 8192, 2],
            _ => [4, 512, 4096, 1],
        };
        GemvBlock { columns, threads, piece, ahead }
    }

    /// Returns the block for groups of `rows` rows of quantized activations.
    pub(super) fn of_group(format: Format, rows: usize) -> GemvBlock {
        // The units that take the most registers.
        let is_heavy = matches!(format, Format::Q3K | Format::Q6K);
        let columns = match rows {
            0..=4 if format.is_light() => 4,
            8.. if is_heavy => 2,
            _ => 3,
        };
        GemvBlock { columns, threads: 256, piece: 2048, ahead: 1 }
    }

    /// Returns the blocks for groups of `rows` rows with `k` activations, those nearest to `usual`
    /// first.
    fn near(usual: GemvBlock, rows: usize, k: usize) -> Vec<GemvBlock> {
        let mut all = Vec::new();
        for columns in [1, 2, 3, 4, 6, 8] {
            for threads in [128, 256, 512] {
                for piece in [1024, 2048, 4096, 8192].into_iter().filter(|piece| *piece < 2 * k.max(1024)) {
                    for ahead in [1, 2, 4] {
                        all.push(GemvBlock { columns, threads, piece, ahead });
                    }
                }
            }
        }
        all.retain(|block| *block != usual && block.unsuitable(rows).is_none());
        let steps = |block: &GemvBlock| {
            let constants = |block: &GemvBlock| [block.columns, block.threads, block.piece, block.ahead];
            let ratio = |(a, b): (usize, usize)| (a as f64 / b as f64).log2().abs();
            constants(block).into_iter().zip(constants(&usual)).map(ratio).sum::<f64>()
        };
        all.sort_by(|a, b| steps(a).total_cmp(&steps(b)));
        all
    }

    /// Returns why the block cannot compute groups of `rows` rows, if it cannot.
    fn unsuitable(self, rows: usize) -> Option<&'static str> {
        let GemvBlock { columns, threads, piece, ahead } = self;
        if columns == 0 || rows * columns > 32 {
            return Some("a warp computes from 1 to 32 sums, one for each row of its group and column");
        }
        if !matches!(threads, 32 | 64 | 128 | 256 | 512) {
            return Some("a block has 32, 64, 128, 256 or 512 threads");
        }
        if piece == 0 || !piece.is_multiple_of(1024) || !piece.is_multiple_of(4 * threads) {
            return Some("the activations in shared memory are a multiple of 1024, and of 4 for each thread");
        }
        if ahead == 0 || !(piece / 1024).is_multiple_of(ahead) {
            return Some("the units loaded ahead divide the activations in shared memory by 1024");
        }
        // Bytes, and up to four factors of 32 activations.
        let shared = rows.max(1) * (piece + 128 + piece / 2);
        (shared > SHARED_LIMIT as usize)
            .then_some("the activations of all rows of a group exceed 48 KB of shared memory")
    }
}

impl QuantPlan {
    /// Returns the plan of groups of up to 8 rows for `rows` rows of quantized activations.
    #[must_use]
    pub fn few(format: Format, rows: usize) -> QuantPlan {
        QuantPlan::Few(GemvBlock::of_group(format, group_rows(rows)))
    }

    /// Returns why the plan cannot compute `rows` rows, if it cannot.
    pub(super) fn unsuitable(self, rows: usize) -> Option<&'static str> {
        match self {
            QuantPlan::Few(block) => block.unsuitable(group_rows(rows)),
            QuantPlan::Tiles(_, 0) => Some("a product by tiles has at least one part"),
            // Activations of so few rows lie in smaller groups than tiles read.
            QuantPlan::Tiles(..) if rows <= 8 => Some("tiles take more than 8 rows; `few` takes up to 8"),
            QuantPlan::Tiles(..) => None,
        }
    }
}

/// Formats a plan as tables of tuned plans write it: `few 4 512 2048 1` for columns, threads, piece
/// and units ahead, or `tiles 16x128 3`.
impl fmt::Display for QuantPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            QuantPlan::Few(GemvBlock { columns, threads, piece, ahead }) => {
                write!(f, "few {columns} {threads} {piece} {ahead}")
            }
            QuantPlan::Tiles(tile, splits) => write!(f, "tiles {}x128 {splits}", tile.rows()),
        }
    }
}

/// Reads what [`Display`](fmt::Display) writes. The error says what is wrong.
impl FromStr for QuantPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<QuantPlan, String> {
        let number = |word: &str| tuned::number(word, text);
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["few", columns, threads, piece, ahead] => Ok(QuantPlan::Few(GemvBlock {
                columns: number(columns)?,
                threads: number(threads)?,
                piece: number(piece)?,
                ahead: number(ahead)?,
            })),
            ["tiles", tile, splits] => {
                let shape = |tile: &QuantTile| format!("{}x128", tile.rows());
                let Some(of_shape) = QuantTile::ALL.into_iter().find(|known| shape(known) == tile) else {
                    let known = QuantTile::ALL.iter().map(shape).collect::<Vec<_>>().join(", ");
                    return Err(format!("there is no tile `{tile}`; the tiles are {known}"));
                };
                match number(splits)? {
                    splits @ 1..=MAX_PARTS => Ok(QuantPlan::Tiles(of_shape, splits)),
                    splits => Err(format!("{splits} parts; a plan has from 1 to {MAX_PARTS}")),
                }
            }
            _ => Err(format!("`{text}` is not a plan; write `few 4 512 2048 1` or `tiles 16x128 3`")),
        }
    }
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

/// A way to compute products of rows with the matrices of their experts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpertPlan {
    /// [`gemv_blocks`](super::few::gemv_blocks) with a row for each route, one by one.
    Single,
    /// [`gemv_blocks`](super::few::gemv_blocks) with groups of up to 2, 4 or 8 rows of an expert.
    Groups(GroupSize),
    /// [`gemm_blocks`](super::many::gemm_blocks) with this tile, of rows of an expert.
    Tiles(QuantTile),
}

/// The largest number of rows of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupSize {
    /// Two rows.
    Two,
    /// Four rows.
    Four,
    /// Eight rows.
    Eight,
}

impl ExpertPlan {
    /// Returns the plan for a number of routes to `experts` experts.
    #[must_use]
    pub fn of(routes: usize, experts: usize) -> ExpertPlan {
        match routes.div_ceil(experts.max(1)) {
            // Most experts have one route or none.
            0..=1 => ExpertPlan::Single,
            2..=4 => ExpertPlan::Groups(GroupSize::Four),
            5..=8 => ExpertPlan::Groups(GroupSize::Eight),
            9..=16 => ExpertPlan::Tiles(QuantTile::T16x128),
            17..=48 => ExpertPlan::Tiles(QuantTile::T32x128),
            _ => ExpertPlan::Tiles(QuantTile::T64x128),
        }
    }

    /// Returns the number of rows of a group, which have one expert.
    pub(super) fn group(self) -> usize {
        match self {
            ExpertPlan::Single => 1,
            ExpertPlan::Groups(GroupSize::Two) => 2,
            ExpertPlan::Groups(GroupSize::Four) => 4,
            ExpertPlan::Groups(GroupSize::Eight) | ExpertPlan::Tiles(_) => 8,
        }
    }

    /// Returns the number of rows of results, in whole groups of rows, for a number of routes to
    /// `experts` experts. The number saturates at `usize::MAX`.
    #[must_use]
    pub fn rows(self, routes: usize, experts: usize) -> usize {
        let group = self.group();
        let rows = routes.saturating_add(experts.min(routes).saturating_mul(group - 1));
        rows.checked_next_multiple_of(group).unwrap_or(usize::MAX)
    }

    /// Returns the number of groups of a tile, and the largest number of tiles for a number of
    /// routes: full tiles, and one that is not full for each expert and for the rows after the last
    /// expert. There are no tiles without routes, and for plans without tiles.
    pub(super) fn tiles(self, routes: usize, experts: usize) -> (usize, usize) {
        match self {
            ExpertPlan::Tiles(tile) if routes > 0 => {
                (tile.rows() / 8, self.rows(routes, experts) / tile.rows() + experts.min(routes) + 1)
            }
            _ => (1, 0),
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

/// Extents of a product: rows of activations, rows of weights, and numbers of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuantExtents {
    /// Rows of activations and of Y.
    pub rows: usize,
    /// Rows of weights, columns of Y.
    pub cols: usize,
    /// Numbers of a row.
    pub k: usize,
}

/// Returns the plan with the least cost for a product of `f32` with weights in a format.
pub fn plan(costs: &QuantCosts, format: Format, extents: QuantExtents, multiprocessors: usize) -> QuantPlan {
    let mut best: Option<(f64, QuantPlan)> = None;
    each_plan(costs, format, extents, multiprocessors, |ns, plan| {
        if best.is_none_or(|(least, _)| ns < least) {
            best = Some((ns, plan));
        }
    });
    best.map_or_else(|| QuantPlan::few(format, extents.rows), |(_, plan)| plan)
}

/// Returns the plans among which [`plan`] chooses, the least cost first. For up to 8 rows, other
/// blocks follow, those nearest to the usual one first. A tuner measures these plans.
pub fn ranked(
    costs: &QuantCosts,
    format: Format,
    extents @ QuantExtents { rows, k, .. }: QuantExtents,
    multiprocessors: usize,
) -> Vec<QuantPlan> {
    let mut all = Vec::new();
    each_plan(costs, format, extents, multiprocessors, |ns, plan| all.push((ns, plan)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut all: Vec<QuantPlan> = all.into_iter().map(|(_, plan)| plan).collect();
    if let &[QuantPlan::Few(usual)] = &all[..] {
        all.extend(GemvBlock::near(usual, group_rows(rows), k).into_iter().map(QuantPlan::Few));
    }
    all
}

/// Passes the cost of each plan in nanoseconds and the plan to `offer`.
fn each_plan(
    costs: &QuantCosts,
    format: Format,
    QuantExtents { rows, cols, k }: QuantExtents,
    multiprocessors: usize,
    mut offer: impl FnMut(f64, QuantPlan),
) {
    let sms = multiprocessors.max(1);
    if rows == 1 {
        return offer(0.0, QuantPlan::Few(GemvBlock::of_single_rows(format, k, cols, multiprocessors)));
    }
    let few = QuantPlan::few(format, rows);
    // Activations of so few rows lie in smaller groups than tiles read.
    if rows <= 8 {
        return offer(0.0, few);
    }
    let ([numbers, bytes], units) = (format.block(), k.div_ceil(32));
    // The time of blocks of `warps` warps, each of which takes `ns`.
    let time = |blocks: usize, warps: usize, ns: f64| {
        let each = blocks.div_ceil(sms);
        // Few warps cannot hide latency.
        let idle = BUSY_WARPS.saturating_sub(each * warps) as f64 / BUSY_WARPS as f64;
        each as f64 * ns * (1.0 + 0.4 * idle)
    };
    let read = costs.read_ns * (32 * bytes) as f64 / numbers as f64;
    let groups = rows.div_ceil(8);
    let each = costs.few_ns[rows.div_ceil(groups).clamp(1, 8) - 1].max(read);
    offer(time(groups * cols.div_ceil(FEW_COLUMNS), 8, (FEW_COLUMNS * units) as f64 * each), few);
    for (tile, ns) in QuantTile::ALL.into_iter().zip(costs.tile_ns) {
        let tiles = rows.div_ceil(tile.rows()) * cols.div_ceil(128);
        for splits in (1..=MAX_PARTS).filter(|splits| *splits == 1 || units / splits >= MIN_PART_UNITS) {
            let work = time(tiles * splits, tile.rows() / 8, units.div_ceil(splits) as f64 * ns.max(128.0 * read));
            let exchanged = ((splits + 1) * rows * cols) as f64 * costs.part_ns / sms as f64;
            let parts = if splits == 1 { 0.0 } else { exchanged + costs.launch_ns };
            offer(work + parts, QuantPlan::Tiles(tile, splits));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format::Q4_0;

    fn planned(rows: usize, cols: usize, k: usize) -> QuantPlan {
        plan(&QuantCosts::P40, FORMAT, QuantExtents { rows, cols, k }, 132)
    }

    #[test]
    fn tiles_are_for_many_rows() {
        for rows in 2..=8 {
            assert_eq!(planned(rows, 4096, 4096), QuantPlan::few(FORMAT, rows));
        }
        assert!(matches!(planned(1, 4096, 4096), QuantPlan::Few(GemvBlock { columns: 1, threads: 512, .. })));
        assert!(matches!(planned(1, 8192, 4096), QuantPlan::Few(GemvBlock { columns: 4, threads: 512, .. })));
        assert_eq!(planned(4096, 4096, 4096), QuantPlan::Tiles(QuantTile::T64x128, 1));
    }

    #[test]
    fn parts_fill_the_device() {
        // 64 tiles of 64 × 128 leave half of 132 multiprocessors idle.
        let QuantPlan::Tiles(tile, splits) = planned(128, 4096, 4096) else { panic!("few rows") };
        assert!(128usize.div_ceil(tile.rows()) * 32 * splits >= 132);
        // Parts have whole blocks of 256 numbers, and no part is empty.
        assert!(splits <= 128 / MIN_PART_UNITS);
    }

    #[test]
    fn blocks_of_a_single_row_fill_the_multiprocessors() {
        for (format, cols, block) in [
            (Format::Q4_0, 6144, [3, 512]),
            (Format::Q4_0, 8192, [4, 512]),
            (Format::Q4_0, 12_288, [6, 512]),
            (Format::Q4_0, 49_152, [4, 256]),
            (Format::Q6K, 6144, [3, 512]),
            (Format::Q6K, 12_288, [3, 256]),
            (Format::Q6K, 49_152, [4, 256]),
        ] {
            let GemvBlock { columns, threads, .. } = GemvBlock::of_single_rows(format, 2048, cols, 132);
            assert_eq!([columns, threads], block, "{format:?}, {cols} columns");
        }
    }

    #[test]
    fn extents_of_zero_have_a_plan() {
        assert_eq!(planned(0, 0, 0), QuantPlan::few(FORMAT, 0));
        planned(100, 0, 1);
        planned(1, 0, 0);
    }

    /// Checks that the first ranked plan is the one in use, and that all are suitable.
    #[test]
    fn ranked_plans_are_suitable() {
        for format in Format::ALL {
            for rows in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 64, 128, 4096] {
                for k in [0, 32, 2048, 6144] {
                    let extents = QuantExtents { rows, cols: 2048, k };
                    let all = ranked(&QuantCosts::P40, format, extents, 28);
                    assert_eq!(all[0], plan(&QuantCosts::P40, format, extents, 28));
                    for (i, plan) in all.iter().enumerate() {
                        assert_eq!(plan.unsuitable(rows), None, "{plan} for {rows} rows of {format:?}");
                        assert_eq!(plan.to_string().parse(), Ok(*plan));
                        assert!(!all[..i].contains(plan), "{plan} twice");
                    }
                }
            }
        }
    }

    #[test]
    fn unsuitable_blocks_are_refused() {
        let plan = |text: &str| text.parse::<QuantPlan>().unwrap();
        for (text, rows, why) in [
            ("few 0 256 2048 1", 1, "from 1 to 32 sums"),
            ("few 5 256 2048 1", 7, "from 1 to 32 sums"),
            ("few 4 96 2048 1", 1, "32, 64, 128, 256 or 512 threads"),
            ("few 4 512 1024 1", 1, "of 4 for each thread"),
            ("few 4 256 1500 1", 1, "a multiple of 1024"),
            ("few 4 256 2048 4", 1, "the units loaded ahead"),
            ("few 4 256 2048 0", 1, "the units loaded ahead"),
            ("few 2 256 8192 1", 8, "48 KB"),
            ("tiles 16x128 2", 8, "more than 8 rows"),
        ] {
            assert!(plan(text).unsuitable(rows).is_some_and(|found| found.contains(why)), "{text}");
        }
        for text in ["few 4", "tiles 8x8 1", "tiles 16x128 17", "few a 1 1 1", ""] {
            assert!(text.parse::<QuantPlan>().is_err(), "{text}");
        }
    }
}
