//! Built-in functions and methods.

use super::Lowerer;
use super::cooperation::LANES;
use super::shared::RowLayout;
use super::value::{CacheHint, Handle, MaybeConst, Val, View};
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
        match intrinsic {
            Intrinsic::SharedNew => return self.shared(e, arguments, RowLayout::Packed),
            Intrinsic::SharedSwizzled => return self.shared(e, arguments, RowLayout::Swizzled),
            Intrinsic::SharedDynamic => return self.shared_dynamic(e, &arguments[0]),
            Intrinsic::SharedOver => {
                let [under, shape] = arguments else { return Val::Unit };
                let name = self.name_hint.take();
                let under = self.expr(under);
                self.at(e.span);
                self.name_hint = name;
                return self.shared_over(e, &under, shape);
            }
            Intrinsic::ThreadLocal => return self.thread_local(e),
            Intrinsic::SharedPadded => return self.shared(e, arguments, RowLayout::Padded),
            Intrinsic::SharedWithPitch => return self.shared(e, arguments, RowLayout::Pitch),
            Intrinsic::Extent(None) | Intrinsic::Stride => return self.dimension(e.span, intrinsic, arguments),
            Intrinsic::Load | Intrinsic::LoadOr | Intrinsic::Store | Intrinsic::StoreIn | Intrinsic::Atomic(..) => {
                return self.access(e, intrinsic, arguments);
            }
            Intrinsic::GroupNew | Intrinsic::GroupLane | Intrinsic::GroupIndex => {
                return self.group(e, intrinsic, arguments);
            }
            Intrinsic::OfWarp(operation) => return self.of_lanes(e, operation, LANES, arguments),
            Intrinsic::OfGroup(operation) => return self.of_group(e, operation, arguments),
            Intrinsic::OfBlock(operation) => return self.of_block(e, operation, arguments),
            Intrinsic::ShareCount | Intrinsic::ShareHas | Intrinsic::ShareAt => {
                return self.share(e, intrinsic, arguments);
            }
            Intrinsic::ArrayMap | Intrinsic::ArrayFrom | Intrinsic::ArrayLen => {
                return self.whole_array(e, intrinsic, arguments);
            }
            _ => {}
        }
        let ty = arguments.first().map_or(Scalar::Usize, |a| self.scalar_type(a.ty));
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
        let known = |i: usize| match values.get(i) {
            Some(Val::Scalar(k)) => Some(*k),
            _ => None,
        };
        let (a, b, c) = (known(0), known(1), known(2));
        let unit = || Val::Unit;
        match (intrinsic, a, b) {
            (Intrinsic::Thread(axis), ..) => Val::Scalar(self.thread(axis)),
            (Intrinsic::Block(axis), ..) => Val::Scalar(self.special(Special::Block(axis))),
            (Intrinsic::BlockDim(axis), ..) => Val::Scalar(self.block_dim(axis)),
            (Intrinsic::GridDim(axis), ..) => Val::Scalar(self.special(Special::Grid(axis))),
            (Intrinsic::ThreadIndex, ..) => Val::Scalar(self.thread_index()),
            (Intrinsic::BlockThreads, ..) => Val::Scalar(self.block_threads()),
            (Intrinsic::GridIndex, ..) => {
                let block = self.special(Special::Block(0));
                let threads = self.block_threads();
                let first = self.binary(Binary::Mul, Scalar::Usize, block, threads);
                let thread = self.thread_index();
                Val::Scalar(self.binary(Binary::Add, Scalar::Usize, first, thread))
            }
            (Intrinsic::Multiprocessors | Intrinsic::Waves, ..) => {
                self.error_with_help(
                    e.span,
                    "properties of the device are known at launch, not in the kernel's body",
                    "use this function in `grid = …` and `grid::dim_x()` in the body, or pass the number as an argument",
                );
                Val::Unit
            }
            (Intrinsic::GridThreads, ..) => {
                let blocks = self.special(Special::Grid(0));
                let threads = self.block_threads();
                Val::Scalar(self.binary(Binary::Mul, Scalar::Usize, blocks, threads))
            }
            (Intrinsic::WarpLane, ..) => Val::Scalar(self.lane(e.span)),
            (Intrinsic::WarpCount, ..) => {
                self.whole_warps(e.span);
                Val::Scalar(self.warp_count())
            }
            (Intrinsic::WarpIndex, ..) => Val::Scalar(self.warp(e.span)),
            (Intrinsic::GridSync, ..) => {
                if !self.program.launch.cooperative {
                    self.error_with_help(
                        e.span,
                        "`grid::sync()` needs all blocks of the launch to be resident at once",
                        "add the clause `cooperative` to the kernel: `#[kernel(cooperative, block = …, grid = …)]`",
                    );
                }
                self.builder.effect(Op::GridSync);
                Val::Unit
            }
            (Intrinsic::BlockSync, ..) => {
                self.builder.effect(Op::BlockSync);
                Val::Unit
            }
            (Intrinsic::WarpSync, ..) => {
                self.whole_warps(e.span);
                self.builder.effect(Op::WarpSync);
                Val::Unit
            }
            (Intrinsic::Fence(scope), ..) => {
                self.builder.effect(Op::Fence(scope));
                Val::Unit
            }
            (Intrinsic::TargetSm, ..) => {
                let sm = self.builder.kernel.target.sm();
                Val::Scalar(self.number(Scalar::U32, sm.into()))
            }
            (Intrinsic::Extent(Some(d)), ..) => {
                values.first().map_or_else(unit, |v| self.extent(v, u32::from(d), e.span))
            }
            (Intrinsic::IsEmpty, ..) => values.first().map_or_else(unit, |v| self.is_empty(v)),
            (Intrinsic::Aligned, ..) => {
                self.error(e.span, "`aligned` is a launch condition: write it in `#[requires(…)]`");
                Val::Unit
            }
            (Intrinsic::ViewStrided, ..) => match values.into_iter().next() {
                Some(Val::View(mut view)) => {
                    if let Some(last) = view.strides.last_mut().filter(|last| last.is_none()) {
                        *last = Some(self.builder.index(1));
                    }
                    Val::View(view)
                }
                _ => Val::Unit,
            },
            (Intrinsic::ViewTransposed, ..) => match values.into_iter().next() {
                Some(Val::View(mut view)) => {
                    view.extents.reverse();
                    view.strides.reverse();
                    Val::View(view)
                }
                _ => Val::Unit,
            },
            (Intrinsic::ViewOffset, ..) => match values.as_slice() {
                [Val::View(view), Val::Tuple(at)] => self.offset(&view.clone(), at),
                _ => Val::Unit,
            },
            (Intrinsic::ViewStreaming | Intrinsic::ViewBypassL1, ..) => match values.into_iter().next() {
                Some(Val::View(view)) => {
                    let hint =
                        if intrinsic == Intrinsic::ViewStreaming { CacheHint::Streaming } else { CacheHint::BypassL1 };
                    Val::View(View { hint, ..view })
                }
                _ => Val::Unit,
            },
            (Intrinsic::ViewAt, _, Some(i)) => match values.first() {
                Some(Val::View(view)) => self.view_at(&view.clone(), i),
                _ => Val::Unit,
            },
            (Intrinsic::SharedAt, _, Some(i)) => match values.first() {
                Some(Val::Shared(handle)) => self.shared_at(&handle.clone(), i),
                _ => Val::Unit,
            },
            (Intrinsic::SharedCast, ..) => values.first().map_or_else(unit, |of| self.shared_cast(e, of)),
            (Intrinsic::CopyAsync, ..) => match values.as_slice() {
                [to, from] => self.copy_async(e, to, from, None),
                _ => Val::Unit,
            },
            (Intrinsic::CopyAsyncMap, ..) => match (values.as_slice(), self.ty(arguments[1].ty)) {
                ([to, from, map], hir::Type::View { element, .. }) => {
                    self.copy_async(e, to, from, Some((map, *element)))
                }
                _ => Val::Unit,
            },
            (Intrinsic::CpAsync, ..) => {
                if let [to, from] = values.as_slice() {
                    self.pipeline_copy(e, to, from);
                }
                Val::Unit
            }
            (Intrinsic::PipelineCommit, ..) => {
                self.close_group();
                Val::Unit
            }
            (Intrinsic::PipelineWait, Some(groups), _) => {
                self.builder.effect(Op::CopyWait(WaitGroup::AllBut(groups.bits.unwrap_or(0) as u32)));
                Val::Unit
            }
            (Intrinsic::PendingNone, ..) => Val::Pending(Vec::new()),
            (Intrinsic::PendingAnd, ..) => {
                let copies = values.into_iter().flat_map(|v| if let Val::Pending(f) = v { f } else { Vec::new() });
                Val::Pending(copies.collect())
            }
            (Intrinsic::PendingWait, ..) => {
                if let Some(token) = values.into_iter().next() {
                    self.wait(e.span, token);
                }
                Val::Unit
            }
            (Intrinsic::SharedCopyFrom, ..) => {
                if let [Val::Shared(to), Val::View(from)] = values.as_slice() {
                    self.copy_from(&to.clone(), &from.clone());
                }
                Val::Unit
            }
            (Intrinsic::Unary(op), Some(a), _) if ty.is_half() => Val::Scalar(self.half_unary(op, ty, a)),
            (Intrinsic::SharedFill, ..) => {
                if let [Val::Shared(of), value] = values.as_slice() {
                    self.fill(&of.clone(), arguments[1].ty, &value.clone());
                }
                Val::Unit
            }
            (Intrinsic::Unary(op), Some(a), _) => {
                let returns = self.scalar_type(e.ty);
                Val::Scalar(MaybeConst { value: self.builder.scalar(Op::Unary(op, a.value), returns), bits: None })
            }
            (Intrinsic::Binary(op), Some(a), Some(b)) => Val::Scalar(self.binary(op, ty, a, b)),
            (Intrinsic::Method(method), ..) => self.method(e, method, ty, &[a, b, c]).map_or(Val::Unit, Val::Scalar),
            (Intrinsic::Overflow(on, op), Some(a), Some(b)) => self.on_overflow(on, op, ty, a, b),
            (Intrinsic::Wide(what), Some(a), Some(b)) => self.wide(what, ty, a, b, c),
            (Intrinsic::Fast(function), Some(a), b) => self.fast(function, a, b).map_or(Val::Unit, Val::Scalar),
            (Intrinsic::Bits(what), ..) => self.instruction(e, what, arguments, &values),
            (Intrinsic::MulAdd, Some(a), Some(b)) => match c {
                Some(c) if ty.is_half() => Val::Scalar(self.half_mul_add(ty, [a, b, c])),
                Some(c) => {
                    let value = self.builder.scalar(Op::MulAdd(a.value, b.value, c.value), ty);
                    Val::Scalar(MaybeConst { value, bits: None })
                }
                None => Val::Unit,
            },
            (Intrinsic::Bitcast, Some(a), _) => {
                let to = self.scalar_type(e.ty);
                Val::Scalar(MaybeConst { value: self.builder.scalar(Op::Bitcast(a.value), to), bits: None })
            }
            (Intrinsic::Truncate, Some(a), _) => {
                let to = self.scalar_type(e.ty);
                self.truncated(to, a).map_or(Val::Unit, Val::Scalar)
            }
            (Intrinsic::Convert, Some(a), _) => {
                let to = self.scalar_type(e.ty);
                Val::Scalar(match (ty.is_half(), to.is_half()) {
                    (true, _) => self.widen(ty, a),
                    (false, true) => self.narrow(to, a),
                    (false, false) => self.cast(a, ty, to),
                })
            }
            (Intrinsic::DivCeil, Some(a), Some(b)) => Val::Scalar(self.div_ceil(ty, a, b)),
            (Intrinsic::NextMultipleOf, Some(a), Some(b)) => {
                let over = self.div_ceil(ty, a, b);
                Val::Scalar(self.binary(Binary::Mul, ty, over, b))
            }
            (Intrinsic::SaturatingSub, Some(a), Some(b)) => Val::Scalar(self.saturating_sub(ty, a, b)),
            (Intrinsic::Some, ..) => values.into_iter().next().map_or(Val::Unit, |v| self.some(v)),
            (Intrinsic::None, ..) => self.none(e),
            (Intrinsic::IsSome, ..) => match values.first() {
                Some(Val::Option(some, _)) => Val::Scalar(*some),
                _ => Val::Unit,
            },
            (Intrinsic::Copied, ..) => values.into_iter().next().map_or(Val::Unit, |v| self.copied(e, v)),
            (Intrinsic::Get, ..) => match values.as_slice() {
                [of, Val::Tuple(at)] => {
                    let at: Vec<MaybeConst> =
                        at.iter().filter_map(|v| if let Val::Scalar(k) = v { Some(*k) } else { None }).collect();
                    self.get(e, &of.clone(), &at)
                }
                _ => Val::Unit,
            },
            // The control flow left in an argument, or an argument had an error.
            _ => Val::Unit,
        }
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
        let found = match of {
            Val::View(view) => view.extents.get(d as usize).copied(),
            Val::Shared(Handle::Fixed { array, prefix, .. }) => {
                let shape = &self.builder.kernel.shared[array.0 as usize].shape;
                let n = shape.get(d as usize + prefix.len()).copied();
                n.map(|n| self.index(n))
            }
            Val::Shared(Handle::Dynamic(view)) => view.extents.get(d as usize).copied(),
            _ => return Val::Unit,
        };
        match found {
            Some(k) => Val::Scalar(k),
            None => {
                self.error(span, format!("there is no dimension {d}"));
                Val::Unit
            }
        }
    }

    fn stride(&mut self, of: &Val, d: u32, span: Span) -> Val {
        let Val::View(view) = of else { return Val::Unit };
        match view.strides.get(d as usize) {
            Some(Some(value)) => Val::Scalar(MaybeConst { value: *value, bits: None }),
            Some(None) => Val::Scalar(self.index(1)),
            None => {
                self.error(span, format!("there is no dimension {d}"));
                Val::Unit
            }
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
        let zero = MaybeConst { value: self.builder.constant(ty, 0), bits: Some(0) };
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
