//! Calls for mixtures of experts with quantized weights.
//!
//! A plan decides how rows are multiplied, by the mean number of rows of an expert
//! ([`ExpertPlan::of`]). The table has the times in µs of each plan on an H200, by
//! `kernels bench --suite experts`. Each token chooses 8 of 128 experts, whose matrices of 768 ×
//! 2048 in Q4_K are not in the L2 cache. The copy moves the bytes of all chosen matrices, half of
//! them read. The dense product has the rows of eight experts for one token. For more tokens, it
//! has one expert, with as many rows of activations as all experts have together:
//!
//! | tokens | one by one | groups of 2, 4, 8 | tiles of 16, 32, 64 | chosen | copy | dense |
//! |---|---|---|---|---|---|---|
//! | 1 | 6.3 | 10, 10, 12 | 50, 47, 47 | 6.3 | 4.9 | 6.3 |
//! | 2 | 9.8 | 13, 13, 17 | 55, 48, 48 | 9.8 | 6.6 | 7.5 |
//! | 8 | 23.0 | 26, 30, 40 | 78, 64, 98 | 23.0 | 14.0 | 9.7 |
//! | 32 | 73 | 62, 60, 79 | 111, 125, 156 | 60 | 29 | 23 |
//! | 64 | 138 | 101, 83, 90 | 113, 137, 164 | 83 | 33 | 34 |
//! | 128 | 266 | 178, 132, 121 | 128, 151, 193 | 121 | 34 | 57 |
//! | 512 | 1035 | 635, 421, 343 | 285, 261, 290 | 261 | 34 | 196 |
//!
//! One token reads its matrices at 0.77 of a copy's rate: Q4_0 0.83, Q6_K 0.81, Q8_0 0.90. 512
//! tokens have 0.75 of the dense rate: Q4_0 0.70, Q6_K 0.64, Q8_0 0.66. In a graph, a step with its
//! choice of experts takes up to 3 µs more than the product.
//!
//! Rows of an expert are filled up to whole groups of at most 8, and a tile skips absent groups.
//! When rows were filled up to whole tiles, 512 tokens took 296 µs. When all experts had groups of
//! 8, 32 tokens took 79 µs. Between 1 and 512 tokens, groups are not limited by memory: K is short,
//! so that a lane multiplies only two units of a row in the life of its block.

use super::plan::{ExpertPlan, GemvBlock};
use super::routing::{combine, count_routes, place_routes, route};
use super::weighted::{ActivationRows, Activations, SingleRows};
use super::weights::Weights;
use crate::access::WholeRows;
use crate::dispatch::dispatch;
use crate::gemm::epilogue::{Epilogue, Identity};
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use crate::with_format;
use crate::{LaunchStruct, Queue, QueueMemory};
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The rule by which a layer routes tokens to experts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Routing {
    chosen: usize,
    sigmoid: bool,
    share: bool,
    scale: f32,
}

impl Routing {
    /// Routes each token to `chosen` experts by the softmax of its logits.
    #[must_use]
    pub fn softmax(chosen: usize) -> Routing {
        Routing { chosen, sigmoid: false, share: false, scale: 1.0 }
    }

    /// Routes each token to `chosen` experts by the sigmoid of each logit.
    #[must_use]
    pub fn sigmoid(chosen: usize) -> Routing {
        Routing { sigmoid: true, ..Routing::softmax(chosen) }
    }

    /// Divides the weights of a token's experts by their sum.
    #[must_use]
    pub fn normalized(self) -> Routing {
        Routing { share: true, ..self }
    }

    /// Multiplies all weights by a number.
    #[must_use]
    pub fn scaled(self, scale: f32) -> Routing {
        Routing { scale, ..self }
    }

