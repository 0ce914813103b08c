//! Tests of launch contracts on hand-made HIR: accepted arguments, rejected arguments, and
//! messages.

use super::{Fact, LaunchShape, Refusal};
use crate::Scalar;
use crate::hir::*;
use crate::ir::{Binary, Comparison, Unary};
use crate::source::{KernelSource, Span};

const USIZE: TypeId = TypeId(0);
const BOOL: TypeId = TypeId(1);
const F32: TypeId = TypeId(2);
const I32: TypeId = TypeId(3);
const U64: TypeId = TypeId(4);
const F64: TypeId = TypeId(5);

/// Returns a kernel with these generics and parameters, an empty body, block 256 and grid 1.
fn kernel(generics: &[(&str, Scalar)], parameters: &[(&str, Type)]) -> Program {
    let scalars = [Scalar::Usize, Scalar::Bool, Scalar::F32, Scalar::I32, Scalar::U64, Scalar::F64];
    let mut types: Vec<_> = scalars.into_iter().map(Type::Scalar).collect();
    let mut locals = Vec::new();
    for (name, ty) in parameters {
        types.push(ty.clone());
        let ty = TypeId(types.len() as u32 - 1);
        locals.push(Local {
            name: name.to_string(),
            ty,
            mutable: false,
            constant: false,
            late: false,
            span: Span::default(),
        });
    }
    let function = Function {
        name: "kernel".into(),
        hash: 0,
        source: KernelSource { name: "kernel".into(), file: String::new(), line: 1, text: vec![] },
        generics: generics
            .iter()
            .map(|(n, ty)| Generic { name: n.to_string(), kind: GenericKind::Constant(*ty) })
            .collect(),
        parameters: locals.len() as u32,
        locals,
        types,
        returns: USIZE,
        constant: None,
        allowances: vec![],
        private_to: 0,
        body: Block::default(),
    };
    let launch = LaunchContract {
        block: extents([number(256)]),
        grid: vec![number(1)],
        requires: vec![],
        min_blocks: None,
        max_registers: None,
        contract: false,
        assertions: false,
        cooperative: false,
        target: crate::Target::SM_61,
        instances: vec![],
        tolerances: vec![],
        outputs: vec![],
    };
    Program { launch, functions: vec![function], items: Items::default() }
}

fn extents<const N: usize>(all: [Expr; N]) -> Vec<BlockExtent> {
    all.into_iter().map(BlockExtent::Computed).collect()
}
fn expr(ty: TypeId, kind: ExprKind) -> Expr {
    Expr { kind, ty, span: Span::default() }
}
fn literal(ty: TypeId, bits: u64) -> Expr {
    expr(ty, ExprKind::Literal(bits))
}
fn number(n: u64) -> Expr {
    literal(USIZE, n)
}
fn generic(i: u32) -> Expr {
    expr(USIZE, ExprKind::Generic(i))
}
fn local(i: u32) -> Expr {
    expr(USIZE, ExprKind::Local(LocalId(i)))
}
fn call(ty: TypeId, intrinsic: Intrinsic, arguments: Vec<Expr>) -> Expr {
    expr(ty, ExprKind::Intrinsic { intrinsic, arguments })
}
fn extent(i: u32, d: u8) -> Expr {
    call(USIZE, Intrinsic::Extent(Some(d)), vec![local(i)])
}
fn binary(op: Binary, a: Expr, b: Expr) -> Expr {
    expr(a.ty, ExprKind::Binary(op, a.into(), b.into()))
}
fn compare(op: Comparison, a: Expr, b: Expr) -> Expr {
    expr(BOOL, ExprKind::Compare(op, a.into(), b.into()))
}
fn cast(to: TypeId, a: Expr) -> Expr {
    expr(to, ExprKind::Cast(a.into()))
}
fn requires(program: &mut Program, text: &str, condition: Expr) {
    program.launch.requires.push(Requirement { condition, text: text.into() });
}

