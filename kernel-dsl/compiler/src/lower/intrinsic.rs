//! Built-in functions and methods.

use super::cooperation::LANES;
use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{CacheHint, SharedHandle, Val, ViewValue};
use super::shared::RowLayout;
use crate::Scalar;
use crate::hir::{self, Expr, Intrinsic};
use crate::ir::{Binary, Comparison, Op, Special, WaitGroup};
use crate::source::Span;
use crate::target::Target;

impl<'h> Lowerer<'h> {
    pub(super) fn intrinsic(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        if let Some((first, name)) = intrinsic.first_target() {
            self.has_target(e.span, name, first);
        }
        if let Some(result) = self.of_expressions(e, intrinsic, arguments) {
            return result;
        }
        let values: Vec<Val> = arguments
            .iter()
            .enumerate()
            .map(|(i, a)| match intrinsic {
                Intrinsic::ViewOffset | Intrinsic::Get if i == 1 => {
                    Val::Tuple(self.indices(a).into_iter().map(Val::Scalar).collect())
                }
                _ => self.expr(a),
            })
            .collect();
        self.at(e.span);
        self.position(e.span, intrinsic)
            .or_else(|| self.synchronization(e.span, intrinsic))
            .or_else(|| self.of_memory(e, intrinsic, arguments, &values))
            .or_else(|| self.copying(e, intrinsic, arguments, &values))
            .or_else(|| self.of_numbers(e, intrinsic, arguments, &values))
            .or_else(|| self.of_option(e, intrinsic, &values))
            // An argument has an error, or yields no value because control leaves it, as `return`
            // does.
            .unwrap_or(Val::Unit)
    }