    /// Queues the choice of experts for each token, by logits of [tokens, experts]. `bias` is
    /// empty, or has a number for each expert, which is added to the expert's score for the choice
    /// only.
    ///
    /// Logits are clamped to the finite numbers, and a NaN counts as the lowest. Without a bias,
    /// the experts with the largest logits are chosen; of experts with equal logits, the one with
    /// the lower number.
    ///
    /// # Errors
    /// Rejects 0 and more than 512 experts, and more than 32 or all experts for a token. Rejects a
    /// bias of another length and buffers of another device. Fails if memory is insufficient.
    pub fn run<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        logits: &BufferView<'_, T, 2>,
        bias: Option<&BufferView<'_, f32, 1>>,
    ) -> Result<Routes, Error> {
        let [tokens, count] = logits.extents();
        let Routing { chosen, sigmoid, share, scale } = self;
        if count > 512 || chosen == 0 || chosen > count.min(32) {
            let why = format!(
                "routing to {chosen} of {count} experts: there are from 1 to 512 experts, and a token goes to at least 1 \
                 and at most 32 of them"
            );
            return Err(logits.refused_operand(why));
        }
        let none = on.scratch::<f32>(0)?;
        let none = none.view([0])?;
        if let Some(bias) = bias {
            bias.expected("bias", [count], "a number for each expert")?;
        }
        let bias = bias.unwrap_or(&none);
        let mut experts = on.scratch::<i32>(tokens * chosen)?;
        let mut weights = on.scratch::<f32>(tokens * chosen)?;
        let to_experts = experts.view_mut([tokens, chosen])?;
        let to_weights = weights.view_mut([tokens, chosen])?;
        dispatch!(let SIGMOID: bool = sigmoid; let SHARE: bool = share;
            let N: usize = count.div_ceil(32).next_power_of_two(), of [1, 2, 4, 8, 16];
            // SAFETY: the launch compares the extents, and the kernel's accesses stay within them.
            // The oracle checks that (`kernels check`).
            unsafe { route::<T, SIGMOID, SHARE, N>::launch_unchecked(&LibraryCall(on), logits, *bias, scale, to_experts, to_weights)?; });
        Ok(Routes { tokens, count, chosen, experts, weights })
    }
}

/// The experts of each token, and their weights.
#[derive(Debug)]
pub struct Routes {
    tokens: usize,
    /// Number of experts.
    count: usize,
    chosen: usize,
    experts: QueueMemory<i32>,
    weights: QueueMemory<f32>,
}

impl Routes {
    /// Returns the numbers of the experts, [tokens, chosen].
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view`](runtime::DeviceBuffer::view).
    pub fn experts(&self) -> Result<BufferView<'_, i32, 2>, Error> {
        self.experts.view([self.tokens, self.chosen])
    }

    /// Returns the weights of the experts, [tokens, chosen].
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view`](runtime::DeviceBuffer::view).
    pub fn weights(&self) -> Result<BufferView<'_, f32, 2>, Error> {
        self.weights.view([self.tokens, self.chosen])
    }

    /// Queues the choice of rows for products with experts, by the plan for this number of routes.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    pub fn rows(self, on: &impl Queue) -> Result<ExpertRows, Error> {
        let plan = ExpertPlan::of(self.tokens * self.chosen, self.count);
        self.rows_with_plan(on, plan)
    }

    /// Queues the choice of rows for products with experts by a given plan.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    pub fn rows_with_plan(self, on: &impl Queue, plan: ExpertPlan) -> Result<ExpertRows, Error> {
        let routes = self.tokens * self.chosen;
        let (rows, room) = (plan.rows(routes, self.count), plan.group());
        if plan == ExpertPlan::Single {
            return Ok(ExpertRows { rows, plan, order: None, routes: self });
        }
        let (groups_of_tile, tile_count) = plan.tiles(routes, self.count);
        let mut counts = on.scratch::<i32>(self.count)?;
        let (mut order, mut groups) = (on.scratch::<i32>(rows)?, on.scratch::<i32>(rows / room)?);
        let (mut places, mut tiles) = (on.scratch::<i32>(routes)?, on.scratch::<i32>(tile_count)?);
        let experts = self.experts.view([routes])?;
        // SAFETY: `route` chooses existing experts, and `counts` has the number of routes of each.
        // For any such routes, `rows` and `tile_count` are large enough (see `ExpertPlan`). The
        // oracle checks the accesses (`kernels check`).
        unsafe {
            count_routes::launch_unchecked(&LibraryCall(on), experts, counts.view_mut([self.count])?)?;
            place_routes::launch_unchecked(
                &LibraryCall(on),
                experts,
                counts.view([self.count])?,
                room,
                groups_of_tile,
                order.view_mut([rows])?,
                groups.view_mut([rows / room])?,
                tiles.view_mut([tile_count])?,
                places.view_mut([routes])?,
            )?;
        }
        let order = ExpertOrder { order, groups, tiles, tile_count, places };
        Ok(ExpertRows { rows, plan, order: Some(order), routes: self })
    }
}

/// Rows ordered by expert.
#[derive(Debug)]
struct ExpertOrder {
    /// The route of each row, or −1.
    order: QueueMemory<i32>,
    /// The expert of each group of rows, or −1.
    groups: QueueMemory<i32>,
    /// The first group of each tile, or −1 for an empty tile; nothing for products without tiles.
    tiles: QueueMemory<i32>,
    tile_count: usize,
    /// The row of each route.
    places: QueueMemory<i32>,
}

/// The rows of products with experts, and the expert that multiplies each.
///
/// Results of experts have [`count`](ExpertRows::count) rows. Some rows belong to no token, and
/// their contents are arbitrary. No call reads the routes on the host, so that a recorded graph
/// works for other logits, too.
#[derive(Debug)]
pub struct ExpertRows {
    rows: usize,
    plan: ExpertPlan,
    /// The order of the rows. `None` if there is a row for each route.
    order: Option<ExpertOrder>,
    routes: Routes,
}