fn slice(element: TypeId, mutable: bool) -> Type {
    Type::Slice { element, mutable }
}
fn at(address: u64, len: u64, mutable: bool) -> Fact {
    Fact::Slice { element: Scalar::F32.into(), mutable, len, address }
}
fn view_at(address: u64, extents: &[u64], strides: &[u64], mutable: bool) -> Fact {
    Fact::View {
        element: Scalar::F32.into(),
        mutable,
        strided: false,
        extents: extents.to_vec(),
        strides: strides.to_vec(),
        address,
    }
}
fn f32(x: f32) -> Fact {
    Fact::Scalar { ty: Scalar::F32, bits: u64::from(x.to_bits()) }
}
fn usize(bits: u64) -> Fact {
    Fact::Scalar { ty: Scalar::Usize, bits }
}

fn shape(program: &Program, instance: &Instance, facts: &[Fact]) -> Result<LaunchShape, Vec<Refusal>> {
    shape_of(program, instance, None, facts)
}
fn shape_of(
    program: &Program,
    instance: &Instance,
    block: Option<u64>,
    facts: &[Fact],
) -> Result<LaunchShape, Vec<Refusal>> {
    let device = super::DeviceFacts { multiprocessors: 2 };
    super::shape(&made(program, instance).map_err(|r| vec![r])?, device, block, facts)
}
fn block(program: &Program, instance: &Instance) -> Result<[u32; 3], Refusal> {
    open_block(program, instance).map(|block| block.extents().expect("a block of one size"))
}
fn open_block(program: &Program, instance: &Instance) -> Result<crate::ir::BlockExtents, Refusal> {
    super::block(&made(program, instance)?)
}
fn made(program: &Program, instance: &Instance) -> Result<Monomorphic, Refusal> {
    monomorphic(program, instance).map_err(|errors| Refusal(errors.to_string()))
}

fn words(refused: Result<LaunchShape, Vec<Refusal>>) -> Vec<String> {
    refused.expect_err("to be refused").into_iter().map(|r| r.0).collect()
}

/// `saxpy(a: f32, x: &[f32], y: &mut [f32])`, block 256, a block for each 256 elements, lengths
/// equal.
fn saxpy() -> Program {
    let mut program =
        kernel(&[], &[("a", Type::Scalar(Scalar::F32)), ("x", slice(F32, false)), ("y", slice(F32, true))]);
    program.launch.grid = vec![call(USIZE, Intrinsic::DivCeil, vec![extent(2, 0), number(256)])];
    requires(&mut program, "x.len() == y.len()", compare(Comparison::Eq, extent(1, 0), extent(2, 0)));
    program
}

fn launch(facts: &[Fact]) -> Result<LaunchShape, Vec<Refusal>> {
    shape(&saxpy(), &Instance::default(), facts)
}

#[test]
fn a_launch_that_meets_its_contract_has_a_shape() {
    let shape = launch(&[f32(2.0), at(0x1000, 257, false), at(0x2000, 257, true)]);
    assert_eq!(shape, Ok(LaunchShape { block: [256, 1, 1], grid: [2, 1, 1] }));
}

#[test]
fn an_empty_launch_is_valid() {
    let shape = launch(&[f32(2.0), at(0, 0, false), at(0, 0, true)]).unwrap();
    assert_eq!(shape.grid, [0, 1, 1]);
    assert!(shape.is_empty());
}

#[test]
fn a_violated_condition_is_reported_with_both_values() {
    let refused = launch(&[f32(2.0), at(0x1000, 5, false), at(0x2000, 4, true)]);
    assert_eq!(words(refused), ["requires `x.len() == y.len()`: x.len() is 5, y.len() is 4"]);
}

#[test]
fn a_wrong_argument_count_names_the_parameters() {
    assert_eq!(words(launch(&[f32(2.0)])), ["expected 3 arguments (`a`, `x`, `y`), given 1"]);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let facts = [
        Fact::Scalar { ty: Scalar::F64, bits: 0 },
        Fact::Slice { element: Scalar::I32.into(), mutable: false, len: 5, address: 0x1000 },
        at(0x2002, 4, true),
    ];
    assert_eq!(
        words(launch(&facts)),
        [
            "argument `a`: expected `f32`, given `f64`",
            "argument `x`: expected `&[f32]`, given `&[i32]`",
            "argument `y`: the address 0x2002 is not a multiple of 4 bytes, the size of `f32`",
        ]
    );
}