    /// Lowers a function whose arguments are not all evaluated first: constants, types and indices.
    fn of_expressions(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Option<Val> {
        Some(match intrinsic {
            Intrinsic::SharedNew => self.shared(e, arguments, RowLayout::Packed),
            Intrinsic::SharedSwizzled => self.shared(e, arguments, RowLayout::Swizzled),
            Intrinsic::SharedPadded => self.shared(e, arguments, RowLayout::Padded),
            Intrinsic::SharedWithPitch => self.shared(e, arguments, RowLayout::Pitch),
            Intrinsic::SharedDynamic => self.shared_dynamic(e, &arguments[0]),
            Intrinsic::SharedOver => {
                let [under, shape] = arguments else { return Some(Val::Unit) };
                let name = self.name_hint.take();
                let under = self.expr(under);
                self.at(e.span);
                self.name_hint = name;
                self.shared_over(e, &under, shape)
            }
            Intrinsic::ThreadLocal => self.thread_local(e),
            Intrinsic::Extent(None) | Intrinsic::Stride => self.dimension(e.span, intrinsic, arguments),
            Intrinsic::Load
            | Intrinsic::LoadOr
            | Intrinsic::Store
            | Intrinsic::StoreIn
            | Intrinsic::Atomic(..)
            | Intrinsic::AtomicSubtract => self.access(e, intrinsic, arguments),
            Intrinsic::GroupNew | Intrinsic::GroupLane | Intrinsic::GroupIndex => self.group(e, intrinsic, arguments),
            Intrinsic::OfWarp(operation) => self.of_lanes(e, operation, LANES, arguments),
            Intrinsic::OfGroup(operation) => self.of_group(e, operation, arguments),
            Intrinsic::OfBlock(operation) => self.of_block(e, operation, arguments),
            Intrinsic::ShareCount | Intrinsic::ShareHas | Intrinsic::ShareAt => self.share(e, intrinsic, arguments),
            Intrinsic::ArrayMap | Intrinsic::ArrayFrom | Intrinsic::ArrayLen => {
                self.whole_array(e, intrinsic, arguments)
            }
            _ => return None,
        })
    }

    /// Lowers the place of a thread in its warp, block and grid, and their sizes.
    fn position(&mut self, span: Span, intrinsic: Intrinsic) -> Option<Val> {
        Some(Val::Scalar(match intrinsic {
            Intrinsic::Thread(axis) => self.thread(axis),
            Intrinsic::Block(axis) => self.special(Special::Block(axis)),
            Intrinsic::BlockDim(axis) => self.block_dim(axis),
            Intrinsic::GridDim(axis) => self.special(Special::Grid(axis)),
            Intrinsic::ThreadIndex => self.thread_index(),
            Intrinsic::BlockThreads => self.block_threads(),
            Intrinsic::GridIndex => {
                let block = self.special(Special::Block(0));
                let threads = self.block_threads();
                let first = self.binary(Binary::Mul, Scalar::Usize, block, threads);
                let thread = self.thread_index();
                self.binary(Binary::Add, Scalar::Usize, first, thread)
            }
            Intrinsic::GridThreads => {
                let blocks = self.special(Special::Grid(0));
                let threads = self.block_threads();
                self.binary(Binary::Mul, Scalar::Usize, blocks, threads)
            }
            Intrinsic::WarpLane => self.lane(span),
            Intrinsic::WarpIndex => self.warp(span),
            Intrinsic::WarpCount => {
                self.whole_warps(span);
                self.warp_count()
            }
            Intrinsic::TargetSm => {
                let sm = self.builder.kernel.target.sm();
                self.number(Scalar::U32, sm.into())
            }
            Intrinsic::Multiprocessors | Intrinsic::Waves => {
                self.error_with_help(
                    span,
                    "properties of the device are known at launch, not in the kernel's body",
                    "use this function in `grid = …` and `grid::dim_x()` in the body, or pass the number as an argument",
                );
                return Some(Val::Unit);
            }
            _ => return None,
        }))
    }

    /// Lowers barriers and fences.
    fn synchronization(&mut self, span: Span, intrinsic: Intrinsic) -> Option<Val> {
        let effect = match intrinsic {
            Intrinsic::GridSync => {
                if !self.program.launch.cooperative {
                    self.error_with_help(
                        span,
                        "`grid::sync()` needs all blocks of the launch to be resident at once",
                        "add the clause `cooperative` to the kernel: `#[kernel(cooperative, block = …, grid = …)]`",
                    );
                }
                Op::GridSync
            }
            Intrinsic::BlockSync => Op::BlockSync,
            Intrinsic::WarpSync => {
                self.whole_warps(span);
                Op::WarpSync
            }
            Intrinsic::Fence(scope) => Op::Fence(scope),
            _ => return None,
        };
        self.builder.effect(effect);
        Some(Val::Unit)
    }

    /// Lowers methods of views and shared arrays that copy nothing, and `fill`.
    fn of_memory(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &[Expr], values: &[Val]) -> Option<Val> {
        Some(match (intrinsic, values) {
            (Intrinsic::Extent(Some(d)), [of, ..]) => self.extent(of, u32::from(d), e.span),
            (Intrinsic::IsEmpty, [of, ..]) => self.is_empty(of),
            (Intrinsic::Aligned, ..) => {
                self.error(e.span, "`aligned` is a launch condition: write it in `#[requires(…)]`");
                Val::Unit
            }
            (Intrinsic::ViewStrided, [Val::View(view), ..]) => {
                let mut view = view.clone();
                if let Some(last) = view.strides.last_mut().filter(|last| last.is_none()) {
                    *last = Some(self.builder.index(1));
                }
                Val::View(view)
            }
            (Intrinsic::ViewTransposed, [Val::View(view), ..]) => {
                let mut view = view.clone();
                view.extents.reverse();
                view.strides.reverse();
                Val::View(view)
            }
            (Intrinsic::ViewOffset, [Val::View(view), Val::Tuple(at)]) => self.offset(view, at),
            (Intrinsic::ViewStreaming, [Val::View(view), ..]) => {
                Val::View(ViewValue { hint: CacheHint::Streaming, ..view.clone() })
            }
            (Intrinsic::ViewBypassL1, [Val::View(view), ..]) => {
                Val::View(ViewValue { hint: CacheHint::BypassL1, ..view.clone() })
            }
            (Intrinsic::ViewAt, [Val::View(view), Val::Scalar(i), ..]) => self.view_at(view, *i),
            (Intrinsic::SharedAt, [Val::Shared(handle), Val::Scalar(i), ..]) => self.shared_at(handle, *i),
            (Intrinsic::SharedCast, [of, ..]) => self.shared_cast(e, of),
            (Intrinsic::SharedFill, [Val::Shared(of), value]) => {
                self.fill(of, arguments[1].ty, value);
                Val::Unit
            }
            _ => return None,
        })
    }

    /// Lowers copies between memories, and waits for copies in flight.
    fn copying(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &[Expr], values: &[Val]) -> Option<Val> {
        Some(match (intrinsic, values) {
            (Intrinsic::CopyAsync, [to, from]) => self.copy_async(e, to, from, None),
            (Intrinsic::CopyAsyncMap, [to, from, map]) => match self.ty(arguments[1].ty) {
                hir::Type::View { element, .. } => self.copy_async(e, to, from, Some((map, *element))),
                _ => Val::Unit,
            },
            (Intrinsic::CpAsync, [to, from]) => {
                self.pipeline_copy(e, to, from);
                Val::Unit
            }
            (Intrinsic::PipelineCommit, ..) => {
                self.close_group();
                Val::Unit
            }
            (Intrinsic::PipelineWait, [Val::Scalar(groups), ..]) => {
                self.builder.effect(Op::CopyWait(WaitGroup::AllBut(groups.bits.unwrap_or(0) as u32)));
                Val::Unit
            }
            (Intrinsic::PendingNone, ..) => Val::Pending(Vec::new()),
            (Intrinsic::PendingAnd, tokens) => {
                let copies = tokens.iter().flat_map(|v| if let Val::Pending(copies) = v { &copies[..] } else { &[] });
                Val::Pending(copies.cloned().collect())
            }
            (Intrinsic::PendingWait, [token, ..]) => {
                self.wait(e.span, token.clone());
                Val::Unit
            }
            (Intrinsic::SharedCopyFrom, [Val::Shared(to), Val::View(from)]) => {
                self.copy_from(to, from);
                Val::Unit
            }
            _ => return None,
        })
    }

    /// Lowers arithmetic and conversions.
    fn of_numbers(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr], values: &[Val]) -> Option<Val> {
        let ty = arguments.first().map_or(Scalar::Usize, |a| self.scalar_type(a.ty));
        let number = |i: usize| match values.get(i) {
            Some(Val::Scalar(k)) => Some(*k),
            _ => None,
        };
        let (a, b, c) = (number(0), number(1), number(2));
        Some(Val::Scalar(match (intrinsic, a, b) {
            (Intrinsic::Unary(op), Some(a), _) if ty.is_half() => self.half_unary(op, ty, a),
            (Intrinsic::Unary(op), Some(a), _) => {
                let returns = self.scalar_type(e.ty);
                MaybeConst::unknown(self.builder.scalar(Op::Unary(op, a.value), returns))
            }
            (Intrinsic::Binary(op), Some(a), Some(b)) => self.binary(op, ty, a, b),
            (Intrinsic::Method(method), ..) => self.method(e, method, ty, &[a, b, c])?,
            (Intrinsic::Overflow(on, op), Some(a), Some(b)) => return Some(self.on_overflow(on, op, ty, a, b)),
            (Intrinsic::Wide(what), Some(a), Some(b)) => return Some(self.wide(what, ty, a, b, c)),
            (Intrinsic::Fast(function), Some(a), b) => self.fast(function, a, b)?,
            (Intrinsic::Bits(what), ..) => return Some(self.instruction(e, what, arguments, values)),
            (Intrinsic::MulAdd, Some(a), Some(b)) if ty.is_half() => self.half_mul_add(ty, [a, b, c?]),
            (Intrinsic::MulAdd, Some(a), Some(b)) => {
                let value = self.builder.scalar(Op::MulAdd(a.value, b.value, c?.value), ty);
                MaybeConst::unknown(value)
            }
            (Intrinsic::Bitcast, Some(a), _) => {
                let to = self.scalar_type(e.ty);
                MaybeConst::unknown(self.builder.scalar(Op::Bitcast(a.value), to))
            }
            (Intrinsic::Truncate, Some(a), _) => {
                let to = self.scalar_type(e.ty);
                self.truncated(to, a)?
            }
            (Intrinsic::Convert, Some(a), _) => {
                let to = self.scalar_type(e.ty);
                match (ty.is_half(), to.is_half()) {
                    (true, _) => self.widen(ty, a),
                    (false, true) => self.narrow(to, a),
                    (false, false) => self.cast(a, ty, to),
                }
            }
            (Intrinsic::DivCeil, Some(a), Some(b)) => self.div_ceil(ty, a, b),
            (Intrinsic::NextMultipleOf, Some(a), Some(b)) => {
                let over = self.div_ceil(ty, a, b);
                self.binary(Binary::Mul, ty, over, b)
            }
            (Intrinsic::SaturatingSub, Some(a), Some(b)) => self.saturating_sub(ty, a, b),
            _ => return None,
        }))
    }