impl ExpertRows {
    /// Returns the number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows
    }

    /// Queues the products of each token with its experts: X is [tokens, K], Y is [rows, N].
    /// `weights` has the matrices of all experts, [experts · N, K].
    ///
    /// # Errors
    /// Returns the errors of [`Weights::product`].
    pub fn product_of_tokens<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        weights: &Weights,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        self.product(on, weights, x, true, y)
    }

    /// Queues the products of each row with its expert: X is [rows, K], Y is [rows, N].
    ///
    /// # Errors
    /// Returns the errors of [`Weights::product`].
    pub fn product_of_rows<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        weights: &Weights,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        self.product(on, weights, x, false, y)
    }

    fn product<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        weights: &Weights,
        x: &BufferView<'_, T, 2>,
        of_tokens: bool,
        y: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        let ([all, cols], count) = (weights.extents(), self.routes.count);
        if all % count != 0 {
            let why = format!("the weights have {all} rows, which is not a multiple of {count} experts");
            return Err(y.refused_operand(why));
        }
        let (wanted, chosen) = if of_tokens { (self.routes.tokens, self.routes.chosen) } else { (self.rows, 1) };
        x.expected("x", [wanted, cols], "a number for each column of the weights")?;
        y.expected(
            "y",
            [self.rows, all / count],
            "a row for each of the experts' rows, with a number for each row of weights",
        )?;
        let format = weights.format();
        let Some(order) = &self.order else {
            let rows = SingleRows { x: *x, chosen, experts: self.routes.experts.view([self.rows])? };
            let multiprocessors = on.device().facts().multiprocessors as usize;
            let block = GemvBlock::of_single_rows(format, cols, self.rows * (all / count), multiprocessors);
            return with_format!(format, F => weights.queue_single_rows::<T, Identity, F>(on, block, rows, y, Identity));
        };
        // Rows of tokens are found by their routes.
        let none = on.scratch::<i32>(0)?;
        let by_route = if of_tokens { order.order.view([self.rows])? } else { none.view([0])? };
        let room = self.plan.group();
        let x = Activations::quantize_ordered(on, x, self.rows, room, &by_route, chosen)?;
        let (experts, tiles) = (order.groups.view([self.rows / room])?, order.tiles.view([order.tile_count])?);
        let rows = ActivationRows { x: &x, experts, tiles, whole: false };
        with_format!(format, F => match self.plan {
            ExpertPlan::Tiles(tile) => weights.tiles::<T, Identity, F>(on, tile, 1, &rows, y, Identity),
            _ => weights.queue_few_rows::<T, Identity, F>(on, GemvBlock::of_group(format, room), &rows, y, Identity),
        })
    }

    /// Queues Y ← Σ weight · row of each token's experts: X is [rows, N], Y is [tokens, N].
    ///
    /// # Errors
    /// Returns an error if extents differ, Y overlaps X, or a buffer belongs to another device.
    pub fn combine<T: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
    ) -> Result<(), Error> {
        // SAFETY: this epilogue accesses nothing.
        unsafe { self.combine_with(on, x, y, Identity) }
    }

    /// Queues Y ← epilogue(Σ weight · row). The epilogue sees Y as a batch of one matrix. For
    /// example, a [`Residual`](crate::gemm::epilogue::Residual) adds the result of a shared expert.
    ///
    /// # Safety
    /// The requirements of [`Gemm::run_with`](crate::gemm::Gemm::run_with) apply.
    ///
    /// # Errors
    /// Returns the errors of [`combine`](ExpertRows::combine).
    pub unsafe fn combine_with<T: Float + GenericArgument, E: Epilogue + LaunchStruct>(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, T, 2>,
        y: &mut BufferViewMut<'_, T, 2>,
        epilogue: E,
    ) -> Result<(), Error> {
        let Routes { tokens, chosen, .. } = self.routes;
        let [_, cols] = y.extents();
        x.expected("x", [self.rows, cols], "a row for each of the experts' rows, as wide as y")?;
        y.expected("y", [tokens, cols], "a row for each token")?;
        let none = on.scratch::<i32>(0)?;
        let places = match &self.order {
            Some(order) => order.places.view([tokens * chosen])?,
            None => none.view([0])?,
        };
        let weights = self.routes.weights()?;
        dispatch!(let V: usize = if x.rows_are_whole(4) && y.rows_are_whole(4) { 4 } else { 1 }, of [1, 4];
            // SAFETY: the launch compares the extents, and `place_routes` writes only places of
            // existing rows. The caller guarantees that the epilogue stays within its views.
            unsafe { combine::<T, E, V>::launch_unchecked(&LibraryCall(on), x, weights, places, y, epilogue) })
    }
}