#[test]
fn kind_rank_and_mutability_are_checked() {
    let view = |rank, mutable| Type::View { element: F32, rank, mutable, strided: false };
    let program = kernel(&[], &[("a", view(2, false)), ("b", view(2, true)), ("c", slice(F32, true))]);
    let facts = [view_at(0, &[4], &[1], false), view_at(64, &[2, 2], &[2, 1], false), f32(0.0)];
    assert_eq!(
        words(shape(&program, &Instance::default(), &facts)),
        [
            "argument `a`: expected `View<f32, 2>`, given `View<f32, 1>`",
            "argument `b`: expected `ViewMut<f32, 2>`, given `View<f32, 2>`",
            "argument `c`: expected `&mut [f32]`, given `f32`",
        ]
    );
}

#[test]
fn numbers_beyond_32_bits_are_rejected() {
    let program = kernel(
        &[],
        &[
            ("n", Type::Scalar(Scalar::Usize)),
            ("x", slice(F32, false)),
            ("v", Type::View { element: F32, rank: 2, mutable: false, strided: false }),
        ],
    );
    let most = u64::from(u32::MAX);
    let run = |n, len, extents: [u64; 2], strides: [u64; 2]| {
        shape(&program, &Instance::default(), &[usize(n), at(0, len, false), view_at(0, &extents, &strides, false)])
    };
    assert!(run(most, most, [1, 1], [most, 1]).is_ok());
    assert_eq!(
        words(run(most + 1, most + 1, [most + 1, 1], [most + 1, 2])),
        [
            "argument `n`: 4294967296 does not fit in `usize`, which has 32 bits on the device",
            "argument `x`: the length 4294967296 does not fit in `usize`, which has 32 bits on the device",
            "argument `v`: extent 4294967296 of dimension 0 does not fit in `usize`, which has 32 bits on the device",
            "argument `v`: stride 4294967296 of dimension 0 does not fit in `usize`, which has 32 bits on the device",
            "argument `v`: expected a last stride of 1, given strides [4294967296, 2]",
        ]
    );
    assert_eq!(
        words(run(0, 0, [3, 1], [most, 1])),
        ["argument `v`: the view spans 8589934591 elements, more than a 32-bit `usize` can index on the device"]
    );
}

#[test]
fn an_address_range_must_exist() {
    let refused = launch(&[f32(0.0), at(u64::MAX - 3, 2, false), at(0x1000, 2, true)]);
    assert_eq!(
        words(refused),
        ["argument `x`: the memory starts at 0xfffffffffffffffc and would end beyond the address space"]
    );
}

#[test]
fn written_arguments_do_not_overlap_others() {
    let overlap = launch(&[f32(0.0), at(0x1000, 4, false), at(0x100c, 4, true)]);
    assert_eq!(
        words(overlap),
        ["arguments `x` and `y` overlap, and the kernel writes `y`: bytes 0x1000..0x1010 and 0x100c..0x101c"]
    );
    assert!(launch(&[f32(0.0), at(0x1000, 4, false), at(0x1010, 4, true)]).is_ok());
    // Arguments that are only read may overlap, and so may empty arguments.
    let readers = kernel(&[], &[("x", slice(F32, false)), ("y", slice(F32, false))]);
    assert!(shape(&readers, &Instance::default(), &[at(0x1000, 4, false), at(0x1000, 4, true)]).is_ok());
    assert!(launch(&[f32(0.0), at(0x1000, 0, false), at(0x1000, 0, true)]).is_ok());
}

#[test]
fn a_views_range_counts_its_gaps() {
    let view = |mutable| Type::View { element: F32, rank: 2, mutable, strided: false };
    let program = kernel(&[], &[("a", view(false)), ("b", view(true))]);
    // Three rows of two, eight apart: 18 elements, 72 bytes.
    let a = view_at(0x1000, &[3, 2], &[8, 1], false);
    let run = |address| shape(&program, &Instance::default(), &[a.clone(), view_at(address, &[1, 1], &[1, 1], true)]);
    assert!(run(0x1000 + 72).is_ok());
    assert!(run(0x1000 + 68).is_err());
}