    /// Lowers functions that make or read an `Option`.
    fn of_option(&mut self, e: &'h Expr, intrinsic: Intrinsic, values: &[Val]) -> Option<Val> {
        Some(match (intrinsic, values) {
            (Intrinsic::Some, [value, ..]) => self.some(value.clone()),
            (Intrinsic::None, ..) => self.none(e),
            (Intrinsic::IsSome, [Val::Option(some, _), ..]) => Val::Scalar(*some),
            (Intrinsic::Copied, [option, ..]) => self.copied(e, option.clone()),
            (Intrinsic::Get, [of, Val::Tuple(at)]) => {
                let number = |v: &Val| if let Val::Scalar(k) = v { Some(*k) } else { None };
                let at: Vec<MaybeConst> = at.iter().filter_map(number).collect();
                self.get(e, of, &at)
            }
            _ => return None,
        })
    }

    /// Rejects an operation that the target lacks.
    fn has_target(&mut self, span: Span, name: &str, first: Target) {
        let target = self.builder.kernel.target;
        if target >= first {
            return;
        }
        self.error_with_help(
            span,
            format!("`{name}` requires {first}; the kernel is compiled for {target}"),
            format!(
                "compile the kernel for it, `#[kernel(target = {first}, …)]`, or provide code for older targets: `if target::SM >= {} {{ … }} else {{ … }}`",
                first.sm()
            ),
        );
    }