#[test]
fn the_block_depends_on_constants_alone() {
    let mut program = kernel(&[("T", Scalar::Usize), ("WIDE", Scalar::Bool)], &[("n", Type::Scalar(Scalar::Usize))]);
    let wide = expr(BOOL, ExprKind::Generic(1));
    let value = |e: Expr| Block { statements: vec![], value: Some(e.into()) };
    let choice = expr(
        USIZE,
        ExprKind::If {
            condition: wide.into(),
            then: value(binary(Binary::Mul, generic(0), number(2))),
            otherwise: Some(expr(USIZE, ExprKind::Block(value(generic(0)))).into()),
        },
    );
    program.launch.block = extents([choice, generic(0)]);
    let instance = |t, wide| Instance(vec![Constant::Usize(t), Constant::Bool(wide)]);
    assert_eq!(block(&program, &instance(16, true)), Ok([32, 16, 1]));
    assert_eq!(block(&program, &instance(32, false)), Ok([32, 32, 1]));
    let refused = |t, wide| block(&program, &instance(t, wide)).unwrap_err().0;
    assert_eq!(refused(33, false), "block: expected 1 to 1024 threads, at most 1024 × 1024 × 64, given 33 × 33 × 1");
    assert!(refused(0, true).contains("given 0 × 0 × 1"));
    assert_eq!(
        refused(u32::MAX, true),
        "block: the extent in x evaluates to 8589934590, which does not fit in `usize`, which has 32 bits on the device: \
         WIDE is true, T is 4294967295"
    );
    assert_eq!(block(&program, &Instance(vec![])).unwrap_err().0, "`kernel` takes 2 generic arguments, 0 given");
    assert_eq!(
        block(&program, &Instance(vec![Constant::Bool(true); 2])).unwrap_err().0,
        "the parameter `T` of `kernel` must be a `usize`, found `true`"
    );
    program.launch.block = extents([local(0)]);
    assert_eq!(
        block(&program, &instance(1, true)).unwrap_err().0,
        "block: the extent in x depends on an argument and has no upper bound: add one, as in `n.min(256)` or \
         `n.clamp(32, 256)`"
    );
    // A GPU allows at most 64 threads along z.
    program.launch.block = extents([number(1), number(1), number(65)]);
    assert!(block(&program, &instance(1, true)).is_err());
}

fn chosen(least: u64, most: u64, step: Option<u64>) -> BlockExtent {
    BlockExtent::Chosen { least: number(least), most: number(most), step: step.map(number) }
}

#[test]
fn a_launch_chooses_from_what_the_kernel_leaves_open() {
    let mut program = kernel(&[], &[("n", Type::Scalar(Scalar::Usize))]);
    let none = Instance::default();
    let shape = |program: &Program, block| shape_of(program, &none, block, &[usize(5)]).map(|shape| shape.block);
    let refused = |program: &Program, block| words(shape_of(program, &none, block, &[usize(5)])).remove(0);
    assert_eq!(
        refused(&program, Some(32)),
        "block: the kernel fixes its block size, so the launch cannot choose one; given 32"
    );

    // A range whose ends are whole warps has steps of whole warps.
    program.launch.block = vec![chosen(32, 1024, None)];
    assert_eq!(shape(&program, Some(96)), Ok([96, 1, 1]));
    let expected = "block: expected the launch to choose 32 to 1024 threads in x, in steps of 32, given none";
    assert_eq!(refused(&program, None), expected);
    for n in [0, 31, 48, 1056, 1 << 40] {
        let expected = format!("block: expected 32 to 1024 threads in x, in steps of 32, given {n}");
        assert_eq!(refused(&program, Some(n)), expected);
    }
    let block = open_block(&program, &none).unwrap();
    assert_eq!((block.least_threads(), block.most_threads(), block.multiple()), (32, 1024, 32));

    program.launch.block = vec![BlockExtent::Computed(number(32)), chosen(1, 8, None)];
    assert_eq!(shape(&program, Some(3)), Ok([32, 3, 1]));
    assert_eq!(refused(&program, Some(9)), "block: expected 1 to 8 threads in y, given 9");
    assert!(open_block(&program, &none).unwrap().has_whole_warps());

    program.launch.block = vec![chosen(1, 8, None), BlockExtent::Computed(number(8))];
    assert!(
        refused(&program, Some(3)).starts_with("block: the extent in x is known only at launch, so the later extent")
    );
    program.launch.block = vec![chosen(32, 2048, None)];
    assert!(refused(&program, Some(32)).contains("expected 1 to 1024 threads"));
    for (least, most, step) in [(0, 8, None), (9, 8, None), (1, 8, Some(0))] {
        program.launch.block = vec![chosen(least, most, step)];
        assert!(refused(&program, Some(4)).starts_with("block: expected a range that starts at 1 or more"));
    }
}

#[test]
fn the_bounds_of_a_block_follow_from_its_expression() {
    let method = |m, all| call(USIZE, Intrinsic::Method(m), all);
    let of = |e: Expr| {
        let mut program = kernel(&[], &[("n", Type::Scalar(Scalar::Usize))]);
        program.launch.block = extents([e]);
        open_block(&program, &Instance::default()).map(|b| (b.least_threads(), b.most_threads(), b.multiple()))
    };
    let min = |a, b| call(USIZE, Intrinsic::Binary(Binary::Min), vec![a, b]);
    let up = |a, b| call(USIZE, Intrinsic::NextMultipleOf, vec![a, b]);
    assert_eq!(of(min(local(0), number(1000))), Ok((1, 1000, 1)));
    assert_eq!(of(min(up(local(0), number(32)), number(1024))), Ok((32, 1024, 32)));
    // 1000 is not a multiple of 32, and 8 divides both.
    assert_eq!(of(min(up(local(0), number(32)), number(1000))), Ok((8, 1000, 8)));
    assert_eq!(of(method(Method::Clamp, vec![local(0), number(64), number(128)])), Ok((64, 128, 1)));
    assert_eq!(of(min(binary(Binary::Mul, local(0), number(64)), number(512))), Ok((64, 512, 64)));
    let warps = call(USIZE, Intrinsic::DivCeil, vec![min(local(0), number(100)), number(32)]);
    assert_eq!(of(binary(Binary::Mul, warps, number(32))), Ok((32, 128, 32)));
    assert!(of(binary(Binary::Add, local(0), number(32))).is_err());
}

#[test]
fn conditions_and_grids_know_the_block() {
    let mut program = kernel(&[], &[("x", slice(F32, false))]);
    program.launch.block = vec![chosen(1, 1024, None)];
    let threads = || call(USIZE, Intrinsic::BlockThreads, vec![]);
    program.launch.grid = vec![call(USIZE, Intrinsic::DivCeil, vec![extent(0, 0), threads()])];
    assert!(!open_block(&program, &Instance::default()).unwrap().has_whole_warps());
    let rest = binary(Binary::Rem, threads(), number(32));
    requires(&mut program, "block::threads() % 32 == 0", compare(Comparison::Eq, rest, number(0)));
    assert!(open_block(&program, &Instance::default()).unwrap().has_whole_warps());
    let run = |block| shape_of(&program, &Instance::default(), Some(block), &[at(0x100, 100, false)]);
    assert_eq!(run(64), Ok(LaunchShape { block: [64, 1, 1], grid: [2, 1, 1] }));
    assert_eq!(words(run(48)), ["requires `block::threads() % 32 == 0`: block::threads() is 48"]);
}

#[test]
fn a_grid_has_limits() {
    let mut program = kernel(&[], &[("n", Type::Scalar(Scalar::Usize))]);
    program.launch.grid = vec![number(1), local(0)];
    assert!(shape(&program, &Instance::default(), &[usize(65_535)]).is_ok());
    assert_eq!(
        words(shape(&program, &Instance::default(), &[usize(65_536)])),
        ["grid: expected at most 2147483647 × 65535 × 65535 blocks, given 1 × 65536 × 1"]
    );
}