    /// Lowers `x.dim(d)`, `x.stride(d)`
    fn dimension(&mut self, span: Span, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        let [of, d] = arguments else { return Val::Unit };
        let Some(d) = self.constant(d) else {
            self.error(span, "the dimension must be a constant");
            return Val::Unit;
        };
        let of = self.expr(of);
        self.at(span);
        if intrinsic == Intrinsic::Stride {
            return self.stride(&of, d as u32, span);
        }
        self.extent(&of, d as u32, span)
    }

    fn extent(&mut self, of: &Val, d: u32, span: Span) -> Val {
        let (found, of, rank) = match of {
            Val::View(view) => (view.extents.get(d as usize).copied(), "a view", view.extents.len()),
            Val::Shared(SharedHandle::Fixed { array, prefix, .. }) => {
                let shape = &self.builder.kernel.shared[array.0 as usize].shape;
                let (n, rank) = (shape.get(d as usize + prefix.len()).copied(), shape.len() - prefix.len());
                (n.map(|n| self.index(n)), "a shared array", rank)
            }
            Val::Shared(SharedHandle::Dynamic(view)) => {
                (view.extents.get(d as usize).copied(), "a shared array", view.extents.len())
            }
            _ => return Val::Unit,
        };
        match found {
            Some(k) => Val::Scalar(k),
            None => self.no_dimension(span, of, d, rank),
        }
    }

    /// Reports that `of`, such as "a view", has no dimension `d`.
    fn no_dimension(&mut self, span: Span, of: &str, d: u32, rank: usize) -> Val {
        let dimensions = match rank {
            0 | 1 => "the only dimension is 0".to_owned(),
            2 => "the dimensions are 0 and 1".to_owned(),
            _ => format!("the dimensions are 0 to {}", rank - 1),
        };
        self.error(span, format!("{of} of rank {rank} has no dimension {d}: {dimensions}"));
        Val::Unit
    }

    fn stride(&mut self, of: &Val, d: u32, span: Span) -> Val {
        let Val::View(view) = of else { return Val::Unit };
        match view.strides.get(d as usize) {
            Some(Some(value)) => Val::Scalar(MaybeConst::unknown(*value)),
            Some(None) => Val::Scalar(self.index(1)),
            None => self.no_dimension(span, "a view", d, view.strides.len()),
        }
    }

    fn is_empty(&mut self, of: &Val) -> Val {
        let Val::View(view) = of else { return Val::Unit };
        let mut any = None;
        for extent in view.extents.clone() {
            let zero = self.index(0);
            let empty = self.compare(Comparison::Eq, Scalar::Usize, extent, zero);
            any = Some(match any {
                None => empty,
                Some(any) => self.binary(Binary::Or, Scalar::Bool, any, empty),
            });
        }
        any.map_or(Val::Unit, Val::Scalar)
    }

    /// Lowers a / b rounded up, without the overflow of a + b − 1.
    pub(super) fn div_ceil(&mut self, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let quotient = self.binary(Binary::Div, ty, a, b);
        let rest = self.binary(Binary::Rem, ty, a, b);
        let zero = self.number(ty, 0);
        let more = self.compare(Comparison::Ne, ty, rest, zero);
        let more = self.cast(more, Scalar::Bool, ty);
        self.binary(Binary::Add, ty, quotient, more)
    }

    /// Lowers max(a − b, 0).
    pub(super) fn saturating_sub(&mut self, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let less = self.binary(Binary::Min, ty, a, b);
        self.binary(Binary::Sub, ty, a, less)
    }

    pub(super) fn hir_rank(&self, e: &Expr) -> u32 {
        match self.ty(e.ty) {
            hir::Type::Shared { rank, .. } | hir::Type::View { rank, .. } => *rank,
            _ => 1,
        }
    }
}