#[test]
fn alignment_is_of_base_and_outer_strides() {
    let mut program = kernel(&[], &[("a", Type::View { element: F32, rank: 2, mutable: false, strided: false })]);
    requires(&mut program, "a.aligned(4)", call(BOOL, Intrinsic::Aligned, vec![local(0), number(4)]));
    let run =
        |address, stride| shape(&program, &Instance::default(), &[view_at(address, &[2, 3], &[stride, 1], false)]);
    assert!(run(0x1000, 4).is_ok());
    assert_eq!(
        words(run(0x1008, 4)),
        ["requires `a.aligned(4)`: a starts at a multiple of 2 elements, a's outer strides are [4] elements"]
    );
    assert!(run(0x1000, 6).is_err());
}

#[test]
fn a_condition_that_has_no_value_says_why() {
    let mut program = kernel(&[], &[("n", Type::Scalar(Scalar::Usize)), ("x", slice(F32, false))]);
    let less = binary(Binary::Sub, extent(1, 0), local(0));
    requires(&mut program, "x.len() - n > 0", compare(Comparison::Gt, less, number(0)));
    let zero = binary(Binary::Rem, extent(1, 0), binary(Binary::Sub, local(0), local(0)));
    requires(&mut program, "x.len() % (n - n) == 0", compare(Comparison::Eq, zero, number(0)));
    requires(&mut program, "x.dim(1) == 0", compare(Comparison::Eq, extent(1, 1), number(0)));
    assert_eq!(
        words(shape(&program, &Instance::default(), &[usize(7), at(0, 5, false)])),
        [
            "requires `x.len() - n > 0`, but the condition evaluates to -2, which does not fit in `usize`, which has 32 bits on the device: \
             x.len() is 5, n is 7",
            "requires `x.len() % (n - n) == 0`, but the condition divides by zero: x.len() is 5, n is 7",
            "requires `x.dim(1) == 0`, but the condition reads dimension 1 of `&[f32]`, which has 1",
        ]
    );
}

/// Checks that each `bool` expression holds.
#[test]
fn expressions_mean_what_rust_means() {
    use Comparison::Eq;
    let f = |x: f32| literal(F32, u64::from(x.to_bits()));
    let i = |x: i32| literal(I32, u64::from(x as u32));
    let d = |x: f64| literal(F64, x.to_bits());
    let intrinsic = |op, a: Expr, b| call(a.ty, Intrinsic::Binary(op), vec![a, b]);
    let unary = |op, a: Expr| expr(a.ty, ExprKind::Unary(op, a.into()));
    let not = |a| unary(Unary::Not, a);
    let third = 1.0f32 / 3.0;
    let holds = [
        compare(Eq, binary(Binary::Div, i(-7), i(2)), i(-7 / 2)),
        compare(Eq, binary(Binary::Rem, i(-7), i(2)), i(-7 % 2)),
        compare(Eq, binary(Binary::Shr, i(-8), i(33)), i(-4)),
        compare(Eq, binary(Binary::Shl, i(0x4000_0001), i(1)), i(0x4000_0001 << 1)),
        compare(Eq, unary(Unary::Neg, i(5)), i(-5)),
        compare(Eq, not(i(5)), i(!5)),
        compare(Eq, binary(Binary::WrappingMul, i(i32::MAX), i(3)), i(i32::MAX.wrapping_mul(3))),
        compare(Eq, binary(Binary::WrappingSub, number(0), number(1)), number(u64::from(u32::MAX))),
        compare(Eq, binary(Binary::WrappingAdd, literal(U64, u64::MAX), literal(U64, 2)), literal(U64, 1)),
        compare(Eq, binary(Binary::Div, f(1.0), f(3.0)), f(third)),
        compare(Eq, binary(Binary::Mul, f(third), f(third)), f(third * third)),
        compare(Eq, intrinsic(Binary::Max, f(f32::NAN), f(1.0)), f(1.0)),
        compare(Eq, binary(Binary::Div, f(1.0), intrinsic(Binary::Min, f(0.0), f(-0.0))), f(f32::NEG_INFINITY)),
        compare(Comparison::Ne, f(f32::NAN), f(f32::NAN)),
        compare(Eq, cast(I32, d(-1e300)), i(i32::MIN)),
        compare(Eq, cast(I32, d(f64::NAN)), i(0)),
        compare(Eq, cast(USIZE, d(-3.0)), number(0)),
        compare(Eq, cast(U64, i(-1)), literal(U64, u64::MAX)),
        compare(Eq, cast(F32, literal(U64, u64::MAX)), f(u64::MAX as f32)),
        compare(Eq, cast(F32, d(0.1)), f(0.1)),
        compare(Eq, call(USIZE, Intrinsic::NextMultipleOf, vec![number(17), number(8)]), number(24)),
        compare(Eq, call(USIZE, Intrinsic::SaturatingSub, vec![number(3), number(8)]), number(0)),
        compare(Eq, call(USIZE, Intrinsic::DivCeil, vec![number(u64::from(u32::MAX)), number(2)]), number(1 << 31)),
        call(BOOL, Intrinsic::IsEmpty, vec![local(0)]),
        // The right side is not evaluated where the left decides: it would divide by zero.
        not(expr(
            BOOL,
            ExprKind::AndAlso(
                literal(BOOL, 0).into(),
                compare(Eq, binary(Binary::Div, number(1), number(0)), number(1)).into(),
            ),
        )),
        expr(
            BOOL,
            ExprKind::OrElse(
                literal(BOOL, 1).into(),
                compare(Eq, binary(Binary::Div, number(1), number(0)), number(1)).into(),
            ),
        ),
        expr(
            BOOL,
            ExprKind::Field { base: expr(BOOL, ExprKind::Tuple(vec![number(0), literal(BOOL, 1)])).into(), field: 1 },
        ),
    ];
    for (index, condition) in holds.into_iter().enumerate() {
        let mut program = kernel(&[], &[("x", slice(F32, false))]);
        requires(&mut program, &index.to_string(), condition);
        let shape = shape(&program, &Instance::default(), &[at(0, 0, false)]);
        assert!(shape.is_ok(), "expression {index}: {shape:?}");
    }
}

#[test]
fn views_of_any_strides() {
    let strided = |mutable| Type::View { element: F32, rank: 2, mutable, strided: true };
    let fact = |strided, mutable, extents: &[u64], strides: &[u64]| Fact::View {
        element: Scalar::F32.into(),
        mutable,
        strided,
        extents: extents.to_vec(),
        strides: strides.to_vec(),
        address: 0x1000,
    };
    let refusals = |writes, given| {
        let program = kernel(&[], &[("a", strided(writes))]);
        match shape(&program, &Instance::default(), &[given]) {
            Ok(_) => Vec::new(),
            refused => words(refused),
        }
    };
    assert_eq!(refusals(false, fact(true, false, &[3, 4], &[1, 3])), [""; 0]);
    assert_eq!(refusals(false, fact(true, false, &[3, 4], &[0, 0])), [""; 0], "what is read may be read twice");
    assert_eq!(refusals(true, fact(true, true, &[3, 4], &[1, 3])), [""; 0]);
    assert_eq!(
        refusals(true, fact(true, true, &[3, 4], &[2, 3])),
        ["argument `a`: two indices of a writable view select the same element: extents [3, 4], strides [2, 3]"]
    );
    assert_eq!(refusals(true, fact(true, true, &[1, 4], &[0, 1])), [""; 0], "a dimension of one index takes no step");
    assert_eq!(
        refusals(false, fact(false, false, &[3, 4], &[4, 1])),
        ["argument `a`: expected `Strided<f32, 2>`, given `View<f32, 2>`"]
    );
    assert!(
        refusals(false, fact(true, false, &[1 << 20, 1 << 20], &[1 << 20, 1]))[0]
            .contains("more than a 32-bit `usize`")
    );
    assert!(refusals(false, fact(true, false, &[3, 4], &[1 << 33, 1]))[0].contains("stride 8589934592 of dimension 0"));
}

#[test]
fn values_known_only_on_the_device_are_rejected() {
    let mut program = kernel(&[], &[]);
    program.launch.grid = vec![call(USIZE, Intrinsic::Thread(0), vec![])];
    assert_eq!(
        words(shape(&program, &Instance::default(), &[])),
        ["grid: the extent in x calls a function that only the device can evaluate"]
    );
}

#[test]
fn limits_are_those_of_the_instance() {
    let mut program = kernel(&[("N", Scalar::Usize)], &[("n", Type::Scalar(Scalar::Usize))]);
    let of = |program: &Program, n: u32| super::limits(&made(program, &Instance(vec![Constant::Usize(n)]))?);
    assert_eq!(of(&program, 2), Ok(super::InstanceLimits { min_blocks: None, max_registers: None }));
    program.launch.min_blocks = Some(generic(0));
    program.launch.max_registers = Some(binary(Binary::Mul, generic(0), number(64)));
    assert_eq!(of(&program, 2), Ok(super::InstanceLimits { min_blocks: Some(2), max_registers: Some(128) }));
    let refused = |program: &Program, n: u32| of(program, n).expect_err("to be refused").0;
    assert_eq!(refused(&program, 0), "min_blocks: expected 1 or more, given 0");
    program.launch.min_blocks = None;
    program.launch.max_registers = Some(local(0));
    let message = "max_registers: the expression depends on an argument; it must be a compile-time constant";
    assert_eq!(refused(&program, 2), message);
}

/// Tests a parameter whose extents are an array, in a struct with a slice, and in an array of
/// structs.
#[test]
fn parts_of_parameters_are_values() {
    let mut program = kernel(&[], &[("x", slice(F32, false))]);
    let function = &mut program.functions[0];
    let mut ty = |ty: Type| {
        function.types.push(ty);
        TypeId(function.types.len() as u32 - 1)
    };
    let extents = ty(Type::Array(I32, Size::Known(2)));
    let entry = ty(Type::Tuple(vec![extents, USIZE]));
    let entries = ty(Type::Array(entry, Size::Known(2)));
    let p =
        Local { name: "p".into(), ty: entries, mutable: false, constant: false, late: false, span: Default::default() };
    function.locals.push(p);
    function.parameters = 2;
    // p[1].0[at] as usize == x.len()
    let element = |at: Expr| {
        let one = expr(
            entry,
            ExprKind::Index { base: expr(entries, ExprKind::Local(LocalId(1))).into(), index: number(1).into() },
        );
        let field = expr(extents, ExprKind::Field { base: one.into(), field: 0 });
        expr(I32, ExprKind::Index { base: field.into(), index: at.into() })
    };
    let text = "p[1].0[1] as usize == x.len()";
    requires(&mut program, text, compare(Comparison::Eq, cast(USIZE, element(number(1))), extent(0, 0)));
    let i32 = |v: u64| Fact::Scalar { ty: Scalar::I32, bits: v };
    let facts = |n| [at(0x1000, 5, false), i32(1), i32(2), usize(3), i32(4), i32(n), usize(6)];
    assert!(shape(&program, &Instance::default(), &facts(5)).is_ok());
    let broken = words(shape(&program, &Instance::default(), &facts(7)));
    assert_eq!(broken, ["requires `p[1].0[1] as usize == x.len()`: p[1].0[1] is 7, x.len() is 5"]);

    // The index may be a constant array's element; one beyond the array is a reason.
    program.launch.requires.clear();
    let table = expr(entry, ExprKind::Array(vec![number(7), number(1)]));
    let index = expr(USIZE, ExprKind::Index { base: table.into(), index: number(0).into() });
    requires(&mut program, "c", compare(Comparison::Eq, cast(USIZE, element(index)), extent(0, 0)));
    let beyond = words(shape(&program, &Instance::default(), &facts(5)));
    assert!(beyond[0].contains("reads element 7 of an array of 2 elements"), "{beyond:?}");
}
